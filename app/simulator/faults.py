"""Switches that make the stand-in misbehave as the real Graph API can."""

from collections.abc import Mapping
from typing import Required

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import TypedDict

from app.messages import JSON


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
