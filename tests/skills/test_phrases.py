"""What a model writes for tools from elsewhere: read strictly, kept for exactly what was described."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.errors import RecadoError
from app.skills.phrases import (
    FILE,
    MOST_OF_A_TOOL,
    MOST_PHRASES,
    phrases,
    read_phrases,
    write_phrases,
)

LANGUAGES = ("es", "pt", "en")
NOW = {"now": "Says the time"}


class Writer:
    """A model that answers so; keeps what it was asked."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []

    async def __call__(self, instructions: str, text: str) -> str:
        self.asked.append((instructions, json.loads(text)))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ('```json\n{"a": {"es": ["uno", "uno", 3]}}\n```', {"a": {"es": ("uno",)}}),
        ('{"a": {"fr": ["un"]}, "b": {"en": ["two"]}}', {}),
        ('{"a": {"en": ["do {x}", "' + "x" * 200 + '"]}}', {}),
        ('{"a": {"en": ["1","2","3","4","5","6","7"]}}', {"a": {"en": tuple("12345")}}),
        ('{"a": ["x"], "b": 3}', {}),
        ("nothing", {}),
        ("[" * 100_000, {}),
        ('{"a": ' * 5000, {}),
    ],
)
def test_of_what_the_model_wrote_only_short_phrases_are_kept(answer: str, kept: Any) -> None:
    assert read_phrases(answer, ["a"], LANGUAGES) == kept


def test_a_tool_has_at_most_five_phrases_in_each_of_four_languages() -> None:
    languages = ("en", "es", "pt", "fr", "de")
    answer = json.dumps({"a": {language: list("1234567") for language in languages}})
    found = read_phrases(answer, ["a"], languages)["a"]
    assert {len(said) for said in found.values()} == {MOST_PHRASES}
    assert sum(map(len, found.values())) == MOST_OF_A_TOOL


async def test_phrases_are_written_once_and_in_the_languages_that_were_asked_for(tmp_path: Path) -> None:
    file = tmp_path / FILE
    writer = Writer('{"now": {"pt": ["que horas são"], "en": ["what time is it"]}}')
    assert phrases(file, NOW) == {}
    assert await write_phrases(writer, file, NOW, ["pt"])
    assert phrases(file, NOW) == {"now": {"pt": ("que horas são",)}}
    assert not await write_phrases(writer, file, NOW, ["pt"])
    ((instructions, shown),) = writer.asked
    assert "pt (Brazilian Portuguese)." in instructions
    assert shown == [{"tool": "now", "description": "Says the time"}]


async def test_a_tool_that_is_described_otherwise_is_asked_about_anew_and_the_others_keep_theirs(
    tmp_path: Path,
) -> None:
    file = tmp_path / FILE
    await write_phrases(Writer('{"now": {"en": ["time?"]}}'), file, NOW | {"dull": "Does a thing"}, ["en"])
    changed = {"now": "Says the moon", "dull": "Does a thing"}
    assert phrases(file, changed) == {}
    writer = Writer('{"now": {"en": ["moon?"]}}')
    assert await write_phrases(writer, file, changed, ["en"])
    assert [one["tool"] for one in writer.asked[0][1]] == ["now"]
    assert phrases(file, changed) == {"now": {"en": ("moon?",)}}
    assert phrases(file, NOW) == {}


@pytest.mark.parametrize(
    "answer", ["I would rather not.", '{"other": {"en": ["x"]}}', RecadoError("no model")]
)
async def test_a_model_that_fails_or_writes_nonsense_leaves_what_there_is(
    answer: str | Exception, tmp_path: Path
) -> None:
    assert not await write_phrases(Writer(answer), tmp_path / FILE, NOW, ["en"])
    assert list(tmp_path.iterdir()) == []


async def test_nothing_is_written_beside_what_was_removed_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "gone" / FILE
    assert not await write_phrases(Writer('{"now": {"en": ["time?"]}}'), file, NOW, ["en"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "[]", "\x00", '{"now": 3}', '{"now": {"of": 1, "en": ["x"]}}'])
def test_a_file_that_is_none_of_ours_holds_no_phrases(content: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(content)
    assert phrases(tmp_path / FILE, NOW) == {}
