"""What destroys can be undone by the words that its receipt names."""

from functools import partial

import pytest

from tests.world import Town

FORGET, PROJECT, REMINDERS = "forget everything", "a project", "all reminders"
WORDS = {
    ("es", FORGET): (
        ["recuerda que soy alérgico al maní", "recuerda que mi hija se llama Ana"],
        "olvida todo lo que sabes de mí",
        "¿qué sabes de mí?",
        ["maní", "Ana"],
    ),
    ("en", FORGET): (
        ["remember that I am allergic to peanuts", "remember that my daughter is called Ana"],
        "forget everything you know about me",
        "what do you know about me?",
        ["peanuts", "Ana"],
    ),
    ("es", PROJECT): (
        ["crea el proyecto Cocina", "agrega comprar pintura al proyecto Cocina"],
        "borra el proyecto Cocina",
        "¿cómo va el proyecto Cocina?",
        ["comprar pintura"],
    ),
    ("pt", REMINDERS): (
        ["me lembra amanhã às 9 de pagar a luz", "me lembra toda segunda às 8 de levar o lixo"],
        "cancela todos os meus lembretes",
        "meus lembretes",
        ["pagar a luz", "levar o lixo"],
    ),
}


YES = {"es": "sí", "pt": "sim", "en": "yes"}


@pytest.mark.parametrize(("language", "what"), WORDS)
def test_the_receipt_names_words_that_bring_it_back(offline_town: Town, language: str, what: str) -> None:
    says = partial(offline_town.graph.ask, offline_town.newcomer())
    made, destroys, shows, found = WORDS[language, what]
    for text in made:
        assert "✓" in says(text), text
    says(destroys)  # which is asked about
    receipt = says(YES[language])
    assert "✓" in receipt
    assert not any(words in says(shows) for words in found)
    undo = receipt.rpartition("“")[2].partition("”")[0]
    says(undo)
    shown = says(shows)
    for words in found:
        assert words in shown
