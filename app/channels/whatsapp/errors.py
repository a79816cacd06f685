"""Meta's error codes: what the sender does about each, and what the operator is told."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson
import yaml

from app.i18n import lazy
from app.messages import Accepted, Refused, SendResult, Unknown, mapping, seconds_in

Then = Literal["retry", "hold", "template", "give_up"]
NOT_ON_TEST_LIST = 131030
NO_SUCH_NUMBER = 33  # a deleted number; as a subcode: a number that the token does not reach
PAIR_RATE = 131056
UPLOAD_FAILED = 131053

_WRITTEN = yaml.safe_load(Path(__file__).with_name("errors.yaml").read_text("utf-8"))
TITLES: Mapping[int, str] = _WRITTEN["titles"]
STATUSES: Mapping[int, int] = _WRITTEN["statuses"]
_CURES: Mapping[int | str | None, str] = {  # by code, else by what the sender does
    33: lazy("WHATSAPP_PHONE_NUMBER_ID is none that the token reaches: correct one of them and restart"),
    190: lazy("the access token is invalid or expired: set a new WHATSAPP_ACCESS_TOKEN and restart"),
    131030: lazy(
        "a test number only reaches the numbers on its list: add the person's number there (API setup)"
    ),
    133010: lazy("the number is not registered: do it at WhatsApp > API Setup; messages wait for it"),
    "template": lazy("the person last wrote more than 24 hours ago: only approved templates reach them"),
    "hold": lazy("messages wait until this is mended at Meta"),
    "retry": lazy("it is tried again until it works"),
    "give_up": lazy("the message was given up"),
}


def _codes(written: str) -> Iterator[int]:
    for first, _, last in (part.partition("-") for part in str(written).split()):
        yield from range(int(first), int(last or first) + 1)


THEN: Mapping[int, Then] = {
    code: then for then, listed in _WRITTEN["then"].items() for code in _codes(listed)
}


def read_response(status: int, body: bytes, retry_after: str | None = None) -> SendResult:
    """Return what an answer of the Graph API means."""
    data = parse_object(body)
    if not 200 <= status < 300:
        return replace(read_refusal(status, data, retry_after), may_have_arrived=status >= 500)
    messages = data.get("messages")
    message_id = mapping(messages[0]).get("id") if isinstance(messages, list) and messages else None
    if isinstance(message_id, str) and message_id:
        return Accepted(message_id)
    return Unknown("accepted without a message id")


def read_refusal(status: int, data: dict[str, Any], retry_after: str | None) -> Refused:
    """Return what an error of the Graph API asks for."""
    after = seconds_in(retry_after)
    error = mapping(data.get("error"))
    code = error.get("code")
    code = code if isinstance(code, int) else -1
    if code == 100 and error.get("error_subcode") == NO_SUCH_NUMBER:
        code = NO_SUCH_NUMBER
    detail = mapping(error.get("error_data")).get("details")
    text = f"{status} {code}: {detail or error.get('message') or 'no reason given'}"[:500]
    then = THEN.get(code, "hold" if status in (401, 403) else "give_up")
    if then != "hold" and (status == 429 or status >= 500):
        then = "retry"
    return Refused(then, code, text, after if then == "retry" else None)


def send_alert(result: Refused) -> str:
    """Return the operator's alert, with the cure if it is known."""
    cure = _CURES.get(result.code) or _CURES[result.then]
    return lazy("sending failed with {detail}; {cure}", detail=result.detail, cure=cure)


def parse_object(body: bytes) -> dict[str, Any]:
    """Return a JSON object, {} for anything else."""
    try:
        return mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}
