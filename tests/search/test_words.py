"""Words, stems and languages."""

import pytest

from app.search.words import holds, language_of, says_something, stem, terms, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getWeatherByCity", ["get", "weather", "by", "city"]),
        ("HTTPServer_port-2", ["http", "server", "port", "2"]),
        ("¿Qué hora es en São Paulo?", ["que", "hora", "es", "en", "sao", "paulo"]),
        ("東京の天気", ["東京", "京の", "の天", "天気"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("Привет, мир", ["привет", "мир"]),
        ("", []),
        ("🙂 !!", []),
    ],
)
def test_words_come_apart_and_lose_their_accents(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "relatives",
    [
        ("nota", "notas", "note", "notes"),
        ("calcular", "calcula", "calculator", "calculate"),
        ("guardar", "guarda", "guardado"),
        ("lembrete", "lembretes"),
        ("reminder", "remind", "reminders"),
        ("save", "saved", "saving"),
    ],
)
def test_relatives_share_a_stem(relatives: tuple[str, ...]) -> None:
    assert len({stem(word) for word in relatives}) == 1


def test_small_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert terms("what is the weather") == terms("weather")
    assert terms("what is it") != []
    assert not says_something("hola, ¿me puedes decir?")
    assert says_something("hola pizza")


@pytest.mark.parametrize(
    ("text", "said", "is_held"),
    [
        ("La reunión con Ana", "reuniones de ana", True),
        ("La reunio\u0301n con Ana", "reunión", True),
        ("東京の天気", "天気", True),
        ("los encuentros", "cuentos", False),  # letters of it, and no word
        ("", "", True),
    ],
)
def test_a_text_holds_words_in_whatever_form(text: str, said: str, is_held: bool) -> None:
    assert holds(text, terms(said)) is is_held


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("qué hora es en", "es"),
        ("que horas são em", "pt"),
        ("what time is it in", "en"),
        ("quanto é", "pt"),
        ("zzz", None),
    ],
)
def test_language_is_guessed_by_small_words(text: str, language: str | None) -> None:
    assert language_of(words(text)) == language


def test_words_of_a_long_text_are_those_of_its_parts_however_accents_are_written() -> None:
    apart = "Cafe\u0301 da manha\u0303 "
    assert words(apart * 500) == ["cafe", "da", "manha"] * 500
    assert words("a" + "\u0315\u0300" * 50_000 + " b")[-1] == "b"
