"""When something happens again: standard rules (RFC 5545, cron) counted on a person's own clock.

A time that the clock skips is moved ahead by what is skipped; of a time that comes twice the first counts.
"""

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

EVERY = "EVERY:"
"""Seconds that pass between two times, whatever the clock does meanwhile."""
CRON = "CRON:"
_SKIPPED = timedelta(hours=3)
"""More than a clock is set forward or back."""
_FARTHEST = timedelta(days=9 * 366)
"""A day that has not come again by then (a leap day does after eight years at most) never will."""
_NUMBERS = r"-?\d{1,2}(?:,-?\d{1,2})*"
_PARTS = {
    "FREQ": "DAILY|WEEKLY|MONTHLY|YEARLY",
    "INTERVAL": r"[1-9]\d{0,2}",
    "BYDAY": r"[+-]?\d?(?:MO|TU|WE|TH|FR|SA|SU)(?:,[+-]?\d?(?:MO|TU|WE|TH|FR|SA|SU))*",
    **dict.fromkeys(("BYMONTH", "BYMONTHDAY", "BYSETPOS", "BYHOUR", "BYMINUTE"), _NUMBERS),
}
"""What a rule may consist of: nothing that dateutil would look for without an end."""
_PROBED = 60
_CANDIDATES = 1000


def next_after(rule: str, start: datetime, zone: ZoneInfo, after: float) -> float | None:
    """The first moment (Unix seconds) after `after`, None where there is none.

    `rule`: "" for once, "EVERY:<seconds>", "CRON:<five fields>", or an RRULE of RFC 5545 without its name;
    `start` is the first time by the zone's clock, without a zone. Raises ValueError for what is no rule.
    """
    first = instant(start, zone)
    if not rule:
        return first if first > after else None
    if rule.startswith(EVERY):
        step = float(rule.removeprefix(EVERY))
        return first if first > after else first + step * (math.floor((after - first) / step) + 1)
    local = datetime.fromtimestamp(max(after, first - 1), zone).replace(tzinfo=None)
    for candidate in _candidates(rule, start, local - _SKIPPED):
        moment = instant(candidate, zone)
        if moment > after and moment >= first:
            return moment
    return None


def moments_between(rule: str, start: datetime, zone: ZoneInfo, after: float, until: float, most: int) -> int:
    """How many moments there are after `after` and up to `until`, `most` at most."""
    count = 0
    moment = next_after(rule, start, zone, after)
    while moment is not None and moment <= until and count < most:
        count += 1
        moment = next_after(rule, start, zone, moment)
    return count


def shortest_gap(rule: str, start: datetime, zone: ZoneInfo, after: float) -> float:
    """Seconds between the two nearest of the next moments; infinite where there are fewer than two."""
    if rule.startswith(EVERY):
        return float(rule.removeprefix(EVERY))
    found: list[float] = []
    moment = next_after(rule, start, zone, after)
    while moment is not None and len(found) < _PROBED:
        found.append(moment)
        moment = next_after(rule, start, zone, moment)
    gaps = (later - earlier for earlier, later in pairwise(found))
    return min(gaps, default=math.inf)


def instant(local: datetime, zone: ZoneInfo) -> float:
    """Unix seconds of a time by the zone's clock: the first of two, moved ahead where the clock skips it."""
    return local.replace(tzinfo=zone, fold=0).timestamp()


def month_days(day: int) -> str:
    """The part of a monthly rule for a day of the month: the last one where a month is shorter."""
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
    if not all(_is_part(part) for part in rule.split(";")):
        raise ValueError(f"{rule!r} is no repetition by days, weeks, months or years")
    from dateutil.rrule import rrulestr

    found = rrulestr(rule, dtstart=start).replace(until=max(after, start) + _FARTHEST)
    return islice(found.xafter(after), _CANDIDATES)


def _is_part(part: str) -> bool:
    name, _, value = part.partition("=")
    return name in _PARTS and re.fullmatch(_PARTS[name], value) is not None
