"""The stand-in's refusals in Meta's form, and switches that make it misbehave as the real API can."""

import secrets
from collections.abc import Mapping
from typing import Required

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict

from app.channels.whatsapp.errors import STATUSES, TITLES
from app.errors import RecadoError
from app.messages import JSON


class Refusal(HTTPException):
    """A refused call: one of Meta's errors, which the application answers as `{"error": detail}`.

    `status` is the HTTP status (by default the one that belongs to the code), `retry_after` seconds.
    """

    def __init__(
        self, code: int, details: str = "", *, status: int | None = None, retry_after: float | None = None
    ) -> None:
        status = status or STATUSES.get(code, 400)
        self.code = code
        self.details = details or _title(code)
        error: dict[str, JSON] = {
            "message": f"(#{code}) {_title(code)}",
            "type": "OAuthException",
            "code": code,
            "error_data": {"messaging_product": "whatsapp", "details": self.details},
            "fbtrace_id": secrets.token_urlsafe(17),
        }
        if status == 429 or status >= 500:
            error["is_transient"] = True
        super().__init__(status, error, {} if retry_after is None else {"Retry-After": f"{retry_after:g}"})


def status_error(code: int) -> JSON:
    """Return an error in the form of a `failed` status."""
    title = _title(code)
    return {"code": code, "title": title, "message": title, "error_data": {"details": title}}


def _title(code: int) -> str:
    return TITLES.get(code, "Something went wrong")


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
    batch: int = Field(1, ge=1, le=1000)  # so many waiting webhooks share one body
    clock_ahead: float = Field(0, ge=0, le=10_000_000)  # seconds added to the age of a person's last message

    def update(self, changes: Mapping[str, JSON]) -> None:
        """Set the named switches, or raise RecadoError and set none."""
        try:
            checked = Faults.model_validate(changes)
        except ValidationError as error:
            fault = error.errors()[0]
            raise RecadoError(f"switch {fault['loc'][0]!r}: {fault['msg']}") from None
        for name in checked.model_fields_set:
            setattr(self, name, getattr(checked, name))

    def next_drop(self) -> bool:
        """Count an accepted send; return True if it is to stay unanswered."""
        if self.drop_after_accept > 0:
            self.drop_after_accept -= 1
            return True
        return self.drop_after_accept < 0
