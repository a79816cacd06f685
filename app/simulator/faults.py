"""Switches that make the stand-in misbehave as the real one can."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from app.messages import JSON


@dataclass(slots=True)
class Faults:
    """How the stand-in misbehaves; everything is off by default.

    - `duplicate`: every webhook body is posted this many times at once.
    - `delay`: seconds between accepting a send and answering it.
    - `fail`: scripted answers for the next sends, one each, first to last:
      `{"status": 429, "code": 130429, "retry_after": 2, "details": "…"}` refuses (only `code` is needed);
      `{"code": 131026, "accept": true}` accepts and posts a `failed` status afterwards; `null` lets one pass.
    - `drop_after_accept`: the next so many sends are accepted and never answered; -1: all of them.
    - `offline`: every Graph call is answered 503.
    - `hold_statuses`: statuses wait until this is switched off.
    - `webhook_delay`: seconds that every webhook waits first, so that there is something to reorder or batch.
    - `reorder`: webhooks that wait go out in random order.
    - `batch`: up to this many waiting webhooks share one body, whoever they are from.
    - `rates`: the limits of 80 sends a second and of a pair (45 at once, one in 6 s) are enforced.
    - `clock_ahead`: seconds added to the age of a person's last message when the 24-hour window is asked.
    """

    duplicate: int = 1
    delay: float = 0.0
    fail: list[JSON] = field(default_factory=list)
    drop_after_accept: int = 0
    offline: bool = False
    hold_statuses: bool = False
    webhook_delay: float = 0.0
    reorder: bool = False
    batch: int = 1
    rates: bool = False
    clock_ahead: float = 0.0

    def update(self, changes: Mapping[str, JSON]) -> None:
        """Sets what `changes` names, or raises ValueError and sets nothing."""
        checked = {name: _checked(name, value) for name, value in changes.items()}
        for name, value in checked.items():
            setattr(self, name, value)

    def as_json(self) -> dict[str, JSON]:
        return asdict(self)

    def next_script(self) -> Mapping[str, JSON]:
        """Takes the script for one send; empty where there is none."""
        return (self.fail.pop(0) or {}) if self.fail else {}

    def next_drop(self) -> bool:
        """Whether this accepted send is to stay unanswered."""
        if self.drop_after_accept > 0:
            self.drop_after_accept -= 1
            return True
        return self.drop_after_accept < 0


BOUNDS = {
    "duplicate": (1, 20),
    "delay": (0, 600),
    "webhook_delay": (0, 600),
    "drop_after_accept": (-1, 1_000_000),
    "batch": (1, 1000),
    "clock_ahead": (0, 10_000_000),
}
"""The least and the most of each number."""

_SECONDS = frozenset({"delay", "webhook_delay", "clock_ahead"})
_SWITCHES = frozenset({"offline", "hold_statuses", "reorder", "rates"})


def _checked(name: str, value: JSON) -> JSON:
    if name in _SWITCHES and isinstance(value, bool):
        return value
    if name in BOUNDS and isinstance(value, int | float) and not isinstance(value, bool):
        low, high = BOUNDS[name]
        if low <= value <= high:
            return float(value) if name in _SECONDS else int(value)
    if name == "fail" and isinstance(value, list) and all(map(_is_script, value)):
        return list(value)
    raise ValueError(f"fault {name!r} is unknown or cannot be {value!r}")


def _is_script(script: JSON) -> bool:
    if script is None:
        return True
    return (
        isinstance(script, dict)
        and isinstance(script.get("code"), int)
        and isinstance(script.get("status", 400), int)
        and isinstance(script.get("retry_after", 0), int | float)
    )
