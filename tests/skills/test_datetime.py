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


CLOCKS = table("datetime", "clocks")


def test_times_in_words_are_read() -> None:
    for said, clock in CLOCKS:
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


OWN_ZONES = table("datetime", "own_zones")


async def test_words_for_a_place_become_the_zone_of_the_person() -> None:
    for language, country, place, zone in OWN_ZONES:
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

    async def set(self, zone: str, context: ToolContext) -> tuple[str, bool]:
        self.kept.append(zone)
        return zone or "America/Mexico_City", False
