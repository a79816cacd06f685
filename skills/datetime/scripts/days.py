"""Dates in words: feasts, weekdays, distances in days, and days of a month."""

import re
from datetime import date, timedelta
from functools import cache, lru_cache

from app.calendar.grammar import MONTHS, WEEKDAYS
from app.calendar.words import month_first
from app.tools.authoring import read_words

from .person import LANGUAGES, LONGEST, folded

_WORDS = read_words(__file__)
_ONE = {word: number for number, said in _WORDS["counted"].items() for word in said.split("|")}
_LEADING = re.compile(
    r"^(?:el dia|o dia|dia|de|del|el|la|o|a|the|on|no|na|em|en|para|ate|hasta|until|till|fecha) "
)
_NEXT = re.compile(
    r"^(?:proximo|proxima|prox|next|este|esta|this|coming) | (?:que viene|que vem|proximo|proxima|entrante)$"
)
_LAST = re.compile(r"^(?:ultimo|ultima|last|previous) | (?:pasado|pasada|passado|passada|anterior)$")
_NUMERIC = re.compile(r"(\d{1,2})[/.-](\d{1,2})(?:[/.-](\d{4}|\d{2}))?")

_AWAY = re.compile(
    rf"(?P<ago>hace|ha|faz)?(?P<ahead>en|em|in|dentro de|daqui a|de aqui a|within)? ?"
    rf"(?P<number>\d{{1,5}}|{'|'.join(_ONE)}) (?P<unit>{'|'.join(_WORDS['units'].values())})"
    rf"(?P<after>(?: (?:from now|from today|a partir de hoy|desde hoy))?)(?P<past>(?: (?:ago|atras))?)"
)
_YEAR = re.compile(r" (?:del? |of )?(\d{4})$")
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_MONTH_DAY = re.compile(
    rf"(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th|o|ro)?(?: |-|/)(?:de |of )?(?P<month>{_MONTH})\b\.?"
    rf"|\b(?P<month2>{_MONTH})\b\.? (?:the )?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\b(?! ?:))"
    r"(?:(?:,| |-|/) ?(?:del? |of )?(?P<year>\d{4}))?"
)
_WORDS_AROUND = re.compile(rf"[ ,]|\b(?:el|o|the|on|dia|de|{'|'.join(WEEKDAYS)})\b")


def read_date(text, today, who, past=False):
    """Return a date in words; empty is today. Without a year it is the next one, or the last where `past`."""
    key = folded(text.replace("/", "-")).replace("-", "/") if _NUMERIC.search(text) else folded(text)
    if not key or len(text) > LONGEST:
        return None if key else today
    iso = re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip())
    if iso:
        return _iso(text.strip())
    while True:
        found = _named(key, today, past)
        if found is not None or not _LEADING.match(key):
            break
        key = _LEADING.sub("", key, count=1)
    numeric = _NUMERIC.fullmatch(key)
    if found is not None:
        return found
    if numeric:
        return _from_numbers(*numeric.groups(), today, who, past)
    return _by_month(key, today, past)


def _named(key, today, past):
    """Return a day by its name or its distance; None where it has neither."""
    if key in (names := _spelled("days_away")):
        return today + timedelta(days=names[key])
    away = _away(key, today)
    if away is not None:
        return away
    year = _YEAR.search(key)
    feast = key[: year.start()] if year else key
    if feast in (names := _spelled("feasts")):
        month, day = map(int, names[feast].split("-"))
        return date(int(year[1]), month, day) if year and int(year[1]) else _of_year(day, month, today, past)
    if feast in (names := _spelled("easter")):
        return _of_easter(names[feast], today, past, int(year[1]) if year else 0)
    weekday = _weekdays().get(_LAST.sub("", _NEXT.sub("", key)))
    if weekday is None:
        return None
    if past or _LAST.search(key):
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


@cache
def _spelled(table):
    return {word: value for value, said in _WORDS[table].items() for word in said.split("|")}


def _away(key, today):
    """Return the day so many days, weeks, months or years from today; one for "next week", "last month"."""
    from dateutil.relativedelta import relativedelta

    units = _spelled("units")
    number = 0
    found = _AWAY.fullmatch(key)
    if found and (found["ago"] or found["ahead"] or found["after"] or found["past"]):
        number = int(_ONE.get(found["number"], found["number"]))
        number, unit = -number if found["ago"] or found["past"] else number, units[found["unit"]]
    elif (_NEXT.search(key) or _LAST.search(key)) and (bare := _LAST.sub("", _NEXT.sub("", key))) in units:
        number, unit = -1 if _LAST.search(key) else 1, units[bare]
    try:
        return today + relativedelta(**{unit: number}) if number else None
    except (ValueError, OverflowError):
        return None


def _of_easter(days, today, past, year):
    from dateutil.easter import easter

    if year:
        return easter(year) + timedelta(days=days) if year > 1582 else None
    found = sorted(easter(today.year + n) + timedelta(days=days) for n in (-1, 0, 1))
    return max(day for day in found if day <= today) if past else min(day for day in found if day >= today)


def _iso(text):
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _of_year(day, month, today, past):
    """Return the nearest such day of the wanted side; a 29 February waits for its year."""
    years = range(today.year, today.year - 9, -1) if past else range(today.year, today.year + 9)
    for year in years:
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if (found <= today) if past else (found >= today):
            return found
    return None


@lru_cache(maxsize=1)
def _weekdays():
    from babel import Locale

    names = {}
    for language in LANGUAGES:
        for number, name in Locale.parse(language).days["format"]["wide"].items():
            names[folded(name)] = number
            names[folded(name).removesuffix("-feira")] = number
    return names


def _from_numbers(first, second, year, today, who, past):
    is_month_first = who.language == "en" and month_first(who.country, who.zone)
    if is_month_first is None and first != second and max(int(first), int(second)) <= 12:
        return None  # the phone and the zone write dates in different ways
    day, month = (int(second), int(first)) if is_month_first else (int(first), int(second))
    if month > 12 >= day:
        day, month = month, day
    if not year:
        return _of_year(day, month, today, past)
    number = int(year)
    if len(year) == 2:
        number += 2000 if number < 70 else 1900
    try:
        return date(number, month, day)
    except ValueError:
        return None


def _by_month(key, today, past):
    """Return a day such as "3 de mayo" or "viernes 3 de mayo del 2027"; None for other words."""
    day = _MONTH_DAY.search(key)
    if day is None or _WORDS_AROUND.sub(" ", f"{key[: day.start()]} {key[day.end() :]}").split():
        return None
    said = day.groupdict()
    month = MONTHS[said["month"] or said["month2"]]
    number = int(said["day"] or said["day2"])
    if not said["year"]:
        return _of_year(number, month, today, past)
    try:
        return date(int(said["year"]), month, number)
    except ValueError:
        return None


def month_named(text, today):
    """Return a year and month in words, month 0 for a whole year; None for anything else.

    A month without a year is the next such one, this month included.
    """
    key = folded(text)
    while _LEADING.match(key) and key not in _spelled("years_away"):
        key = _LEADING.sub("", key, count=1)
    if key in (years := _spelled("years_away")):
        return today.year + years[key], 0
    if key in _WORDS["this_month"].split("|"):
        return today.year, today.month
    if re.fullmatch(r"(?:ano |year )?(?:19|20)\d\d", key):
        return int(key[-4:]), 0
    year = _YEAR.search(key)
    month = _months().get(key[: year.start()] if year else key)
    if month is None:
        return None
    return (int(year[1]) or today.year if year else today.year + (month < today.month)), month


@lru_cache(maxsize=1)
def _months():
    from babel import Locale

    return {
        folded(name): number
        for language in LANGUAGES
        for number, name in Locale.parse(language).months["format"]["wide"].items()
    }
