"""Times of the day, from the words for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time

from app.calendar.grammar import number

HOURS = {"morning": 9, "afternoon": 15, "night": 20, "dawn": 5}
"""What a part of the day means where no hour is named."""


@dataclass(frozen=True, slots=True)
class Clock:
    hour: int
    minute: int = 0
    is_certain: bool = True
    """Whether it says which half of the day, or leaves no doubt."""


def clock_time(said: Mapping[str, str], part: str) -> Clock:
    """The time that the groups of its pattern say, in a part of the day ("" where none is named).

    Raises ValueError for what is no time of the day.
    """
    hour = number(said.get("hour") or said["hour2"])
    minute = int(said.get("minute") or said.get("minute2") or 0)
    if "past" in said:
        minutes = 30 if said["past"] == "half" else 15
        hour, minute = (hour, minutes) if said["side"] == "past" else (hour - 1, 60 - minutes)
    if "plus" in said:
        minute = {"media": 30, "meia": 30, "cuarto": 15}.get(said["plus"]) or number(said["plus"])
    if "minus" in said:
        minute = 60 - (15 if said["minus"] == "cuarto" else int(said["minus"]))
        hour -= 1
    half = (said.get("ampm") or said.get("ampm2") or "")[:1]
    if half and not 1 <= hour <= 12:
        half = ""
    if half == "p" or (part == "afternoon" and hour < 12) or (part == "night" and 5 <= hour < 12):
        hour = hour % 12 + 12
    elif half == "a" or part in ("morning", "dawn") or (part == "night" and hour in (12, 24)):
        hour %= 12 if hour == 12 or part == "night" else 24
    time(0 if hour == 24 else hour, minute)  # raises
    written = said.get("hour", "").startswith("0") or hour == 0
    return Clock(hour % 24, minute, bool(half or part) or hour >= 12 or written)
