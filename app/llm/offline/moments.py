"""Dates and times in people's words, read with dateparser once they are in a form it knows."""

import re
from datetime import datetime
from zoneinfo import ZoneInfo

from app.calendar.words import Reading, read_when
from app.messages import JSON
from app.people import Person

_LONGEST = 300
_PART_OF_DAY = (
    "de la mañana|da manhã|da manha|in the morning|de la tarde|da tarde|in the afternoon"
    "|de la noche|da noite|in the evening"
)
_CLOCK = re.compile(
    r"\b(?:a las?|às?|as|at|las)?\s*\b(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2}))?"
    rf"\s*(?P<unit>hs?|hrs|horas|o'clock)?\s*(?P<half>{_PART_OF_DAY})?\b",
    re.IGNORECASE,
)
_AT = re.compile(r"^\s*(?:a las?|às?|as|at|las)\b", re.IGNORECASE)
_AFTER_NOON = re.compile(r"tarde|noche|noite|afternoon|evening", re.IGNORECASE)
_FORMS: tuple[tuple[re.Pattern[str], dict[str, str]], ...] = (
    (re.compile(r"\b(?:daqui a|dentro de)\b", re.IGNORECASE), {"pt": "em", "es": "en", "en": "in"}),
    (
        re.compile(
            r"\b(?:el|la|los|o|a|na|no|on|próximo|proximo|próxima|proxima)\s+"
            r"(?=lunes|martes|mi[eé]rcoles|jueves|viernes|s[aá]bado|domingo|segunda|ter[cç]a|quarta|quinta|sexta)",
            re.IGNORECASE,
        ),
        {},
    ),
)


def read_moment(text: str, person: Person, now: datetime) -> datetime | None:
    """The moment that words such as "mañana a las 9" name, in the person's zone; the next one that fits."""
    import dateparser

    plain = _plain(text[:_LONGEST], person.language)
    moment: datetime | None = dateparser.parse(
        plain, languages=[person.language], settings=_settings(person, now)
    )
    if moment is None and (said := read(text, person, now).when) is not None and not said.rule:
        return datetime.fromtimestamp(said.due, ZoneInfo(person.timezone))  # "pasado mañana"
    return moment


def find_moment(text: str, person: Person, now: datetime) -> tuple[str, ...]:
    """The parts of `text` that name a moment or a repetition; none where none surely does."""
    if words := read(text, person, now).words:
        return words
    from dateparser.search import search_dates

    found = search_dates(text[:_LONGEST], languages=[person.language], settings=_settings(person, now))
    named = [part for part, _ in found or () if re.search(r"\d", part) or len(part) > 3]
    return (max(named, key=len),) if named else ()


def is_moment(text: str, person: Person, now: datetime) -> bool:
    """Whether a text is a moment and nothing else."""
    reading = read(text, person, now)
    return bool(reading.words) and not reading.rest.strip(" ?!.,;:¿¡")


def read(text: str, person: Person, now: datetime) -> Reading:
    """What a text says of when, by the person's clock."""
    zone = ZoneInfo(person.timezone)
    return read_when(text[:_LONGEST], zone, now.timestamp(), person.language, person.country)


def _plain(text: str, language: str) -> str:
    """Clock times as 21:00 and openings that dateparser lacks in a form it has."""
    for pattern, openings in _FORMS:
        text = pattern.sub(openings.get(language, ""), text)
    return _CLOCK.sub(_clock, text)


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    told = match["unit"] or match["half"] or match["minute"] or _AT.match(match.group())
    if not told or hour > 24 or (match["unit"] == "horas" and not _AT.match(match.group())):
        return match.group()
    if match["half"] and _AFTER_NOON.search(match["half"]) and hour < 12:
        hour += 12
    return f" {hour:02d}:{minute:02d} "


def _settings(person: Person, now: datetime) -> dict[str, JSON]:
    return {
        "TIMEZONE": person.timezone,
        "RETURN_AS_TIMEZONE_AWARE": True,
        "PREFER_DATES_FROM": "future",
        "DATE_ORDER": "MDY" if person.country == "US" else "DMY",
        "RELATIVE_BASE": now.astimezone(ZoneInfo(person.timezone)).replace(tzinfo=None),
    }
