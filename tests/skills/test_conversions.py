from tests.limits import limited
from tests.skills.tables import table
from tests.skills.tools import context, functions

TOOLS = functions("calculator")
convert, exchange = TOOLS["convert_units"], TOOLS["convert_money"]

EXACT = table("conversions", "exact")


def test_quantities_in_other_units() -> None:
    for quantity, unit, result in EXACT:
        answer = convert(quantity, unit, context=context())
        assert answer.get("result") == result, answer


def test_the_summary_is_in_the_persons_form() -> None:
    for quantity, unit, language, country, summary in table(
        "conversions", "the_summary_is_in_the_persons_form"
    ):
        assert convert(quantity, unit, context=context(language, country))["summary"] == summary


def test_what_cannot_be_converted_is_named() -> None:
    for quantity, unit, code in [
        ("", "km", "NO_QUANTITY"),
        ("5 km", "", "UNKNOWN_UNIT"),
        ("3 arrobas", "kg", "UNKNOWN_UNIT"),
        ("5 km", "kg", "DIFFERENT_KINDS"),
        ("-300 °C", "°F", "BELOW_ZERO"),
        ("1/0 km", "m", "DIVISION_BY_ZERO"),
        ("9" * 190 + "/7 km", "m", "TOO_BIG"),
        ("1" * 5000, "m", "NO_QUANTITY"),
        ("100 dólares", "pesos", "NO_RATE"),
    ]:
        with limited():
            answer = convert(quantity, unit, context=context())
        assert answer.get("ok") is False, answer
        assert answer["error"]["code"] == code
        assert answer["error"]["hint"]


def test_money_at_a_given_rate() -> None:
    for quantity, rate, to, country, summary in table("conversions", "money_at_a_given_rate"):
        assert exchange(quantity, rate, to, context=context("es", country))["summary"] == summary


def test_an_amount_of_several_numbers_is_none() -> None:
    for quantity in ("2 1/2 yards", "2 and a half yards", "2-3 kg", "3 bags at 9800 and 4"):
        assert exchange(quantity, "3500", context=context())["error"]["code"] == "NO_QUANTITY"
