"""Repetitions by a person's own clock, across the days on which it is changed."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from app.calendar.rules import instant, month_days, next_after, shortest_gap
from tests.limits import limited


def times(rule: str, start: str, zone: str, after: str, count: int = 3) -> list[str]:
    """The next moments after a time of the zone's clock, as the zone's clock shows them."""
    place = ZoneInfo(zone)
    moment: float | None = instant(datetime.fromisoformat(after), place)
    found = []
    for _ in range(count):
        assert moment is not None
        moment = next_after(rule, datetime.fromisoformat(start), place, moment)
        assert moment is not None
        found.append(datetime.fromtimestamp(moment, place).isoformat())
    return found


CHANGES = [
    # (zone, at, the day before the change, what the clock shows on three days)
    ("Europe/Madrid", "09:00", "2027-03-27", ["+01:00", "+02:00", "+02:00"]),
    ("America/Santiago", "09:00", "2026-09-05", ["-04:00", "-03:00", "-03:00"]),
    ("America/Tijuana", "09:00", "2026-10-31", ["-07:00", "-08:00", "-08:00"]),
    ("America/Sao_Paulo", "09:00", "2026-10-17", ["-03:00"] * 3),  # none since 2019
    ("America/Mexico_City", "09:00", "2027-04-03", ["-06:00"] * 3),  # none since 2022
]


@pytest.mark.parametrize("rule", ["FREQ=DAILY", "CRON:0 9 * * *"])
@pytest.mark.parametrize(("zone", "at", "day", "offsets"), CHANGES)
def test_a_time_of_day_stays_where_the_clock_is_changed(rule, zone, at, day, offsets) -> None:
    found = times(rule, f"{day}T{at}", zone, f"{day}T08:59")
    assert [one[11:16] for one in found] == [at] * 3
    assert [one[-6:] for one in found] == offsets


SKIPPED = [
    ("Europe/Madrid", "2027-03-28T02:30", "2027-03-28T03:30:00+02:00"),
    ("America/Santiago", "2026-09-06T00:15", "2026-09-06T01:15:00-03:00"),
    ("America/Tijuana", "2027-03-14T02:00", "2027-03-14T03:00:00-07:00"),
]


def test_a_time_that_the_clock_skips_is_moved_ahead_for_that_day_alone() -> None:
    for zone, wanted, told in SKIPPED:
        day, at = wanted.split("T")
        for rule in ("FREQ=DAILY", f"CRON:{int(at[3:])} {int(at[:2])} * * *"):
            found = times(rule, f"2026-09-01T{at}", zone, f"{day}T00:00", 2)
            assert found[0] == told
            assert found[1][11:16] == at


TWICE = [
    ("Europe/Madrid", "2026-10-25T02:30", "+02:00"),
    ("America/Santiago", "2027-04-03T23:30", "-03:00"),
    ("America/Tijuana", "2026-11-01T01:30", "-07:00"),
]


def test_of_a_time_that_comes_twice_the_first_counts_and_only_it() -> None:
    for zone, wanted, offset in TWICE:
        day, at = wanted.split("T")
        for rule in ("FREQ=DAILY", f"CRON:{int(at[3:])} {int(at[:2])} * * *"):
            first, second = times(rule, f"2026-10-01T{at}", zone, f"{day}T00:00", 2)
            assert first == f"{wanted}:00{offset}"
            assert second[:10] > day


def test_a_repetition_ends_where_it_says() -> None:
    for rule in ("FREQ=DAILY;BYHOUR=9,21;BYMINUTE=0", "EVERY:43200"):
        ending = f"{rule};UNTIL=2027-01-02T23:59"
        *_, last = times(ending, "2027-01-01T09:00", "UTC", "2026-12-31T00:00", 4)
        after = datetime.fromisoformat(last).timestamp()
        assert next_after(ending, datetime(2027, 1, 1, 9), ZoneInfo("UTC"), after) is None


def test_days_that_a_month_lacks_and_longer_steps() -> None:
    for rule, start, days in [
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "2027-01-31", ["2027-02-28", "2027-03-31", "2027-04-30"]),
        (f"FREQ=MONTHLY;{month_days(31)}", "2027-01-31", ["2027-02-28", "2027-03-31", "2027-04-30"]),
        (f"FREQ=MONTHLY;{month_days(15)}", "2027-01-15", ["2027-02-15", "2027-03-15", "2027-04-15"]),
        (f"FREQ=YEARLY;BYMONTH=2;{month_days(29)}", "2027-02-28", ["2028-02-29", "2029-02-28", "2030-02-28"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2027-01-04", ["2027-01-18", "2027-02-01", "2027-02-15"]),
    ]:
        assert [one[:10] for one in times(rule, f"{start}T09:00", "UTC", f"{start}T09:00")] == days


def test_the_shortest_gap_of_a_rule_is_found() -> None:
    for rule, seconds in [
        ("EVERY:300", 300),
        ("CRON:*/5 9 * * *", 300),
        ("CRON:0,7 9 * * 1", 420),
        ("FREQ=DAILY", 86_400),
    ]:
        start, zone = datetime(2027, 1, 1, 9), ZoneInfo("UTC")
        assert shortest_gap(rule, start, zone, instant(start, zone)) == seconds


def test_what_is_no_rule_is_refused() -> None:
    for rule in (
        *("CRON:0 0 31 2 *", "CRON:61 * * * *", "FREQ=NEVER", "what", "FREQ=DAILY;INTERVAL=0"),
        *("FREQ=DAILY;COUNT=3", "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30", "FREQ=MONTHLY;BYDAY=9MO"),
        *("FREQ=MONTHLY;BYMONTHDAY=0", "FREQ=MONTHLY;BYHOUR=25"),
    ):
        with pytest.raises(ValueError, match=r".+"):
            next_after(rule, datetime(2027, 1, 1), ZoneInfo("UTC"), 0.0)


def test_a_day_that_never_comes_is_told_soon() -> None:
    for rule in [
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYHOUR=9;BYSETPOS=2",
        "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=4,6",
        "CRON:0 9 31 2 *",
    ]:
        start = datetime(2026, 11, 22, 9)
        with limited():
            try:
                found = next_after(rule, start, ZoneInfo("America/Bogota"), start.timestamp())
            except ValueError:
                found = None
        assert found is None
