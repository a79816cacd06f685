"""Quiet hours: the part of a person's day in which no task and no watch runs."""

import re
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.calendar.rules import instant
from app.store import schedules
from app.store.database import Connection

_CLOCK = r"(\d{1,2})(?:[:.h](\d{2})|\s?h)?"
_BETWEEN = r"(?:-|–|to|a|as|às|a\s+las|hasta|até)"
_HOURS = re.compile(rf"(?:(?:de|from)\s+)?{_CLOCK}\s*{_BETWEEN}\s*{_CLOCK}", re.IGNORECASE)


def read_hours(text: str) -> str | None:
    """Return hours such as "22-7" or "22:30 a 7:00" as "22:30-07:00"; None for anything else."""
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        return None
    clocks = [(int(found[hour]), int(found[hour + 1] or 0)) for hour in (1, 3)]
    if clocks[0] == clocks[1] or any(hour > 23 or minute > 59 for hour, minute in clocks):
        return None
    return "-".join(f"{hour:02}:{minute:02}" for hour, minute in clocks)


def quiet_until(hours: str, zone: ZoneInfo, moment: float) -> float | None:
    """Return when the quiet hours end in which a moment lies (both Unix seconds); None if it lies in none.

    Of an end that the clock shows twice the second counts.
    """
    if not hours:
        return None
    begin, end = map(time.fromisoformat, hours.split("-"))
    local = datetime.fromtimestamp(moment, zone)
    clock, over_midnight = local.time(), begin > end
    if not (clock >= begin or clock < end if over_midnight else begin <= clock < end):
        return None
    day = local.date() + timedelta(days=over_midnight and clock >= begin)
    until = datetime.combine(day, end)
    return max(instant(until, zone), until.replace(tzinfo=zone, fold=1).timestamp())


def runs_wait_until(conn: Connection, conversation: str, now: float) -> float | None:
    """Return when quiet hours end that hold back a run which is queued already; None if nothing is held back.

    It was queued before they began, and waited for a limit or for a person of the business.
    """
    found = schedules.run_that_waits(conn, conversation)
    return None if found is None else quiet_until(found["quiet_hours"], ZoneInfo(found["zone"]), now)
