"""The Graph API: sending, typing, and what each of Meta's errors means for us."""

from typing import Any

import orjson
import structlog

from app.channels.whatsapp.uploads import UPLOAD_SECONDS, upload_form
from app.http.endpoint import Endpoint, NoAnswer, NotSent
from app.messages import (
    Accepted,
    Address,
    MediaFile,
    Outgoing,
    Refused,
    SendResult,
    Template,
    Unknown,
    seconds_in,
)
from app.phones import digits, other_form

log = structlog.get_logger(__name__)

TEXT_LIMIT = 4096
TEMPLATE_TEXT = 900
"""Characters of ours in a template: its whole body has at most 1024."""
SEND_SECONDS = 25.0
CONNECTIONS = 100

# What Meta's error codes ask for (facts gathered from its documents, November 2026).
RETRY = frozenset({1, 2, 4, 80007, 130429, 131056, 131000, 131016, 131057, 133016, 131052, 131053})
HOLD = frozenset(
    {0, 3, 10, 33, 190, 368, 130497, 131005, 131031, 131037, 131042, 131045, 131048, 131064, 133010}
    | {*range(200, 300)}
)
TEMPLATE = frozenset({131047})
NOT_ON_TEST_LIST = 131030
GIVE_UP = frozenset(
    {100, 130472, 131008, 131009, 131021, 131026, NOT_ON_TEST_LIST, 131049, 131050, 131051, 131062}
    | {*range(132000, 132070), 135000, 137000}
)
NO_SUCH_NUMBER = 33
"""Meta's code for a deleted number, and its subcode for an id of a number that the token does not reach."""
UPLOAD_FAILED = 131053


class GraphClient:
    """Sends to one business number. Never raises for what the other side does."""

    def __init__(
        self,
        api_url: str,
        phone_number_id: str,
        access_token: str,
    ) -> None:
        self._messages = f"/{phone_number_id}/messages"
        self._media = f"/{phone_number_id}/media"
        headers = {"Authorization": f"Bearer {access_token}"}
        self._endpoint = Endpoint(api_url, headers, connections=CONNECTIONS)

    async def close(self) -> None:
        await self._endpoint.close()

    async def send(self, to: Address, message: Outgoing, outbox_id: str, media: str = "") -> SendResult:
        """Sends one message; `media` is what `upload` gave for its file.

        A number that a test list knows only in its other national form is tried so.
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
        """Meta's id for a file that is sent next. Nothing here is unknown: to upload twice does no harm."""
        body, content_type = upload_form(file, data)
        try:
            answer = await self._endpoint.post(self._media, body, UPLOAD_SECONDS, content_type)
        except NotSent as error:
            return Refused("retry", detail=str(error))
        except NoAnswer as error:
            return Refused("retry", UPLOAD_FAILED, f"the upload: {error}")
        if not 200 <= answer.status < 300:
            return read_refusal(answer.status, _object(answer.body), answer.retry_after)
        given = _object(answer.body).get("id")
        if isinstance(given, str) and given:
            return given
        return Refused("retry", UPLOAD_FAILED, "the upload was answered without an id")

    async def typing(self, message_id: str) -> None:
        """Marks a message read and shows typing for 25 s or until the reply."""
        body = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": message_id,
            "typing_indicator": {"type": "text"},
        }
        try:
            await self._endpoint.post(self._messages, orjson.dumps(body), SEND_SECONDS)
        except (NotSent, NoAnswer) as error:
            log.debug("typing not shown", error=str(error))

    async def _post(self, body: dict[str, Any]) -> SendResult:
        try:
            answer = await self._endpoint.post(self._messages, orjson.dumps(body), SEND_SECONDS)
        except NotSent as error:
            return Refused("retry", detail=str(error))
        except NoAnswer as error:
            return Unknown(str(error))
        return read_response(answer.status, answer.body, answer.retry_after)


def message_body(to: Address, message: Outgoing, outbox_id: str, media: str = "") -> dict[str, Any]:
    """The request as Meta documents it; `recipient` (a business-scoped id) only where there is no phone."""
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
        named = {"filename": message.file.name} if message.file.kind == "document" else {}
        return {**body, "type": message.file.kind, message.file.kind: {"id": media, **named}}
    if message.template is not None:
        return {**body, "type": "template", "template": _template(message.template, message.text)}
    if message.buttons:
        buttons = [
            {"type": "reply", "reply": {"id": button.id, "title": button.title}} for button in message.buttons
        ]
        interactive = {"type": "button", "body": {"text": message.text}, "action": {"buttons": buttons}}
        return {**body, "type": "interactive", "interactive": interactive}
    return {**body, "type": "text", "text": {"body": message.text, "preview_url": False}}


def _template(template: Template, text: str) -> dict[str, Any]:
    """A template with the text in its place: Meta takes no line breaks there, and no long runs of spaces."""
    bare = " ".join(text.split())
    bare = bare if len(bare) <= TEMPLATE_TEXT else f"{bare[: TEMPLATE_TEXT - 1]}…"
    parameters = [{"type": "text", "text": bare}]
    return {
        "name": template.name,
        "language": {"code": template.language},
        "components": [{"type": "body", "parameters": parameters}],
    }


def read_response(status: int, body: bytes, retry_after: str | None = None) -> SendResult:
    """What an answer of the Graph API means."""
    data = _object(body)
    return _accepted(data) if 200 <= status < 300 else read_refusal(status, data, retry_after)


def read_refusal(status: int, data: dict[str, Any], retry_after: str | None) -> Refused:
    """What an error of the Graph API asks for."""
    after = seconds_in(retry_after)
    error = data.get("error")
    if not isinstance(error, dict):
        error = {}
    code = error.get("code")
    code = code if isinstance(code, int) else -1
    if code == 100 and error.get("error_subcode") == NO_SUCH_NUMBER:
        code = NO_SUCH_NUMBER
    details = error.get("error_data")
    detail = details.get("details") if isinstance(details, dict) else None
    text = f"{status} {code}: {detail or error.get('message') or 'no reason given'}"[:500]
    if code in HOLD or (status in (401, 403) and code not in RETRY | TEMPLATE | GIVE_UP):
        return Refused("hold", code, text)
    if code in RETRY or status == 429 or status >= 500:
        return Refused("retry", code, text, after)
    if code in TEMPLATE:
        return Refused("template", code, text)
    return Refused("give_up", code, text)


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return data if isinstance(data, dict) else {}


def _accepted(data: dict[str, Any]) -> SendResult:
    messages = data.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    message_id = first.get("id") if isinstance(first, dict) else None
    if not isinstance(message_id, str) or not message_id:
        return Unknown("accepted without a message id")
    return Accepted(message_id)
