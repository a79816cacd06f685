"""WhatsApp as a channel: Meta's Graph API, and text in WhatsApp's own formatting."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import orjson
import structlog

from app.channels.whatsapp.errors import (
    NOT_ON_TEST_LIST,
    UPLOAD_FAILED,
    parse_object,
    read_refusal,
    read_response,
)
from app.channels.whatsapp.formatting import literal, render_whatsapp, settle, split_message, without_signs
from app.http.endpoint import Endpoint, NoAnswer, NotSent, TooLong
from app.messages import (
    Accepted,
    Address,
    Button,
    FetchFailed,
    MediaFile,
    Outgoing,
    Refused,
    SendResult,
    Template,
    Unknown,
)
from app.phones import digits, other_form
from app.settings import Settings
from app.store.database import Database
from app.store.media import MediaFolder
from app.text import Private, on_one_line, shortened

log = structlog.get_logger(__name__)

TEXT_LIMIT = 4096
SEND_SECONDS = 25.0
TELL_SECONDS = 5.0
UPLOAD_SECONDS = 60.0
DOWNLOAD_SECONDS = 60.0
CONNECTIONS = 100
UPLOADS_AT_ONCE = 4  # each holds its file in memory
PLACE_SECONDS = 30.0  # for one of them; with the upload and two sends less than the outbox gives a send
# https://developers.facebook.com/docs/whatsapp/cloud-api/messages/interactive-list-messages
MOST_BUTTONS, MOST_ROWS = 3, 10
BUTTON_TITLE, ROW_TITLE = 20, 24
TEMPLATE_TEXT = 900  # characters of ours in a template, whose whole body has at most 1024
BUTTONS_BODY = 1024  # characters beside buttons, and above a list
# Where Meta keeps what people sent: https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media
MEDIA_HOSTS = (".fbsbx.com", ".fbcdn.net", ".whatsapp.net")


class WhatsAppChannel:
    """The `Channel` over the Graph API, for one number. Never raises for what the other side does."""

    name = "whatsapp"

    def __init__(
        self,
        api_url: str,
        phone_number_id: str,
        access_token: str,
        media: MediaFolder,
        store: Database | None = None,
    ) -> None:
        self._store = store
        headers = {"Authorization": f"Bearer {access_token}"}
        self._endpoint = Endpoint(api_url, headers, connections=CONNECTIONS)
        self._number = f"/{phone_number_id}"
        address = urlsplit(api_url)
        self._origin = (address.scheme, address.netloc)
        self._media = media
        self._uploads = asyncio.Semaphore(UPLOADS_AT_ONCE)

    async def close(self) -> None:
        await self._endpoint.close()

    def render(self, markdown: str) -> list[Outgoing]:
        return [Outgoing(part) for part in split_message(render_whatsapp(markdown), TEXT_LIMIT)]

    def ask(self, text: str, question: str, buttons: Sequence[Button]) -> list[Outgoing]:
        text = without_signs(text)
        shown, asked = settle(literal(text)), settle(literal(question))
        whole = shown if text.startswith(question) else f"{shown}\n\n{asked}"
        if len(whole) <= BUTTONS_BODY:
            return [Outgoing(whole, tuple(buttons))]
        parts = split_message(shown, TEXT_LIMIT)
        return [*map(Outgoing, parts), Outgoing(asked, tuple(buttons))]

    def choose(self, question: str, options: Sequence[Button], list_label: str) -> list[Outgoing]:
        """Return a question with its options; `list_label` is the button that opens a list.

        Where titles have no room, or are equal, they are numbered and cut, and the body has all whole.
        """
        titles = [option.title for option in options]
        width = BUTTON_TITLE if len(options) <= MOST_BUTTONS else ROW_TITLE
        lines = [f"{number}. {title}" for number, title in enumerate(titles, 1)]
        is_short = len(set(titles)) == len(titles) and all(len(title) <= width for title in titles)
        listed = settle(literal("\n".join([question, "", *lines])))
        body = settle(literal(question)) if is_short else listed
        if len(options) > MOST_ROWS or len(body) > BUTTONS_BODY:
            return [Outgoing(listed[:TEXT_LIMIT])]
        shown = tuple(
            Button(option.id, option.title if is_short else shortened(line, width))
            for option, line in zip(options, lines, strict=True)
        )
        if len(options) <= MOST_BUTTONS:
            return [Outgoing(body, buttons=shown)]
        return [Outgoing(body, rows=shown, label=shortened(list_label, BUTTON_TITLE))]

    async def send(self, to: Address, message: Outgoing, outbox_id: str) -> SendResult:
        """Send one message, its file first. If a test list does not know the number, try its other form."""
        media = "" if message.file is None else await self._upload(message.file)
        if isinstance(media, Refused):
            return media
        result = await self._post(message_body(to, message, outbox_id, media))
        is_unlisted = isinstance(result, Refused) and result.code == NOT_ON_TEST_LIST
        if not is_unlisted or not (other := other_form(to.phone)):
            return result
        again = await self._post(message_body(replace(to, phone=other), message, outbox_id, media))
        if isinstance(again, Accepted):
            return replace(again, phone=other)
        return result if isinstance(again, Refused) else again

    async def fetch(self, media_id: str, target: Path, limit: int) -> None:
        """Write a file that somebody sent into `target`. Raises FetchFailed.

        Its address is asked for first: it lives five minutes, so each try asks for a new one.
        """
        try:
            described = await self._endpoint.get(f"/{quote(media_id, safe='')}", SEND_SECONDS)
            if described.status != 200:
                away = described.status >= 500 or described.status == 429
                raise FetchFailed("away" if away else "gone", again=away)
            url = str(parse_object(described.body).get("url", ""))
            if not self._may_have_token(url):
                raise FetchFailed("gone")
            answer = await self._endpoint.download(url, target, limit, DOWNLOAD_SECONDS)
        except TooLong as error:
            raise FetchFailed("too_large") from error
        except (NotSent, NoAnswer) as error:
            raise FetchFailed("away", again=True) from error
        if answer.status != 200:
            raise FetchFailed("gone" if answer.status < 500 else "away", again=True)

    async def typing(self, message_id: str) -> None:
        """Mark a message as read and show typing for 25 s or until the reply."""
        body = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": message_id,
            "typing_indicator": {"type": "text"},
        }
        try:
            await self._endpoint.post(f"{self._number}/messages", orjson.dumps(body), SEND_SECONDS)
        except (NotSent, NoAnswer) as error:
            log.debug("typing not shown", error=Private(error))

    async def _upload(self, file: MediaFile) -> str | Refused:
        """Return Meta's id for a file. A failure is never unknown, because uploading twice does no harm."""
        path, fields = f"{self._number}/media", {"messaging_product": "whatsapp", "type": file.mime_type}
        try:
            async with asyncio.timeout(PLACE_SECONDS):
                await self._uploads.acquire()
        except TimeoutError:
            return Refused("retry", detail="other files are still being uploaded")
        try:
            data = await asyncio.to_thread(self._media.read, file)
            files = {"file": (file.name, data, file.mime_type)}
            form = httpx2.Request("POST", path, data=fields, files=files)
            answer = await self._endpoint.post(
                path, form.read(), UPLOAD_SECONDS, form.headers["content-type"]
            )
        except OSError as error:
            return Refused("give_up", detail=f"the file {file.path} cannot be read: {error.strerror}")
        except NotSent as error:
            return Refused("retry", detail=str(error))
        except NoAnswer as error:
            return Refused("retry", UPLOAD_FAILED, f"the upload: {error}")
        finally:
            self._uploads.release()
        if not 200 <= answer.status < 300:
            return read_refusal(answer.status, parse_object(answer.body), answer.retry_after)
        given = parse_object(answer.body).get("id")
        if isinstance(given, str) and given:
            return given
        return Refused("retry", UPLOAD_FAILED, "the upload was answered without an id")

    def _may_have_token(self, url: str) -> bool:
        """Tell whether an address is the Graph API's own host or one of Meta's for media."""
        try:
            parts = urlsplit(url)
            host = parts.hostname or ""
        except ValueError:
            return False
        return (parts.scheme, parts.netloc) == self._origin or (
            parts.scheme == "https" and host.endswith(MEDIA_HOSTS)
        )

    async def _post(self, body: dict[str, Any]) -> SendResult:
        if self._store is not None and not self._store.holds_lease:  # another worker may have sent it since
            return Refused("retry", detail="this worker was silent for too long")
        try:
            answer = await self._endpoint.post(f"{self._number}/messages", orjson.dumps(body), SEND_SECONDS)
        except NotSent as error:
            return Refused("retry", detail=str(error))
        except NoAnswer as error:
            return Unknown(str(error))
        return read_response(answer.status, answer.body, answer.retry_after)


async def invitation_link(settings: Settings, code: str) -> str:
    """Return the link that writes a code to our number, "" where the Graph API does not tell the number."""
    if not settings.is_connected:
        return ""
    headers = {"Authorization": f"Bearer {settings.whatsapp_access_token.get_secret_value()}"}
    endpoint = Endpoint(settings.whatsapp_api_url, headers)
    path = f"/{quote(settings.whatsapp_phone_number_id, safe='')}?fields=display_phone_number"
    try:
        told = parse_object((await endpoint.get(path, TELL_SECONDS)).body).get("display_phone_number")
    except (NotSent, NoAnswer):
        return ""
    finally:
        await endpoint.close()
    number = "".join(filter(str.isdigit, str(told or "")))
    return f"https://wa.me/{number}?text={code}" if number else ""


def message_body(to: Address, message: Outgoing, outbox_id: str, media: str = "") -> dict[str, Any]:
    """Return the request as Meta documents it; `recipient` (a business-scoped id) only without a phone."""
    body: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "recipient_type": "group" if to.group else "individual",
        "biz_opaque_callback_data": outbox_id,
    }
    if to.group:
        body["to"] = to.group
    elif to.phone:
        body["to"] = digits(to.phone)
    else:
        body["recipient"] = to.user_id
    if message.quoted:
        body["context"] = {"message_id": message.quoted}
    if (file := message.file) is not None:
        block: dict[str, Any] = {"id": media}
        if file.kind == "document":
            block["filename"] = file.name
        elif file.mime_type == "audio/ogg":
            block["voice"] = True  # Ogg Opus is shown as a voice note
        return {**body, "type": file.kind, file.kind: block}
    if message.template is not None:
        return {**body, "type": "template", "template": _template(message.template, message.text)}
    if action := _action(message):
        return {**body, "type": "interactive", "interactive": {**action, "body": {"text": message.text}}}
    return {**body, "type": "text", "text": {"body": message.text, "preview_url": False}}


def _action(message: Outgoing) -> dict[str, Any]:
    """Return the kind and the action of an interactive message, {} for another one."""
    if message.buttons:
        buttons = [{"type": "reply", "reply": {"id": one.id, "title": one.title}} for one in message.buttons]
        return {"type": "button", "action": {"buttons": buttons}}
    if message.rows:
        rows = [{"id": one.id, "title": one.title} for one in message.rows]
        return {"type": "list", "action": {"button": message.label, "sections": [{"rows": rows}]}}
    if message.link is not None:
        parameters = {"display_text": message.link.title, "url": message.link.url}
        return {"type": "cta_url", "action": {"name": "cta_url", "parameters": parameters}}
    if message.asks_location:
        return {"type": "location_request_message", "action": {"name": "send_location"}}
    return {}


def _template(template: Template, text: str) -> dict[str, Any]:
    """Return a template with the text in its place: Meta takes no line breaks and no long runs of spaces."""
    values = template.parameters if template.is_filled else (on_one_line(text, TEMPLATE_TEXT),)
    parameters = [{"type": "text", "text": value} for value in values]
    return {
        "name": template.name,
        "language": {"code": template.language},
        "components": [{"type": "body", "parameters": parameters}] if parameters else [],
    }
