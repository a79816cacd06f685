import pytest

from app.simulator.expectations import Expectations, says_something

GENERALIZED = {
    "En Tokio son las 6:36 p.m. del sábado 21 de noviembre de 2026.": "En Tokio son las {time} del {date}.",
    "São 23:05 de domingo, 1 de março de 2026": "São {time} de {date}",
    "It is 9:05 AM on Saturday, November 21, 2026 there": "It is {time} on {date} there",
    "Due 2026-11-21 or 21/11/2026": "Due {date} or {date}",
    "12% of 3,450 = 414": "12% of 3,450 = 414",
    "1. comprar pan": "1. comprar pan",
    "renew the passport in March": "renew the passport in March",
}

MET = [
    ("It is {time} on {date}", "It is 23:59 on Monday, May 4, 2027"),
    ("Son las {time} del {date}", "Es la 1:24 a. m. del domingo 22 de noviembre de 2026"),
    ("São {time} de {date}", "É 1:05 de domingo, 1 de março de 2026"),
    ("Son las {time} del {date}", "Son las 4:24 a. m. del domingo 22 de noviembre de 2026"),
    ("{number} h ahead", "5.5 h ahead"),
    ({"text": "a", "buttons": ["Yes", "No"]}, {"text": "a", "buttons": ["Yes", "No"]}),
]

NOT_MET = [
    ("It is {time}", "It is soon"),
    ("It is {time}", "It is 9:05. And more"),
    ("It is {date}", "It is Someday 4, 2027"),
    ("{number} h", "some h"),
    ("a.b", "axb"),
    ({"text": "a", "buttons": ["Yes", "No"]}, {"text": "a", "buttons": ["Yes"]}),
    ({"text": "a"}, {"text": "a", "failed": 131026}),
    ({"text": "a"}, {"body": "a"}),
    ("414", 414),
]


@pytest.fixture(scope="module")
def expectations() -> Expectations:
    return Expectations()


@pytest.mark.parametrize(("text", "general"), GENERALIZED.items())
def test_times_and_dates_become_placeholders_and_nothing_else_does(
    expectations: Expectations, text: str, general: str
) -> None:
    assert expectations.generalize(text) == general
    assert expectations.are_met(general, text)


@pytest.mark.parametrize(("expected", "actual"), MET)
def test_what_fits_is_met(expectations: Expectations, expected: object, actual: object) -> None:
    assert expectations.are_met(expected, actual)


@pytest.mark.parametrize(("expected", "actual"), NOT_MET)
def test_what_differs_is_not_met(expectations: Expectations, expected: object, actual: object) -> None:
    assert not expectations.are_met(expected, actual)


def test_an_expectation_of_placeholders_alone_says_nothing() -> None:
    assert not says_something({"text": "{time}, {date}: {number}"})
    assert says_something({"text": "At {time}"} | {"footer": "sharp"})
