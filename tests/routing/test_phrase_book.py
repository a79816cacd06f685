"""What a model writes for installed tools is read strictly and bounded."""

from typing import Any

import pytest

from app.routing.phrase_book import read_answer


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ('```json\n{"a": {"es": ["uno", "uno", 3]}}\n```', {"a": {"es": ("uno",)}}),
        (
            '{as asked}: {"a": {"fr": ["un"], "en": ["one\\ntwo"]}, "b": {"en": ["two"]}}',
            {"a": {"en": ("one two",)}},
        ),
        ('{"a": {"en": ["do {x}", "' + "x" * 200 + '", "\\ud800", "hid\\u202eden"]}}', {}),
        ('{"a": {"en": ["1","2","3","4","5","6","7"]}}', {"a": {"en": tuple("12345")}}),
        ("nothing", {}),
        ('{"a": ' * 5000, {}),
    ],
)
def test_of_what_the_model_wrote_only_short_visible_phrases_are_kept(answer: str, kept: Any) -> None:
    assert read_answer(answer, ["a"]) == kept
