"""Due days: read from a person's words, and written for them."""

from datetime import datetime
from zoneinfo import ZoneInfo

from app.calendar.words import read_when
from app.search.words import spaced, words

_NO_DAY = spaced("none ninguna ninguno nenhuma nenhum sin sem without never nunca")


def read_day(text, context):
    """Return the day that words name, None where they name none."""
    if not text.strip() or means_no_day(text):
        return None
    zone = zone_of(context)
    midnight = datetime.combine(today(context), datetime.min.time(), zone).timestamp()
    person = context.person
    reading = read_when(text, zone, midnight, person.language, person.country)
    if reading.when is not None:
        return datetime.fromtimestamp(reading.when.due, zone).date()
    return reading.choices[0].date() if reading.choices else None


def means_no_day(text):
    return not _NO_DAY.isdisjoint(words(text))


def today(context):
    return datetime.now(zone_of(context)).date()


def zone_of(context):
    return ZoneInfo(context.person.timezone or "UTC")


def spoken(day, context):
    from babel.dates import format_skeleton

    return format_skeleton("MMMEd", day, locale=context.person.language)
