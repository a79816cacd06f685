"""Refusals of the stand-in in Meta's form, and switches that make it misbehave as the real API can."""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Required

import yaml
from fastapi import HTTPException
from pydantic import BaseModel, Field, ValidationError
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


def unknown_object(id: str) -> Refusal:
    return Refusal(100, f"Object with ID {id[:40]!r} does not exist or cannot be loaded.")


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


class Faults(BaseModel, strict=True, extra="forbid"):
    """The switches; all are off by default."""

    duplicate: int = Field(1, ge=1, le=20)  # every webhook body is posted this many times at once
    delay: float = Field(0, ge=0, le=600)  # seconds between accepting a send and answering it
    fail: list[Script | None] = []  # one script for each of the next sends; null lets one pass
    drop_after_accept: int = Field(0, ge=-1, le=1_000_000)  # so many sends are never answered; -1: all
    offline: bool = False  # every call is answered 503
    hold_statuses: bool = False  # statuses wait until this is switched off
    batch: int = Field(1, ge=1, le=1000)  # so many waiting webhooks share one body
    shuffle: bool = False  # the waiting webhooks of a person go out in any order
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


_INVALID, _MISSING, _BAD_VALUE = 100, 131008, 131009  # Meta's codes

Bounds = Mapping[str, tuple[int, int]]  # by path: the least and the most characters, or parts of a list

LIMITS = yaml.safe_load(Path(__file__).with_name("limits.yaml").read_text("utf-8"))
_KINDS: Mapping[str, Bounds] = LIMITS["kinds"]
_ACTIONS: Mapping[str, Bounds] = LIMITS["actions"]  # of interactive messages
_DISTINCT = ("buttons.reply.id", "buttons.reply.title", "sections.rows.id")
_MOST_ROWS = 10  # of all sections together


def check_message(body: Mapping[str, JSON]) -> str:
    """Return the type of a message whose form the Graph API accepts, or raise Refusal.

    The recipient, the 24-hour window and media ids are not looked at.
    """
    _check(body, LIMITS["envelope"], _INVALID)
    if body.get("messaging_product") != "whatsapp" or not (body.get("to") or body.get("recipient")):
        raise Refusal(_INVALID, "The parameters messaging_product and to are required.")
    kind = body.get("type", "text")
    if kind not in _KINDS:
        raise Refusal(_INVALID, f"Param type must be one of {', '.join(_KINDS)}.")
    block = body.get(kind)
    if block is None:
        raise Refusal(_MISSING, f"Required parameter is missing: {kind}")
    _check(block, _KINDS[kind], _INVALID if kind == "text" else _BAD_VALUE)
    if kind == "interactive":
        _check_action(block)
    return str(kind)


def _check_action(block: Mapping[str, JSON]) -> None:
    action, bounds = block.get("action"), _ACTIONS.get(str(block.get("type")))
    if bounds is None:
        raise Refusal(_BAD_VALUE, f"Param interactive.type must be one of {', '.join(_ACTIONS)}.")
    _check(action, bounds, _BAD_VALUE)
    for path in _DISTINCT:
        values = [str(value) for value in _at(action, path) if value is not None]
        if len(set(values)) < len(values):
            raise Refusal(_BAD_VALUE, f"{path} must be unique within a message.")
    if len(_at(action, "sections.rows.id")) > _MOST_ROWS:
        raise Refusal(_BAD_VALUE, f"There are more than {_MOST_ROWS} rows.")


def _check(block: JSON, bounds: Bounds, code: int) -> None:
    for path, (least, most) in bounds.items():
        for value in _at(block, path):
            if value is None and least:
                raise Refusal(_MISSING, f"Required parameter is missing: {path}")
            is_text = isinstance(value, str) and (value.strip() or not least)
            if value is not None and not (
                (is_text or isinstance(value, list)) and least <= len(value) <= most
            ):
                raise Refusal(code, f"Param {path} must have {least} to {most} characters or parts.")


def _at(block: JSON, path: str) -> list[JSON]:
    """Return the values at a path, through every part of the lists on the way; None where there is none."""
    found = [block]
    for name in path.split("."):
        parts = [part for one in found for part in (one if isinstance(one, list) else [one])]
        found = [part.get(name) if isinstance(part, dict) else None for part in parts]
    return found
