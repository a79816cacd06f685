"""How the Graph API says no."""

import secrets

from app.errors import RecadoError
from app.messages import JSON

_HREF = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"

_TITLES = {
    0: "AuthException",
    2: "Service temporarily unavailable",
    3: "Capability or permissions issue",
    4: "Application request limit reached",
    10: "Permission denied",
    100: "Invalid parameter",
    190: "Invalid OAuth access token",
    368: "Temporarily blocked for policies violations",
    80007: "Rate limit issues",
    130429: "Rate limit hit",
    130472: "User's number is part of an experiment",
    130497: "Business account is restricted from messaging users in this country",
    131000: "Something went wrong",
    131008: "Required parameter is missing",
    131009: "Parameter value is not valid",
    131016: "Service unavailable",
    131021: "Recipient cannot be sender",
    131026: "Message undeliverable",
    131030: "Recipient phone number not in allowed list",
    131031: "Account has been locked",
    131042: "Business eligibility payment issue",
    131047: "Re-engagement message",
    131048: "Spam rate limit hit",
    131051: "Unsupported message type",
    131052: "Media download error",
    131053: "Media upload error",
    131056: "(Business Account, Consumer Account) pair rate limit hit",
    131057: "Account in maintenance mode",
    131062: "Business-scoped user ID is not supported for this message",
    132001: "Template does not exist in the translation",
}

_STATUSES = {
    2: 503,
    3: 403,
    4: 429,
    10: 403,
    190: 401,
    80007: 429,
    130429: 429,
    131000: 500,
    131016: 503,
    131056: 429,
    131057: 503,
}


class Refusal(RecadoError):
    """A call that is answered with one of Meta's errors.

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

    def as_json(self) -> JSON:
        """The body of the HTTP answer."""
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
    """An error as a `failed` status carries it."""
    title = title_of(code)
    return {
        "code": code,
        "title": title,
        "message": title,
        "error_data": {"details": title},
        "href": _HREF,
    }
