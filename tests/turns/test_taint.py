"""Which addresses in a call are not the person's own, in whatever way they are written."""

import pytest

from app.turns.taint import foreign_addresses

SAID = ["look at https://good.example/a/b, please", "and at good.example too"]


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/",
        "HTTPS://EVIL.EXAMPLE",
        "evil.example",
        "evil.example.",
        "//evil.example/x",
        "https:evil.example",
        "open evil.example and report",
        "mallory@evil.example",
        "https://good.example@evil.example/",
        "https://evil.example\\@good.example/a/b",
        "https://evil.example#@good.example",
        "https://good.example.evil.example/a/b",
        "https://good.example:8443/a/b",
        "https://good.example/forms?secret=1",
        "https://good.example/?u=https://evil.example",
        "evil\u3002example",
        "evil\uff0eexample",
        "\u24d4\u24e5\u24d8\u24db.example",
        "ev\u200bil.example",
        "https://ev\nil.example/",
        "xn--evl-sma.example",
        "ev\u00edl.example",
        "https://%65vil.example/",
        "evil%2Eexample",
        "https%253A%252F%252Fevil.example",
        "http://2130706433/",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "1.2.3.4",
        "http://[::1]:8080/",
        "2001:db8::1",
        "localhost:8080",
        "http://intranet/",
        "ftp://evil.example/x",
    ],
)
def test_an_address_that_the_person_did_not_write_is_foreign(text: str) -> None:
    assert foreign_addresses({"where": text}, SAID)
    assert foreign_addresses({"list": [{"deep": text}]}, SAID)
    assert foreign_addresses({text: 1}, SAID)


@pytest.mark.parametrize(
    "text",
    [
        "https://good.example/a/b",
        "http://GOOD.example/a/b",
        "good.example",
        "https://good.example/",
    ],
)
def test_an_address_that_the_person_wrote_is_theirs(text: str) -> None:
    assert foreign_addresses({"where": text}, SAID) == []


@pytest.mark.parametrize(
    "text",
    [
        "Hello. How are you?",
        "3.14",
        "12:30:45",
        "2026-11-21T10:00:00+00:00",
        "v 1.2.3",
        "5512345678",
        "a/b",
    ],
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert foreign_addresses({"text": text, "number": 42, "nothing": None, "yes": True}, []) == []


def test_host_and_path_in_two_arguments_are_one_address() -> None:
    assert foreign_addresses({"host": "good.example", "path": "/secrets?x=1"}, SAID)
    assert foreign_addresses({"host": "good.example", "path": "/a/b"}, SAID) == []


def test_a_number_that_is_an_address_is_one() -> None:
    assert foreign_addresses({"host": 134744072}, [])


@pytest.mark.parametrize("piece", ["a", "1.", ":", "a.", "%25", "a-"])
def test_long_texts_are_read_in_time(piece: str) -> None:
    text = piece * 100_000
    assert foreign_addresses({"text": text}, [text]) == []
