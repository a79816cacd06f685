"""Meta's error codes: what the sender does about each, and what the operator is told."""

from typing import Any

import orjson

from app.channels.whatsapp.values import mapping
from app.messages import Accepted, Refused, SendResult, Unknown, seconds_in

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
NO_SUCH_NUMBER = 33  # a deleted number; as a subcode: a number that the token does not reach
NOT_REGISTERED = 133010
PAIR_RATE = 131056
UPLOAD_FAILED = 131053

_CURES: dict[int | str, str] = {
    190: "the access token is invalid or expired: set a new WHATSAPP_ACCESS_TOKEN and restart",
    NO_SUCH_NUMBER: (
        "WHATSAPP_PHONE_NUMBER_ID is none that the token reaches: correct one of them and restart"
    ),
    NOT_REGISTERED: "the number is not registered: do it at WhatsApp > API Setup; messages wait for it",
    NOT_ON_TEST_LIST: (
        "a test number only reaches the numbers on its list: add the person's number there (API setup)"
    ),
    "template": "the person last wrote more than 24 hours ago: only approved templates reach them",
    "hold": "messages wait until this is mended at Meta",
    "retry": "it is tried again until it works",
    "give_up": "the message was given up",
}


def read_response(status: int, body: bytes, retry_after: str | None = None) -> SendResult:
    """Return what an answer of the Graph API means."""
    data = parse_object(body)
    return _accepted(data) if 200 <= status < 300 else read_refusal(status, data, retry_after)


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
    if code in HOLD or (status in (401, 403) and code not in RETRY | TEMPLATE | GIVE_UP):
        return Refused("hold", code, text)
    if code in RETRY or status == 429 or status >= 500:
        return Refused("retry", code, text, after)
    if code in TEMPLATE:
        return Refused("template", code, text)
    return Refused("give_up", code, text)


def send_alert(result: Refused) -> str:
    """Return the operator's alert, with the cure if it is known."""
    cure = _CURES.get(result.code) or _CURES[result.then]
    return f"sending failed with {result.detail}; {cure}"


def parse_object(body: bytes) -> dict[str, Any]:
    """Return a JSON object, {} for anything else."""
    try:
        return mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        return {}


def _accepted(data: dict[str, Any]) -> SendResult:
    messages = data.get("messages")
    message_id = mapping(messages[0]).get("id") if isinstance(messages, list) and messages else None
    if not isinstance(message_id, str) or not message_id:
        return Unknown("accepted without a message id")
    return Accepted(message_id)
