"""The client of Meta's Graph API: sending, uploading, typing."""

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
from app.http.endpoint import Endpoint, NoAnswer, NotSent, TooLong
from app.messages import (
    Accepted,
    Address,
    FetchFailed,
    MediaFile,
    Outgoing,
    Refused,
    SendResult,
    Template,
    Unknown,
)
from app.phones import digits, other_form
from app.text import Private

log = structlog.get_logger(__name__)

TEXT_LIMIT = 4096
TEMPLATE_TEXT = 900  # characters of ours in a template, whose whole body has at most 1024
SEND_SECONDS = 25.0
UPLOAD_SECONDS = 60.0
DOWNLOAD_SECONDS = 60.0
CONNECTIONS = 100
# Where Meta keeps what people sent: https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media
MEDIA_HOSTS = (".fbsbx.com", ".fbcdn.net", ".whatsapp.net")


class GraphClient:
    """Sends from one business number. Never raises for what the other side does."""

    def __init__(self, api_url: str, phone_number_id: str, access_token: str) -> None:
        self._messages = f"/{phone_number_id}/messages"
        self._media = f"/{phone_number_id}/media"
        headers = {"Authorization": f"Bearer {access_token}"}
        self._endpoint = Endpoint(api_url, headers, connections=CONNECTIONS)
        address = urlsplit(api_url)
        self._origin = (address.scheme, address.netloc)

    async def close(self) -> None:
        await self._endpoint.close()

    async def send(self, to: Address, message: Outgoing, outbox_id: str, media: str = "") -> SendResult:
        """Send one message; `media` is the id that `upload` returned for its file.

        If a test list does not know the number, try its other national form.
        """
        result = await self._post(message_body(to, message, outbox_id, media))
        other = other_form(to.phone)
        if isinstance(result, Refused) and result.code == NOT_ON_TEST_LIST and other:
            there = Address(other, to.user_id, to.group)
            again = await self._post(message_body(there, message, outbox_id, media))
            if isinstance(again, Accepted):
                return Accepted(again.message_id, phone=other)
            if not isinstance(again, Refused):
                return again
        return result

    async def upload(self, file: MediaFile, data: bytes) -> str | Refused:
        """Return Meta's id for a file. A failure is never unknown, because uploading twice does no harm."""
        form = httpx2.Request(
            "POST",
            self._media,
            data={"messaging_product": "whatsapp", "type": file.mime_type},
            files={"file": (file.name, data, file.mime_type)},
        )
        try:
            answer = await self._endpoint.post(
                self._media, form.read(), UPLOAD_SECONDS, form.headers["content-type"]
            )
        except NotSent as error:
            return Refused("retry", detail=str(error))
        except NoAnswer as error:
            return Refused("retry", UPLOAD_FAILED, f"the upload: {error}")
        if not 200 <= answer.status < 300:
            return read_refusal(answer.status, parse_object(answer.body), answer.retry_after)
        given = parse_object(answer.body).get("id")
        if isinstance(given, str) and given:
            return given
        return Refused("retry", UPLOAD_FAILED, "the upload was answered without an id")

    async def fetch(self, media_id: str, target: Path, limit: int) -> None:
        """Write a file that somebody sent into `target`. Raises FetchFailed.

        Its address is asked for first: it lives five minutes, so each try asks for a new one.
        """
        described = await self._described(media_id)
        size = str(described.get("file_size", ""))
        if size.isdecimal() and int(size) > limit:
            raise FetchFailed("too_large")
        url = str(described.get("url", ""))
        if not self._may_have_token(url):
            raise FetchFailed("gone")
        try:
            answer = await self._endpoint.download(url, target, limit, DOWNLOAD_SECONDS)
        except TooLong as error:
            raise FetchFailed("too_large") from error
        except (NotSent, NoAnswer) as error:
            raise FetchFailed("away", again=True) from error
        if answer.status != 200:
            raise FetchFailed("gone" if answer.status < 500 else "away", again=True)

    async def _described(self, media_id: str) -> dict[str, Any]:
        """Return what Meta says of a file: `url`, `file_size`, `mime_type`. Raises FetchFailed."""
        try:
            answer = await self._endpoint.get(f"/{quote(media_id, safe='')}", SEND_SECONDS)
        except (NotSent, NoAnswer) as error:
            raise FetchFailed("away", again=True) from error
        if answer.status != 200:
            away = answer.status >= 500 or answer.status == 429
            raise FetchFailed("away" if away else "gone", again=away)
        return parse_object(answer.body)

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

    async def typing(self, message_id: str) -> None:
        """Mark a message as read and show typing for 25 s or until the reply."""
        body = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": message_id,
            "typing_indicator": {"type": "text"},
        }
        try:
            await self._endpoint.post(self._messages, orjson.dumps(body), SEND_SECONDS)
        except (NotSent, NoAnswer) as error:
            log.debug("typing not shown", error=Private(error))

    async def _post(self, body: dict[str, Any]) -> SendResult:
        try:
            answer = await self._endpoint.post(self._messages, orjson.dumps(body), SEND_SECONDS)
        except NotSent as error:
            return Refused("retry", detail=str(error))
        except NoAnswer as error:
            return Unknown(str(error))
        return read_response(answer.status, answer.body, answer.retry_after)


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
    if message.file is not None:
        return {**body, "type": message.file.kind, message.file.kind: {"id": media, **_file(message.file)}}
    if message.template is not None:
        return {**body, "type": "template", "template": _template(message.template, message.text)}
    if action := _action(message):
        return {**body, "type": "interactive", "interactive": {**action, "body": {"text": message.text}}}
    return {**body, "type": "text", "text": {"body": message.text, "preview_url": False}}


def _file(file: MediaFile) -> dict[str, Any]:
    """Return what a file's block says beside its id: Ogg Opus is shown as a voice note."""
    if file.kind == "document":
        return {"filename": file.name}
    return {"voice": True} if file.mime_type == "audio/ogg" else {}


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
    bare = " ".join(text.split())
    bare = bare if len(bare) <= TEMPLATE_TEXT else f"{bare[: TEMPLATE_TEXT - 1]}…"
    values = template.parameters if template.is_filled else (bare,)
    parameters = [{"type": "text", "text": value} for value in values]
    return {
        "name": template.name,
        "language": {"code": template.language},
        "components": [{"type": "body", "parameters": parameters}] if parameters else [],
    }
