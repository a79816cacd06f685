"""The stand-in's refusals in Meta's form, and switches that make it misbehave as the real API can."""

import secrets
from collections.abc import Mapping
from typing import Required

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.responses import JSONResponse, Response
from typing_extensions import TypedDict

from app.errors import RecadoError
from app.messages import JSON

_HREF = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"

CONSEQUENCES = {  # Meta's codes and their titles, by what a sender has to do about them
    "retry": {
        1: "API unknown",
        2: "Service temporarily unavailable",
        4: "Application request limit reached",
        80007: "Rate limit issues",
        130429: "Rate limit hit",
        131000: "Something went wrong",
        131016: "Service unavailable",
        131052: "Media download error",
        131053: "Media upload error",
        131056: "(Business Account, Consumer Account) pair rate limit hit",
        131057: "Account in maintenance mode",
        133016: "Account register or deregister rate limit exceeded",
    },
    "operator": {
        0: "AuthException",
        3: "Capability or permissions issue",
        10: "Permission denied",
        33: "Business phone number deleted or not known to the token",
        190: "Invalid OAuth access token",
        200: "Permission not granted or removed",
        368: "Temporarily blocked for policies violations",
        130497: "Business account is restricted from messaging users in this country",
        131005: "Access denied",
        131031: "Account has been locked",
        131037: "Display name approval needed",
        131042: "Business eligibility payment issue",
        131045: "Phone number registration error",
        131048: "Spam rate limit hit",
        131064: "Account issue",
        133010: "Phone number not registered",
    },
    "template": {131047: "Re-engagement message"},
    "give_up": {
        100: "Invalid parameter",
        130472: "User's number is part of an experiment",
        131008: "Required parameter is missing",
        131009: "Parameter value is not valid",
        131021: "Recipient cannot be sender",
        131026: "Message undeliverable",
        131030: "Recipient phone number not in allowed list",
        131049: "Not delivered, to maintain healthy ecosystem engagement",
        131050: "Recipient has stopped marketing messages",
        131051: "Unsupported message type",
        131062: "Business-scoped user ID is not supported for this message",
        132000: "Template parameter count mismatch",
        132001: "Template does not exist in the translation",
        132005: "Template hydrated text too long",
        132007: "Template format character policy violated",
        132012: "Template parameter format mismatch",
        132015: "Template is paused",
        132016: "Template is disabled",
        132068: "Flow is blocked",
        132069: "Flow is throttled",
        135000: "Generic user error",
        137000: "Message cannot be sent to this user",
    },
}

_TITLES = {code: title for codes in CONSEQUENCES.values() for code, title in codes.items()}

_STATUSES = {  # HTTP; of other codes 400
    **dict.fromkeys((0, 190), 401),
    **dict.fromkeys((3, 10, 200, 368, 130497, 131005, 131031), 403),
    **dict.fromkeys((4, 80007, 130429, 131056), 429),
    131000: 500,
    **dict.fromkeys((2, 131016, 131057), 503),
}


class Refusal(RecadoError):
    """A refused call, answered with one of Meta's errors.

    `status` is the HTTP status (by default the one that belongs to the code), `retry_after` seconds.
    """

    def __init__(
        self, code: int, details: str = "", *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(f"(#{code}) {title_of(code)}: {details}")
        self.code = code
        self.details = details or title_of(code)
        self.status = status or _STATUSES.get(code, 400)
        self.retry_after = retry_after

    def answer(self) -> Response:
        headers = {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}
        return JSONResponse(self.as_json(), self.status, headers)

    def as_json(self) -> JSON:
        """Return the body of the HTTP answer."""
        error: dict[str, JSON] = {
            "message": f"(#{self.code}) {title_of(self.code)}",
            "type": "OAuthException",
            "code": self.code,
            "error_data": {"messaging_product": "whatsapp", "details": self.details},
            "fbtrace_id": secrets.token_urlsafe(17),
        }
        if self.status == 429 or self.status >= 500:
            error["is_transient"] = True
        return {"error": error}


def title_of(code: int) -> str:
    return _TITLES.get(code, "Something went wrong")


def status_error(code: int) -> JSON:
    """Return an error in the form of a `failed` status."""
    title = title_of(code)
    return {
        "code": code,
        "title": title,
        "message": title,
        "error_data": {"details": title},
        "href": _HREF,
    }


class Script(TypedDict, total=False):
    """A scripted answer to one send: `accept` takes it and reports the failure in a status afterwards."""

    code: Required[int]
    status: int
    details: str
    retry_after: float
    accept: bool


class Faults(BaseModel):
    """The switches; all are off by default."""

    model_config = ConfigDict(strict=True, extra="forbid")

    duplicate: int = Field(1, ge=1, le=20)  # every webhook body is posted this many times at once
    delay: float = Field(0, ge=0, le=600)  # seconds between accepting a send and answering it
    fail: list[Script | None] = []  # one script for each of the next sends; null lets one pass
    drop_after_accept: int = Field(0, ge=-1, le=1_000_000)  # so many sends are never answered; -1: all
    offline: bool = False  # every call is answered 503
    hold_statuses: bool = False  # statuses wait until this is switched off
    webhook_delay: float = Field(0, ge=0, le=600)  # seconds that every webhook waits before it goes out
    reorder: bool = False  # waiting webhooks go out in random order
    batch: int = Field(1, ge=1, le=1000)  # so many waiting webhooks share one body
    rates: bool = False  # Meta's limits of sends a second are enforced
    clock_ahead: float = Field(0, ge=0, le=10_000_000)  # seconds added to the age of a person's last message

    def update(self, changes: Mapping[str, JSON]) -> None:
        """Set the named switches, or raise ValueError and set none."""
        try:
            checked = Faults.model_validate(changes)
        except ValidationError as error:
            fault = error.errors()[0]
            raise ValueError(f"switch {fault['loc'][0]!r}: {fault['msg']}") from None
        for name in checked.model_fields_set:
            setattr(self, name, getattr(checked, name))

    def next_script(self) -> Script | None:
        """Take the script of the next send, None if it has none."""
        return self.fail.pop(0) if self.fail else None

    def next_drop(self) -> bool:
        """Count an accepted send; return True if it is to stay unanswered."""
        if self.drop_after_accept > 0:
            self.drop_after_accept -= 1
            return True
        return self.drop_after_accept < 0


def fault_bounds() -> dict[str, tuple[float, float]]:
    """Return the least and the most of each switch that is a number."""
    described = Faults.model_json_schema()["properties"]
    return {name: (one["minimum"], one["maximum"]) for name, one in described.items() if "minimum" in one}
