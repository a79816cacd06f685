"""Words for moments and repetitions in three languages, as patterns (grammar.yaml) over folded text.

Each pattern stands for one kind of piece; `pieces` finds them, each word in one piece only.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import time
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from app.text import fold

_GRAMMAR = yaml.safe_load(Path(__file__).with_name("grammar.yaml").read_text("utf-8"))
_NAME = re.compile(r"\{([a-z_]+)\}")


def _by_word(name: str) -> Mapping[str, Any]:
    """Return what each word of a list stands for."""
    return {word: meant for meant, words in _GRAMMAR[name].items() for word in words.split()}


NUMBERS: Mapping[str, int] = _by_word("numbers")
UNITS: Mapping[str, str] = _by_word("units")
WEEKDAYS: Mapping[str, int] = _by_word("weekdays")
MONTHS: Mapping[str, int] = _by_word("months")
PARTS: Mapping[str, str] = _by_word("parts_of_day")
_PORTUGUESE_WEEKDAYS: Mapping[str, int] = _by_word("portuguese_weekdays")
DAYS_AGO: Mapping[str, int] = _by_word("days_ago")
KINDS = {name: frozenset(kinds.split()) for name, kinds in _GRAMMAR["kinds"].items()}
NEVER_TOGETHER = [
    {kind, other} for kind, others in _GRAMMAR["never_together"].items() for other in others.split()
]

HOURS: Mapping[str, int] = _GRAMMAR["hours"]

LONGEST_READ = 300  # characters of a text in which a time is looked for


@dataclass(frozen=True, slots=True)
class Piece:
    """Words that name a time: their place in the text, their kind, and the pattern's groups."""

    kind: str
    start: int
    end: int
    said: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Clock:
    hour: int
    minute: int = 0
    is_certain: bool = True  # it says which half of the day, or leaves no doubt


def pieces(text: str, language: str) -> list[Piece]:
    """Return the pieces of a text in order; kinds that say more take their words first."""
    folded = fold(unicodedata.normalize("NFC", text))
    found: list[Piece] = []
    for kind, pattern in _patterns(language):
        for match in pattern.finditer(folded):
            start, end = match.span()
            if all(end <= one.start or start >= one.end for one in found):
                groups = {name: value for name, value in match.groupdict().items() if value is not None}
                found.append(Piece(kind, start, end, groups))
    return sorted(found, key=lambda one: one.start)


def weekdays(words: str) -> list[int]:
    """Return the weekdays that words name, Monday as 0."""
    names = {**WEEKDAYS, **_PORTUGUESE_WEEKDAYS}
    said = (found[0].replace("-feiras", "-feira") for found in re.finditer(r"[a-z]+(?:-feiras?)?", words))
    known = (names.get(word, names.get(word.removesuffix("s"))) for word in said)
    return sorted({day for day in known if day is not None})


def number(word: str) -> int:
    """Return a number written in digits or words."""
    return int(word) if word.isdigit() else NUMBERS[word]


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
        hour = next((one for one in halves if one in _GRAMMAR["hours_of"][part]), 99)
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


def any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of these words, the longest first."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def fill_in(pattern: str, parts: Mapping[str, str]) -> str:
    """Return a pattern with each `{name}` replaced by that part, and the names in this by theirs."""
    return _NAME.sub(lambda found: fill_in(parts[found[1]], parts), pattern)


@cache
def _patterns(language: str) -> Sequence[tuple[str, re.Pattern[str]]]:
    """Return the kinds in the order in which they take their words."""
    parts = _parts(language)
    listed = (one for pattern in _GRAMMAR["patterns"] for one in pattern.items())
    return [(kind, re.compile(fill_in(pattern, parts), re.VERBOSE)) for kind, pattern in listed]


def _parts(language: str) -> Mapping[str, str]:
    own = _PORTUGUESE_WEEKDAYS if language == "pt" else ()
    foreign = () if language == "en" else _GRAMMAR["english_weekdays"].split()
    return {
        **_GRAMMAR["parts"],
        **_GRAMMAR["by_language"].get(language, _GRAMMAR["by_language"]["es"]),
        "day": rf"(?:{any_of({*WEEKDAYS, *own} - {*foreign})})",
        "weekday": any_of(WEEKDAYS),
        "short_day": any_of(_GRAMMAR["short_days"].split()),
        "month": any_of(MONTHS),
        "part": any_of(PARTS),
        "unit": any_of(UNITS),
        "seconds": any_of(_GRAMMAR["seconds"].split()),
        "day_ago": any_of(DAYS_AGO),
        "any_number": any_of(NUMBERS),
        "past_unit": any_of(word for word, unit in UNITS.items() if unit not in ("minute", "hour")),
        "number": any_of(word for word, n in NUMBERS.items() if n),
        "clock_word": any_of(word for word, n in NUMBERS.items() if 1 <= n <= 12 and word not in ("a", "an")),
    }


_UNREAD = re.compile(fill_in(_GRAMMAR["unread"], _parts("")), re.VERBOSE)
PAST = re.compile(fill_in(_GRAMMAR["past"], _parts("")), re.VERBOSE)


def leaves_unread(rest: str) -> bool:
    """Return True if the words beside a time say more of when: "tomorrow" of "2 hours before, tomorrow"."""
    return _UNREAD.search(fold(rest[:LONGEST_READ])) is not None
