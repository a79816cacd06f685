"""A new time for something that is set: what its words leave open stays the same."""

import re
from dataclasses import replace
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.calendar.grammar import KINDS, UNITS, Piece, clock_time, pieces
from app.calendar.rules import CRON, EVERY, instant, next_after
from app.calendar.words import Reading, When, later_day, read_when, span

_RULE_KINDS = KINDS["repeating"] - {"every_part"}
_WITHIN_A_DAY = frozenset({"hour", "minute"})
_WEEK = 7 * 86_400  # seconds


def read_change(
    text: str, had: When, zone: ZoneInfo, now: float, language: str = "en", country: str = ""
) -> Reading:
    """Read a new time for what was due at `had`: an hour alone keeps its day or rule, a day alone its hour.

    If the kept day has passed at that hour, the next such hour counts. "Better 8:30" for what was due in the
    evening may be of the morning too, and is ambiguous; "an hour later" counts from the time that it had.
    """
    was = had.start  # by the clock that it was set by, perhaps of another zone
    if had.rule:
        was = datetime.fromtimestamp(had.due, zone)
        if had.rule.startswith("FREQ") and "BYHOUR" not in had.rule:
            was = datetime.combine(was.date(), had.start.time())
    found = pieces(text, language)
    days = {one.kind for one in found} - KINDS["hour"]
    if days == {"day_of_month"} and not had.rule:  # "the 22nd" is of its own month
        now = max(now, instant(datetime.combine(was.date().replace(day=1), time()), zone))
    if days == {"weekday"} and not had.rule and had.due - now > _WEEK:
        return Reading(problem="unclear")  # the next Thursday, or that of its week?

    def read(beside: str) -> Reading:
        return read_when(f"{text}, {beside}", zone, now, language, country)

    if [one.kind for one in found] == ["shift"]:
        return read_change(_shifted(found[0], was, had.rule), had, zone, now, language, country)
    reading = read("")
    only_days = all(_says_days(one) for one in found)
    is_daily = reading.when is not None and reading.when.rule == "FREQ=DAILY"
    if found and only_days and not is_daily and reading.kinds <= {"every", "every_other"}:
        return Reading(problem="unclear")  # from which day on?
    if re.search(r"INTERVAL=(?!1\b)", had.rule) and reading.kinds == {"every_weekday"}:
        return Reading(problem="unclear")  # each week from now on, or each second one?
    if had.rule and reading.when is not None and not reading.when.rule and not reading.kinds <= KINDS["hour"]:
        return Reading(problem="unclear")  # this time alone, or each time from now on?
    if reading.kinds == {"part"}:
        return Reading(problem="unclear")  # at which hour of the morning?
    if reading.kinds and reading.kinds <= KINDS["day"] | _RULE_KINDS and only_days:
        whole = read(f"{was:%I:%M %p}")
    elif any({"this", "tonight"} & one.said.keys() for one in found if one.kind == "part"):
        return reading  # "tonight at 8" is of today
    elif reading.kinds and reading.kinds <= KINDS["hour"]:
        any_day = datetime.fromtimestamp(now, zone) + timedelta(days=1)
        whole = read(f"{any_day if had.rule else was:%Y-%m-%d}")
        if had.rule and whole.when is not None:
            whole = _with_rule(whole.when.start.time(), had, zone, now)
    else:
        return reading
    if whole.problem == "past":
        return reading
    if whole.when is not None and (other := _other_hour(found, whole.when.start, was)) is not None:
        choices = sorted((whole.when.start, other))
        return replace(reading, when=None, problem="ambiguous", choices=tuple(choices))
    return replace(reading, when=whole.when, problem=whole.problem, choices=whole.choices)


def _says_days(piece: Piece) -> bool:
    repeats = piece.kind in _RULE_KINDS and UNITS.get(piece.said.get("unit", "")) not in _WITHIN_A_DAY
    is_date = piece.kind == "iso" and "time" not in piece.said
    return piece.kind in KINDS["day"] or is_date or (repeats and "hour" not in piece.said)


def _shifted(piece: Piece, was: datetime, rule: str) -> str:
    """Return the time that is an hour after another, by the clock alone where that repeats."""
    seconds, days, months = span(piece.said)
    sign = -1 if "back" in piece.said else 1
    day = later_day(was.date(), sign * days, sign * months)
    moved = datetime.combine(day, was.time()) + timedelta(seconds=sign * seconds)
    return f"{moved:%H:%M}" if rule and moved.date() == was.date() else f"{moved:%Y-%m-%d %H:%M}"


def _other_hour(found: list[Piece], start: datetime, was: datetime) -> datetime | None:
    """Return what the new time may mean as well: 8:30 pm by "better 8:30"."""
    is_certain = any(one.kind != "clock" or clock_time(one.said, "").is_certain for one in found)
    is_nearer = abs(start.hour + 12 - was.hour) < abs(start.hour - was.hour)
    return start + timedelta(hours=12) if not is_certain and start.hour < 12 and is_nearer else None


def _with_rule(hour: time, had: When, zone: ZoneInfo, now: float) -> Reading:
    """Return the rule of `had` at another hour; unclear if it has several, or does not go by days."""
    if had.rule.startswith((CRON, EVERY)) or re.search(r"BYHOUR=\d+,", had.rule):
        return Reading(problem="unclear")
    rule = ";".join(part for part in had.rule.split(";") if not part.startswith(("BYHOUR", "BYMINUTE")))
    start = datetime.combine(had.start.date(), hour)
    due = next_after(rule, start, zone, now)
    return Reading(problem="past") if due is None else Reading(When(due, start, rule))
