"""What is accepted, mended and refused, and in which words."""

import json
import subprocess
import sys
from typing import Any

import orjson
import pytest

from app.tools.validation import ArgumentsCheck, InvalidArguments

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
        "node": {"$ref": "#/$defs/node"},
    },
    "required": ["title"],
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
    },
}
check = ArgumentsCheck(SCHEMA)


def test_json_text_is_taken_and_its_integers_exactly() -> None:
    for written in [
        '{"title": "a", "either": 34191790010104351004791}',
        b'{"title": "a"}',
        '"{\\"title\\": \\"a\\"}"',
    ]:
        read = json.loads(written)
        assert check(written) == (json.loads(read) if isinstance(read, str) else read)


def test_accepted() -> None:
    for given, checked in [
        ({"count": 3}, {"count": 3}),
        ({"count": "3"}, {"count": 3}),
        ({"count": 3.0}, {"count": 3}),
        ({"price": "2.5"}, {"price": 2.5}),
        ({"urgent": "True"}, {"urgent": True}),
        ({"labels": '["a", "b"]'}, {"labels": ["a", "b"]}),
        ({"labels": "bug"}, {"labels": ["bug"]}),
        ({"labels": None, "count": None, "level": None}, {}),
        ({"note": None}, {"note": None}),
        ({"note": "null"}, {"note": "null"}),
        ({"either": "5"}, {"either": "5"}),
        ({"place": {"x": "1"}}, {"place": {"x": 1}}),
        ({"day": "2026-05"}, {"day": "2026-05"}),
        ({"node": {"next": {"next": {"n": 1}}}}, {"node": {"next": {"next": {"n": 1}}}}),
    ]:
        assert check({"title": "t", **given}) == {"title": "t", **checked}


def test_refused_in_words_that_let_a_model_mend_its_call() -> None:
    for given, words in [
        ({"title": 5}, 'title: 5 is not of type "string"'),
        ({"title": None}, 'title: null is not of type "string"'),
        ({"title": ""}, 'title: "" is shorter than 1 character'),
        ({"titel": "x"}, "titel: unknown argument. There are: title, count"),
        ({"count": True}, 'count: true is not of type "integer"'),
        ({"count": "many"}, 'count: "many" is not of type "integer"'),
        ({"count": "12"}, "count: 12 is greater than the maximum of 9"),
        ({"labels": ["a", 3]}, 'labels[1]: 3 is not of type "string"'),
        ({"labels": 7}, 'labels: 7 is not of type "array"'),
        ({"level": "urgent"}, 'level: expected one of "low", "high", got "urgent"'),
        ({"place": {}}, "place.x: required and missing"),
        ({"place": {"x": 1, "y": 2}}, "place.y: unknown argument"),
        ({"either": []}, 'either: [] is not of type "integer" or [] is not of type "string"'),
        ({"day": "May"}, 'day: "May" does not match'),
        ({"node": {"next": {"n": "x"}}}, 'node.next.n: "x" is not of type "integer"'),
    ]:
        with pytest.raises(InvalidArguments) as caught:
            check({"title": "t", **given})
        assert words in str(caught.value)


def test_other_text_is_refused() -> None:
    for text in ["{bad", "[1]", "5", '"x"', "[" * 100_000]:
        with pytest.raises(InvalidArguments):
            check(text)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidArguments) as caught:
        check({"count": "x", "level": "y"})
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["count", "level", "title"]


def said(cases: list[tuple[dict[str, Any], object]]) -> list[str]:
    """Return what the check of each schema says of its value, by one process that has ten seconds."""
    code = (
        "import sys, orjson\nfrom app.tools.validation import ArgumentsCheck\n"
        "for schema, value in orjson.loads(sys.stdin.buffer.read()):\n"
        "    try:\n        ArgumentsCheck(schema)(value)\n        print('taken', flush=True)\n"
        "    except ValueError as error:\n        print(error, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=orjson.dumps(cases), capture_output=True, timeout=10, check=True
    )
    return done.stdout.decode().splitlines()


HOSTILE_PATTERNS = [
    ("^" + ".?" * 60 + "~$", "the weather in Lisbon tomorrow and then some", "does not match"),
    ("^" + "a{0,9}" * 30 + "$", "a" * 200 + "!", "does not match"),
    ("^(a+)+$", "a" * 200 + "!", "does not match"),
    ("^(a+)+$", "a" * 200, "taken"),
    (r"((a?){200}){200}$", "a" * 200 + "!", "taken"),
    (r"(?x)((a?) {200}) {200}$", "a" * 200 + "!", "taken"),
    (r"^(?=a)", "b", "taken"),
    (r"(a)\1", "b", "taken"),
    ("(", "b", "taken"),
]


@pytest.mark.slow
def test_hostile_schemas_take_no_time() -> None:
    cases: list[tuple[dict[str, Any], object]] = [
        ({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}, {"x": text})
        for pattern, text, _ in HOSTILE_PATTERNS
    ]
    expected = [said for _, _, said in HOSTILE_PATTERNS]
    names = [f"x{n}" for n in range(300)]
    heavy = {"properties": {name: {"type": "string", "pattern": r"^\w{90}$"} for name in names}}
    cases.append((heavy, dict.fromkeys(names, "!" * 5000)))
    expected.append("taken")
    for word in ("anyOf", "oneOf"):
        many = {"type": "array", "items": {word: [{"type": "integer", "minimum": n} for n in range(300)]}}
        cases += [({"properties": {"x": many}}, {"x": [value] * 1000}) for value in ("no", 1000)]
        expected += ["the arguments leave too many alternatives to be checked"] * 2
    for case, answer, wanted in zip(cases, said(cases), expected, strict=True):
        assert wanted in answer, case
