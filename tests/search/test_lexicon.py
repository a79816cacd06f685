"""The lexicon, and phrases made of a tool's own texts."""

import pytest

from app.search.lexicon import Lexicon, lexicon, phrases_of
from app.search.words import words

ROWS = [
    "# a comment, and an empty line",
    "",
    "encender, prender | ligar, acender | turn on",
    "mes | mês | month",
    "mesa | mesa | table",
    "base de datos | banco de dados | database",
    "banco | banco | bank",
    "enviar, manda | enviar | send",
    "mostrar | mostrar | show",
    "aplicación | aplicação | app",
    "proveedor | fornecedor | supplier",
    "buscar | buscar | search, find",
    "pronóstico | previsão | forecast",
    "red | rede | network",
    "luz | luz | light",
    "| | picture, photo, image",
]


def meant(message: str, rows: list[str] = ROWS) -> list[str]:
    """What the words of a message mean, in their order, several meanings with a stroke between them."""
    found = Lexicon(rows).meanings(words(message))
    return ["/".join(" ".join(one) for one in found[place]) for place in sorted(found)]


@pytest.mark.parametrize(
    ("message", "english"),
    [
        ("encender", ["turn on"]),
        ("encendé", ["turn on"]),
        ("encendela", ["turn on"]),
        ("préndemelo", ["turn on"]),
        ("apaga-la e liga-a", ["turn on"]),
        ("mandámelo", ["send"]),
        ("muéstrame", ["show"]),
        ("aplicações e aplicaciones", ["app", "app"]),
        ("proveedores", ["supplier"]),
    ],
)
def test_knows_a_word_in_its_forms(message: str, english: list[str]) -> None:
    assert meant(message) == english


def test_a_word_as_it_is_written_wins_over_a_relative() -> None:
    assert meant("mesa") == ["table"]
    assert meant("mes") == ["month"]


def test_a_phrase_wins_over_its_words() -> None:
    assert meant("la base de datos del banco") == ["database", "bank"]
    assert meant("no banco de dados") == ["database"]


def test_a_phrase_means_it_at_its_first_word_that_carries_meaning() -> None:
    rows = ["va a llover | vai chover | rain", "en cuánto está | quanto está | price"]
    assert Lexicon(rows).meanings(words("va a llover")) == {2: (("rain",),)}
    assert Lexicon(rows).meanings(words("en cuánto está el dólar")) == {0: (("price",),)}


@pytest.mark.parametrize("slip", ["pronostioc", "pronotico", "pronosticco", "pronoztico"])
def test_one_slip_in_a_long_word_is_forgiven(slip: str) -> None:
    assert meant(slip) == ["forecast"]


def test_an_english_message_is_read_in_english() -> None:
    assert meant("please show me the red one") == []
    assert meant("please show me the picture") == ["picture/photo/image"]
    assert meant("la red") == ["network"]


def test_a_row_with_other_columns_is_refused_by_its_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        Lexicon(["luz | luz | light", "luz, light"])


def test_the_one_that_is_shipped_can_be_read_and_says_everything_in_english() -> None:
    found = lexicon().meanings(words("recuérdame pagar la factura"))
    assert all(meaning for meanings in found.values() for meaning in meanings)
    assert ("invoice",) in found[3]


def test_the_words_of_name_and_first_sentence_are_said_in_three_languages() -> None:
    found = phrases_of("send_email", "Sends a message. Never deletes.")
    assert found["en"] == ("send email",)
    assert found["es"][0].split()[:2] == ["enviar", "correo"]
    assert found["pt"][0].split()[0] == "enviar"
    assert "borrar" not in found["es"][0]


def test_a_long_description_makes_no_long_phrase() -> None:
    found = phrases_of("do", "send find open close delete write read play buy sell " * 10_000)
    assert all(len(text.split()) <= 12 for texts in found.values() for text in texts)
