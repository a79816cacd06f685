from tests.limits import limited
from tests.skills.tables import table
from tests.skills.tools import context, functions

TOOLS = functions("calculator")
calculate, convert, exchange = (TOOLS[name] for name in ("calculate", "convert_units", "convert_money"))


def test_exact_results() -> None:
    for expression, country, expected in table("calculator", "exact"):
        answer = calculate(expression, context=context(country=country))
        assert answer.get("result") == expected, answer
        assert answer["exact"] is True


def test_rounded_results_are_marked() -> None:
    for expression, expected in table("calculator", "rounded"):
        answer = calculate(expression, context=context())
        assert answer.get("result") == expected, answer
        assert answer["exact"] is False
        assert "≈" in answer["summary"]


HOSTILE = [
    ("", "EMPTY"),
    ("9**9**9", "TOO_BIG"),
    ("10^-100000", "TOO_BIG"),
    ("1e999999999", "TOO_BIG"),
    ("factorial(10**9)", "TOO_BIG"),
    ("9" * 3000, "TOO_LONG"),
    ("(" * 150 + "1" + ")" * 150, "TOO_DEEP"),
    ("1/0", "DIVISION_BY_ZERO"),
    ("sqrt(-4)", "NOT_REAL"),
    ("factorial(2.5)", "NOT_WHOLE"),
    ("2 +", "UNFINISHED"),
    ("(2 + 3", "UNCLOSED"),
    ("1.2.3,4", "BAD_NUMBER"),
    ("sqrt(1; 2)", "ARGUMENTS"),
    ("__import__('os').system('true')", "UNKNOWN_WORD"),
    ("().__class__", "UNKNOWN_WORD"),
    ("=" * 1999 + "x", "UNKNOWN_WORD"),
    ("2 \x00 2", "UNKNOWN_WORD"),
]


def test_what_cannot_be_calculated_is_refused_quickly() -> None:
    for expression, code in HOSTILE:
        with limited():
            answer = calculate(expression, context=context())
        assert answer.get("ok") is False, answer
        assert answer["error"]["code"] == code
        assert answer["error"]["message"]
        assert answer["error"]["hint"]


def test_the_summary_is_in_the_persons_form() -> None:
    for expression, language, country, expected in table("calculator", "summaries"):
        assert calculate(expression, context=context(language, country))["summary"] == expected


def test_without_a_country_an_ambiguous_number_gives_both_readings() -> None:
    answer = calculate("12% de 3.450", context=context("es", ""))
    assert answer["ambiguous"] is True
    assert {reading["result"] for reading in answer["readings"]} == {"414", "0.414"}
    assert "3450" in answer["summary"]
    assert "3.45" in answer["summary"]


def test_quantities_in_other_units() -> None:
    for quantity, unit, result in table("conversions", "exact"):
        answer = convert(quantity, unit, context=context())
        assert answer.get("result") == result, answer


def test_a_conversion_is_in_the_persons_form() -> None:
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
