"""What skills say: in the person's language, and the same of it in each."""

import importlib

from app.skills.skill import bundled_names
from app.tools.authoring import Sentences, Table
from tests.skills.tools import SKILLS, context, functions

TABLE: Table = {
    "en": {
        "hello": "Hello {name}",
        "GONE": "{name} is gone.",
        "hint_GONE": "Look for {name}.",
        "BUSY": "Busy.",
    },
    "es": {
        "hello": "Hola {name}",
        "GONE": "{name} ya no está.",
        "hint_GONE": "Busca {name}.",
        "BUSY": "Ocupado.",
    },
}


def test_a_sentence_is_in_the_language_of_the_person_else_in_english() -> None:
    said = {language: Sentences(TABLE, context(language)) for language in ("es", "en", "pt")}
    assert {language: say("hello", name="Ana") for language, say in said.items()} == {
        "es": "Hola Ana",
        "en": "Hello Ana",
        "pt": "Hello Ana",
    }
    assert {language: say.language for language, say in said.items()} == {"es": "es", "en": "en", "pt": "en"}
    assert Sentences(TABLE, None)("hello", name="Ana") == "Hello Ana"


SPOKEN = [
    file
    for skill in sorted(bundled_names(SKILLS))
    for name in ("sentences.py", "tools.py")
    if (file := SKILLS / skill / "scripts" / name).is_file() and "\nSAID = {" in file.read_text("utf-8")
]


def test_a_bundled_skill_says_each_sentence_in_each_language() -> None:
    for file in SPOKEN:
        tool = next(iter(functions(file.parts[-3]).values()))
        said = importlib.import_module(f"{tool.__module__.rpartition('.')[0]}.{file.stem}").SAID
        assert set(said) == {"es", "pt", "en"}
        assert {frozenset(sentences) for sentences in said.values()} == {frozenset(said["en"])}
