"""Times of day in words."""

import re
from datetime import MAXYEAR, MINYEAR, datetime

from .person import LONGEST, without_accents

_CLOCK = re.compile(
    r"\b(\d{1,2})(?:\s*[:.h]\s*(\d{2}))?(?!\d)\s*(?:h|hs|hrs|horas|o'clock|en punto|em ponto)?\s*"
)
_AFTERNOON = re.compile(r"p\.?\s?m\b|\btarde\b|\bnoche\b|\bnoite\b|\bafternoon\b|\bevening\b|\bnight\b")
_MORNING = re.compile(r"a\.?\s?m\b|\bmanana\b|\bmanha\b|\bmadrugada\b|\bmorning\b")
_HALF = re.compile(r"\by media\b|\be meia\b|\bhalf past\b")
_QUARTER = re.compile(r"\by cuarto\b|\bquarter past\b")


def moment_of(text, zone):
    """Return a time in words as a moment of today (or of its own date, in ISO form) in that zone, or None."""
    text = text.strip()[:LONGEST]
    try:
        moment = datetime.fromisoformat(text) if re.match(r"\d{4}-\d{2}-\d{2}[T ]\d", text) else None
    except ValueError:
        return None
    if moment is not None and not MINYEAR < moment.year < MAXYEAR:  # in another zone it may be of no year
        return None
    if moment is not None:
        return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment.astimezone(zone)
    clock = _clock(text)
    if clock is None:
        return None
    hour, minute = clock
    return datetime.now(zone).replace(hour=hour, minute=minute, second=0, microsecond=0)


def _clock(text):
    plain = without_accents(text)
    if re.search(r"\b(?:mediodia|medio dia|meio[ -]dia|noon|midday)\b", plain):
        return 12, 0
    if re.search(r"\b(?:medianoche|media noche|meia[ -]noite|midnight)\b", plain):
        return 0, 0
    found = _CLOCK.search(plain)
    if found is None:
        return None
    hour, minute = int(found.group(1)), int(found.group(2) or 0)
    if not found.group(2):
        minute = 30 if _HALF.search(plain) else 15 if _QUARTER.search(plain) else 0
    if hour < 12 and _AFTERNOON.search(plain):
        hour += 12
    elif hour == 12 and _MORNING.search(plain):
        hour = 0
    return (hour, minute) if hour < 24 and minute < 60 else None
