"""What skills say: in the person's language, and the same of it in each."""

import yaml

from app.skills.skill import bundled_names
from tests.skills.tools import SKILLS


def test_a_bundled_skill_says_each_sentence_in_each_language() -> None:
    for skill in bundled_names(SKILLS):
        file = SKILLS / skill / "assets" / "sentences.yaml"
        said = yaml.safe_load(file.read_text("utf-8")).get("said") if file.is_file() else None
        if said is not None:
            assert set(said) == {"es", "pt", "en"}
            assert {frozenset(sentences) for sentences in said.values()} == {frozenset(said["en"])}
