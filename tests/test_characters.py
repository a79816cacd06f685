"""Texts of others in a terminal."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from app.text import visible, visible_lines


@given(st.text())
def test_nothing_invisible_is_left_and_lines_stay(text: str) -> None:
    assert not any(unicodedata.category(one).startswith(("C", "Zl", "Zp")) for one in visible(text))
    assert visible_lines(text).count("\n") == text.count("\n")
    assert visible_lines(visible_lines(text)) == visible_lines(text)


@given(st.lists(st.text()))
def test_json_stays_the_same_json(texts: list[str]) -> None:
    written = json.dumps(texts, ensure_ascii=False, indent=2)
    assert json.loads(visible_lines(written)) == texts


def test_what_people_write_stays_as_it_is() -> None:
    text = "¿Qué tal, señor? — «Bom dia» ❤️ 日本語 100 €"
    assert visible(text) == text
