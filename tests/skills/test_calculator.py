from tests.limits import limited
from tests.skills.tables import table
from tests.skills.tools import context, functions

calculate = functions("calculator")["calculate"]

EXACT = table("calculator", "exact")


def test_exact_results() -> None:
    for expression, country, expected in EXACT:
        answer = calculate(expression, context=context(country=country))
        assert answer.get("result") == expected, answer
        assert answer["exact"] is True


ROUNDED = table("calculator", "rounded")


def test_rounded_results_are_marked() -> None:
    for expression, expected in ROUNDED:
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


SUMMARIES = table("calculator", "summaries")


def test_the_summary_is_in_the_persons_form() -> None:
    for expression, language, country, expected in SUMMARIES:
        assert calculate(expression, context=context(language, country))["summary"] == expected


def test_without_a_country_an_ambiguous_number_gives_both_readings() -> None:
    answer = calculate("12% de 3.450", context=context("es", ""))
    assert answer["ambiguous"] is True
    assert {reading["result"] for reading in answer["readings"]} == {"414", "0.414"}
    assert "3450" in answer["summary"]
    assert "3.45" in answer["summary"]
