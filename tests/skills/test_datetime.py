"""Times, days in words, business days and holidays."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from app.tools import ToolContext
from app.tools.tool import Services
from tests.skills.tables import table
from tests.skills.tools import context, functions

TOOLS = functions("datetime")
now, convert, between, weekday = (
    TOOLS[name] for name in ("current_time", "convert_time", "days_between", "weekday_of")
)
holidays, business, later = (
    TOOLS[name] for name in ("holidays", "business_days_between", "add_business_days")
)
MEXICO = ZoneInfo("America/Mexico_City")


def test_the_time_of_a_place() -> None:
    for place, zone in table("datetime", "places"):
        answer = now(place, context=context())
        assert answer["timezone"] == zone, place
        shown = datetime.fromisoformat(answer["iso"])
        assert abs(shown - datetime.now(MEXICO)) < timedelta(seconds=10)
        if not zone.startswith("UTC"):
            assert shown.utcoffset() == datetime.now(ZoneInfo(zone)).utcoffset()


def test_a_country_of_several_zones_tells_the_main_ones() -> None:
    for country, zones in [
        ("Estados Unidos", {"America/New_York", "America/Los_Angeles"}),
        ("México", {"America/Mexico_City", "America/Tijuana", "America/Cancun"}),
        ("Brasil", {"America/Sao_Paulo", "America/Manaus"}),
    ]:
        answer = now(country, context=context())
        assert zones <= {entry["timezone"] for entry in answer["zones"]}
        offsets = [entry["utc_offset"] for entry in answer["zones"]]
        assert len(offsets) == len(set(offsets))
        assert answer["summary"].count("•") == len(offsets)


def test_times_in_words_are_read() -> None:
    for said, clock in table("datetime", "clocks"):
        answer = convert(said, "Madrid", "Madrid", context=context())
        assert answer["from"]["time"] == answer["to"][0]["time"] == clock


def test_a_conversion_tells_the_day_there() -> None:
    answer = convert("2026-12-24T20:00", "Ciudad de México", "Tokio", context=context())
    assert answer["to"][0]["iso"] == "2026-12-25T11:00:00+09:00"
    assert "viernes 25 de diciembre de 2026" in answer["summary"]


def test_an_unreadable_time_is_named() -> None:
    for said in ["25:00", "abc", "", "9" * 50]:
        assert convert(said, context=context())["error"]["code"] == "INVALID_TIME"


def test_numbers_are_month_first_in_the_united_states() -> None:
    here = context("en", "US", "America/Chicago")
    assert weekday("12/10/1990", context=here)["date"] == "1990-12-10"
    assert weekday("12/10/1990", context=context("en", "GB", "Europe/London"))["date"] == "1990-10-12"
    assert not weekday("12/10/1990", context=context("en", "US")).get("date")  # a phone of the US in Mexico


def test_a_day_without_a_year_is_the_next_one() -> None:
    today = datetime.now(MEXICO).date()
    for said in ("natal", "25/12", "el 25 de diciembre"):
        answer = between(end=said, context=context())
        end = date.fromisoformat(answer["end"])
        assert (end.month, end.day) == (12, 25)
        assert 0 <= (end - today).days <= 366
        assert answer["days"] == (end - today).days


async def test_words_for_a_place_become_the_zone_of_the_person() -> None:
    for language, country, place, zone in table("datetime", "own_zones"):
        zones = Zones()
        asks = replace(context(language, country), services=Services(zones=zones))
        answer = await TOOLS["set_time_zone"](place, context=asks)
        assert zones.kept == [zone]
        assert answer["summary"].startswith("✓")


async def test_a_place_of_several_zones_is_asked_about() -> None:
    for place, offered in [
        ("Brasil", ["São Paulo", "Manaos", "Río Branco", "Fernando de Noronha"]),
        ("México", ["Ciudad de México", "Cancún", "Hermosillo", "Tijuana"]),  # two of them alike in summer
        ("Valencia", ["Valencia (Venezuela)", "Valencia (España)"]),
        ("UTC+5:30", []),
        ("aquí", []),
    ]:
        zones = Zones()
        asks = replace(context("es", ""), services=Services(zones=zones))
        answer = await TOOLS["set_time_zone"](place, context=asks)
        assert (answer["options"], zones.kept) == (offered, [])
        assert "?" in answer["question"]


class Zones:
    """What was kept, in place of the service."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def misread(self, context: ToolContext) -> None:
        pass

    async def set(self, zone: str, context: ToolContext) -> tuple[str, bool]:
        self.kept.append(zone)
        return zone or "America/Mexico_City", False


def test_a_weekday_is_at_most_a_week_away() -> None:
    for said, day, ahead in table("calendar", "a_weekday_is_at_most_a_week_away"):
        today = datetime.now(MEXICO).date()
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
        ("2026-05-22", "2026-05-26", "AR", 1, ["2026-05-25"]),
        ("2026-07-02", "2026-07-06", "US", 1, ["2026-07-03"]),
        ("2026-11-21", "2026-11-22", "MX", 0, []),
    ]:
        answer = business(start, end, context=context(country=country, timezone="UTC"))
        assert (answer["business_days"], answer["holidays"]) == (days, free)


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
