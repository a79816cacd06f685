"""Words for times that are over, as in a search: "ayer", "la semana pasada", "em março", "3 days ago"."""

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.calendar.grammar import DAYS_AGO, MONTHS, PAST, UNITS, WEEKDAYS, number
from app.text import fold


def read_past(text: str, zone: ZoneInfo, now: float) -> tuple[float, float, str] | None:
    """Return the time that a text names, [since, until) in Unix seconds, and the text without those words.

    None where it names none; the first of several counts. Without a year the last such month or day is meant.
    """
    found = PAST.search(fold(text))
    if found is None:
        return None
    today = datetime.fromtimestamp(now, zone).date()
    try:
        first, after = _days({name: said for name, said in found.groupdict().items() if said}, today)
    except ValueError:  # the 30th of February
        return None
    since, until = (datetime.combine(day, time(), zone).timestamp() for day in (first, after))
    return since, until, " ".join(f"{text[: found.start()]} {text[found.end() :]}".split())


def _days(said: dict[str, str], today: date) -> tuple[date, date]:
    """Return the first day that is meant, and the day after the last."""
    one = timedelta(days=1)
    if "before" in said or "day" in said:
        day = today - (DAYS_AGO.get(said.get("day", ""), 2)) * one
        return day, day + one
    if name := said.get("last") or said.get("last2") or said.get("this"):
        return _period(UNITS[name], today, 0 if "this" in said else 1)
    if unit := said.get("unit") or said.get("unit2"):
        count = number(said.get("count") or said["count2"])
        if UNITS[unit] in ("day", "week"):
            day = today - count * (7 if UNITS[unit] == "week" else 1) * one
            around = 3 * one if UNITS[unit] == "week" else 0 * one
            return day - around, day + around + one
        return _period(UNITS[unit], today, count)
    if "of" in said:
        day = date(today.year, MONTHS[said["of"]], int(said["number"]))
        day = day if day <= today else day.replace(year=today.year - 1)
        return day, day + one
    if "month" in said:
        back = (today.month - MONTHS[said["month"]]) % 12
        return _period("month", today, back)
    weekday = WEEKDAYS[said.get("weekday") or said["weekday2"]]
    day = today - ((today.weekday() - weekday - 1) % 7 + 1) * one
    return day, day + one


def _period(unit: str, today: date, back: int) -> tuple[date, date]:
    """Return the first day of the week, month or year so many before this one, and the day after its last."""
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return monday, monday + timedelta(days=7)
    months = today.year * 12 + today.month - 1 - back if unit == "month" else (today.year - back) * 12
    return _first_of(months), _first_of(months + (1 if unit == "month" else 12))


def _first_of(months: int) -> date:
    """Return the first day of a month, counted from the year 0."""
    return date(months // 12, months % 12 + 1, 1)
