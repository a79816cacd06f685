"""Phrases made of a tool's own texts: in three languages, short, and nothing that its texts hold already."""

import pytest

from app.search.lexicon import phrases_of


def test_the_words_of_name_and_first_sentence_are_said_in_three_languages() -> None:
    found = phrases_of("send_email", "Sends a message. Never deletes.")
    assert found["en"] == ("send email",)
    assert found["es"][0].split()[:2] == ["enviar", "correo"]
    assert found["pt"][0].split()[0] == "enviar"
    assert "borrar" not in found["es"][0]


def test_a_word_that_its_texts_hold_is_not_said_again() -> None:
    assert "correo" not in phrases_of("send_email", "Envía un correo")["es"][0]


@pytest.mark.parametrize("name", ["天気", "zzqx"])
def test_of_words_that_the_lexicon_does_not_have_only_the_name_is_left(name: str) -> None:
    assert phrases_of(name, "").keys() == {"en"}


def test_of_nothing_nothing_is_made() -> None:
    assert phrases_of("", "") == {}


def test_a_long_description_makes_no_long_phrase() -> None:
    found = phrases_of("do", "send find open close delete write read play buy sell " * 10_000)
    assert all(len(text.split()) <= 12 for texts in found.values() for text in texts)
