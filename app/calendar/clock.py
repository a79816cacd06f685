"""Times of day as people say them: "half past seven", "10 para las 9", "at 5 in the afternoon"."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time

from app.calendar.grammar import PARTS, Piece, number

# the hour that a part of the day stands for where none is named, and those that it may have
HOURS = {"morning": 9, "afternoon": 15, "night": 20, "dawn": 5}
_HOURS_OF = {
    "dawn": range(7),
    "morning": range(1, 12),
    "afternoon": range(12, 21),
    "night": (*range(17, 24), *range(6)),
}


@dataclass(frozen=True, slots=True)
class Clock:
    hour: int
    minute: int = 0
    is_certain: bool = True  # it says which half of the day, or leaves no doubt


def clock_time(said: Mapping[str, str], part: str) -> Clock:
    """Return the time of day that a pattern's groups name, in a part of the day ("" if none is named).

    Raise ValueError if there is no such time.
    """
    hour = number(said.get("hour") or said["hour2"])
    minute = int(said.get("minute") or said.get("minute2") or 0)
    if "past" in said:
        minutes = 30 if said["past"] == "half" else 15
        hour, minute = (hour, minutes) if said.get("side") != "to" else ((hour - 1) or 12, 60 - minutes)
    if "plus" in said:
        minute = {"media": 30, "meia": 30, "cuarto": 15}.get(said["plus"]) or number(said["plus"])
    if "minus" in said:
        minute = 60 - (15 if said["minus"] == "cuarto" else number(said["minus"]))
        hour = (hour - 1) or 12
    half = (said.get("ampm") or said.get("ampm2") or "")[:1]
    written = hour == 0 or (said.get("hour", "").startswith("0") and "part" not in said)
    is_certain = bool(half) or hour > 12 or written
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    if part:  # "tomorrow evening at 7 am" is no time
        halves = (hour % 24,) if is_certain else (hour % 12 + 12, hour % 12)
        hour = next((one for one in halves if one in _HOURS_OF[part]), 99)
    time(0 if hour == 24 else hour, minute)  # raises
    return Clock(hour % 24, minute, bool(part) or is_certain or hour == 12)


def clock_of(piece: Piece, part: str) -> Clock:
    """Return the time that a piece names, in its own part of the day or else in this one."""
    if piece.kind in ("noon", "midnight"):
        return clock_time({"hour": "12", "ampm": "p" if piece.kind == "noon" else "a"}, part)
    own = PARTS[piece.said["part"]] if "part" in piece.said else part
    if part and own != part:
        raise ValueError("two parts of the day disagree")
    return clock_time(piece.said, own)
