"""What is accepted, mended and refused, and in which words."""

import time
from typing import Any

import pytest

from app.tools.arguments import ArgumentsCheck, InvalidArguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 5},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "price": {"type": "number"},
        "urgent": {"type": "boolean"},
        "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
        "level": {"type": "string", "enum": ["low", "high"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "place": {
            "type": "object",
            "properties": {"x": {"type": "integer"}},
            "required": ["x"],
            "additionalProperties": False,
        },
        "day": {"type": "string", "pattern": r"^\d{4}-\d{2}$"},
        "slow": {"type": "string", "pattern": "^(a+)+$"},
        "node": {"$ref": "#/$defs/node"},
        "loop": {"$ref": "#/$defs/loop"},
    },
    "required": ["title"],
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}},
        },
        "loop": {"$ref": "#/$defs/pool"},
        "pool": {"$ref": "#/$defs/loop"},
    },
}
check = ArgumentsCheck(SCHEMA)


@pytest.mark.parametrize(
    ("given", "checked"),
    [
        ({"count": 3}, {"count": 3}),
        ({"count": "3"}, {"count": 3}),
        ({"count": 3.0}, {"count": 3}),
        ({"price": "2.5"}, {"price": 2.5}),
        ({"urgent": "True"}, {"urgent": True}),
        ({"labels": '["a", "b"]'}, {"labels": ["a", "b"]}),
        ({"labels": None, "count": None, "level": None}, {}),
        ({"note": None}, {"note": None}),
        ({"note": "null"}, {"note": "null"}),
        ({"either": "5"}, {"either": "5"}),
        ({"place": {"x": "1"}}, {"place": {"x": 1}}),
        ({"day": "2026-05"}, {"day": "2026-05"}),
        ({"node": {"next": {"next": {"n": 1}}}}, {"node": {"next": {"next": {"n": 1}}}}),
    ],
)
def test_accepted(given: dict[str, Any], checked: dict[str, Any]) -> None:
    assert check({"title": "t", **given}) == {"title": "t", **checked}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"title": 5}, "title: expected a string, got 5 (integer)"),
        ({"title": None}, "title: expected a string, got null (null)"),
        ({"title": ""}, "title: expected at least 1 characters, got 0"),
        ({"titel": "x"}, "titel: unknown argument, did you mean title?"),
        ({"count": True}, "count: expected an integer, got true (boolean)"),
        ({"count": "many"}, 'count: expected an integer, got "many" (string)'),
        ({"count": "12"}, "count: expected a number of at most 9, got 12"),
        ({"labels": ["a", 3]}, "labels[1]: expected a string, got 3 (integer)"),
        ({"labels": "bug"}, 'labels: expected an array, got "bug" (string)'),
        ({"level": "urgent"}, 'level: expected one of "low", "high", got "urgent" (string)'),
        ({"place": {}}, "place: field 'x' is required and missing, expected an integer"),
        ({"place": {"x": 1, "y": 2}}, "place: unknown field 'y', known: x"),
        ({"either": []}, "either: expected an integer or a string, got [] (array)"),
        ({"day": "May"}, "day: expected text that matches"),
        ({"node": {"next": {"n": "x"}}}, 'node.next.n: expected an integer, got "x" (string)'),
        ({"loop": 1}, "nested too deeply"),
    ],
)
def test_refused_in_words_that_let_a_model_mend_its_call(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        check({"title": "t", **given})
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ['{"title": "a"}', '"{\\"title\\": \\"a\\"}"', b'{"title":"a"}'])
def test_json_text_is_taken(text: Any) -> None:
    assert check(text) == {"title": "a"}


@pytest.mark.parametrize("text", ["{bad", "[1]", "5", '"x"', "[" * 100_000])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments):
        check(text)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidArguments) as caught:
        check({"count": "x", "level": "y"})
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["count", "level", "title"]


def test_a_hostile_pattern_takes_no_time() -> None:
    started = time.perf_counter()
    assert check({"title": "t", "slow": "a" * 40 + "!"})
    assert time.perf_counter() - started < 0.5


def test_a_schema_without_properties_takes_anything() -> None:
    assert ArgumentsCheck({"type": "object"})({"any": 1}) == {"any": 1}
    assert ArgumentsCheck({})({"any": 1}) == {"any": 1}


def test_many_deep_values_are_refused_not_crashed() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"next": deep}
    with pytest.raises(InvalidArguments, match="too deeply"):
        check({"title": "t", "node": deep})
