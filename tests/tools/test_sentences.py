"""What skills say: in the person's language, and the same of it in each."""

import importlib

from app.skills.skill import bundled_names
from tests.skills.tools import SKILLS, functions

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
