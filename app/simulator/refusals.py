"""Errors of the Graph API: Meta's codes, their titles, and the answers that carry them."""

import secrets

from starlette.responses import JSONResponse, Response

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
