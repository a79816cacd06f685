"""Repetitions by standard rules (RFC 5545, cron) on a person's own clock; opening hours of a week.

A time that the clock skips moves ahead by what is skipped; of a time that comes twice the first counts.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import count, islice, pairwise, takewhile
from zoneinfo import ZoneInfo

EVERY = "EVERY:"  # seconds that pass between two times, whatever the clock does meanwhile
CRON = "CRON:"
UNTIL = ";UNTIL="  # between a rule and its last moment, an ISO time by the zone's clock
_SKIPPED = timedelta(hours=3)  # more than a clock is set forward or back
_FARTHEST = timedelta(days=9 * 366)  # a leap day comes again after eight years at most
_ERA = timedelta(days=146_097)  # 400 years, after which the calendar repeats itself, weekdays too
_LAST_YEAR = 9980  # dateutil looks until the year 9999
_NUMBERS = r"-?\d{1,2}(?:,-?\d{1,2})*"
_PARTS = {  # that a rule may have: none for which dateutil would look without an end
    "FREQ": "DAILY|WEEKLY|MONTHLY|YEARLY",
    "INTERVAL": r"[1-9]\d{0,2}",
    "BYDAY": r"(?:[+-]?[1-5])?(?:MO|TU|WE|TH|FR|SA|SU)(?:,(?:[+-]?[1-5])?(?:MO|TU|WE|TH|FR|SA|SU))*",
    "BYMONTHDAY": r"-?[1-9]\d?(?:,-?[1-9]\d?)*",
    **dict.fromkeys(("BYMONTH", "BYSETPOS", "BYHOUR", "BYMINUTE"), _NUMBERS),
}
_PROBED = 60
_CANDIDATES = 1000
_OFFSET = re.compile(r"Etc/GMT([+-])(\d{1,2})")
_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


def next_after(rule: str, start: datetime, zone: ZoneInfo, after: float) -> float | None:
    """Return the first moment (Unix seconds) after `after`, None if there is none.

    `rule` is "" for once, "EVERY:<seconds>", "CRON:<five fields>", or an RRULE of RFC 5545 without its
    name; each may end with ";UNTIL=<time>". `start` (the first time) and that end are by the zone's clock,
    without a zone. Raise ValueError for a malformed rule.
    """
    return next(_moments(rule, start, zone, after), None)


def shortest_gap(rule: str, start: datetime, zone: ZoneInfo, after: float) -> float:
    """Return the seconds between the two nearest of the next moments, infinite for fewer than two."""
    found = islice(_moments(rule, start, zone, after), _PROBED)
    return min((later - earlier for earlier, later in pairwise(found)), default=math.inf)


def _moments(rule: str, start: datetime, zone: ZoneInfo, after: float) -> Iterator[float]:
    """Yield the moments after `after` in order."""
    rule, _, end = rule.partition(UNTIL)
    if end:
        last = instant(datetime.fromisoformat(end), zone)
        yield from takewhile(lambda moment: moment <= last, _moments(rule, start, zone, after))
        return
    first = instant(start, zone)
    if not rule:
        yield from [first] if first > after else []
    elif rule.startswith(EVERY):
        step = float(rule.removeprefix(EVERY))
        yield from count(
            first if first > after else first + step * (math.floor((after - first) / step) + 1), step
        )
    else:
        local = datetime.fromtimestamp(max(after, first - 1), zone).replace(tzinfo=None)
        for candidate in _candidates(rule, start, local - _SKIPPED):
            moment = instant(candidate, zone)
            if moment > after and moment >= first:
                yield moment
                after = moment


def instant(local: datetime, zone: ZoneInfo) -> float:
    """Return the Unix seconds of a time by the zone's clock."""
    return local.replace(tzinfo=zone, fold=0).timestamp()


def month_days(day: int) -> str:
    """Return the part of a monthly rule for a day, which is the last day of shorter months."""
    if day <= 28:
        return f"BYMONTHDAY={day}"
    return f"BYMONTHDAY={','.join(map(str, range(28, day + 1)))};BYSETPOS=-1"


def _candidates(rule: str, start: datetime, after: datetime) -> Iterator[datetime]:
    if rule.startswith(CRON):
        from cronsim import CronSim, CronSimError

        try:
            return islice(
                CronSim(rule.removeprefix(CRON), max(after, start - timedelta(seconds=1))), _CANDIDATES
            )
        except CronSimError as error:
            raise ValueError(f"{rule!r} is no cron expression: {error}") from error
    parts = (part.partition("=") for part in rule.split(";"))
    if not all(name in _PARTS and re.fullmatch(_PARTS[name], value) for name, _, value in parts):
        raise ValueError(f"{rule!r} is no repetition by days, weeks, months or years")
    from dateutil.rrule import rrulestr

    ahead = (_LAST_YEAR - start.year) // 400 * _ERA  # of a day that never comes it soon finds the end
    found = rrulestr(rule, dtstart=start + ahead).replace(until=max(after, start) + _FARTHEST + ahead)
    return (moment - ahead for moment in islice(found.xafter(after + ahead), _CANDIDATES))


def shown_zone(name: str) -> str:
    """Return an IANA name for display: "UTC-8" for "Etc/GMT+8", whose sign is reversed."""
    return _OFFSET.sub(lambda found: f"UTC{'-' if found[1] == '+' else '+'}{found[2]}", name)


@dataclass(frozen=True, slots=True)
class OpeningHours:
    """When somebody is there: "mon-fri 09:00-13:00 15:00-19:00, sat 09:00-13:00"; "" says nothing of it."""

    spans: tuple[tuple[int, time, time], ...] = ()  # weekday (0: Monday), from, until

    @classmethod
    def parse(cls, text: str) -> "OpeningHours":
        """Read hours as an operator writes them. Raise `ValueError` that says how to write it."""
        spans: list[tuple[int, time, time]] = []
        for part in filter(None, (part.strip().casefold() for part in re.split("[,;]", text))):
            days, *times = part.split()
            found = [_SPAN.fullmatch(one) for one in times]
            first, _, last = days.partition("-")
            try:
                begins, ends = _WEEK.index(first), _WEEK.index(last or first)
                hours = [_hours(*map(int, one.groups())) for one in found if one is not None]
            except ValueError:
                hours = []
            if not hours or len(hours) != len(times):
                raise ValueError(f"{part!r} is not understood; write mon-fri 09:00-18:00, sat 09:00-13:00")
            week = range(begins, begins + (ends - begins) % 7 + 1)
            spans += [(day % 7, *span) for day in week for span in hours]
        return cls(tuple(spans))

    def next_open(self, moment: datetime) -> datetime | None:
        """Return the moment itself if somebody is there, else when they come; None where nothing is said."""
        for ahead in range(8):
            day = moment + timedelta(days=ahead)
            for weekday, begins, ends in sorted(self.spans):
                opens = datetime.combine(day.date(), begins, moment.tzinfo)
                closes = datetime.combine(day.date(), ends, moment.tzinfo)
                if weekday == day.weekday() and moment < closes:
                    return max(moment, opens)
        return None


def _hours(hour: int, minute: int, until_hour: int, until_minute: int) -> tuple[time, time]:
    end = time.max if (until_hour, until_minute) == (24, 0) else time(until_hour, until_minute)
    begin = time(hour, minute)
    if begin >= end:
        raise ValueError("it ends before it begins")
    return begin, end
