"""Schemas of servers in the form that model servers take: nothing that was right is refused."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from app.mcp.schema import Unusable, normalize_schema
from app.tools.validation import ArgumentsCheck, InvalidArguments
from tests.limits import limited

NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas inside it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    for part in inner:
        yield from parts(part)


def assert_plain(schema: dict[str, Any]) -> None:
    """Check what the strictest model servers ask for."""
    assert schema["type"] == "object"
    assert "anyOf" not in schema
    assert len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode()) <= 16 * 1024
    known = {"type", "description", "default", "enum", "anyOf", "properties", "required", "items"}
    known |= {
        *("additionalProperties", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength"),
        *("pattern", "format", "minimum", "maximum"),
    }
    known |= {"minItems", "maxItems", "minProperties", "maxProperties"}
    for part in parts(schema):
        assert part.keys() <= known
        assert isinstance(part.get("type", ""), str)
        if part.get("type") == "object":
            assert set(part.get("required", ())) <= part["properties"].keys()
        if part.get("type") == "array":
            assert isinstance(part["items"], dict)


def of(part: Any, *, required: bool = True, **beside: Any) -> Any:
    """Return what one parameter becomes."""
    whole = {"type": "object", "properties": {"x": part}, "required": ["x"] if required else [], **beside}
    return normalize_schema(whole)["properties"]["x"]


def test_a_parameter_in_the_plain_form() -> None:
    for part, plain in [
        ({"type": "string", "title": "X", "examples": ["a"], "$comment": "c"}, {"type": "string"}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        ({"type": "integer", "default": 3, "minimum": 1}, {"type": "integer", "minimum": 1, "default": 3}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "exclusiveMinimum": 0}),
        ({"minimum": 5, "exclusiveMinimum": True, "type": "integer"}, {"type": "integer", "minimum": 5}),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({}, {}),
        (True, {}),
        ("not a schema", {}),
        ({"type": "banana"}, {}),
        ({"type": ["string", "banana"]}, {}),
        ({"type": ["string", "number", "boolean", "object", "array", "null"]}, {}),
        ({"type": ["string", "boolean"]}, {"anyOf": [{"type": "string"}, {"type": "boolean"}]}),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
        ({"anyOf": [{"type": "string"}, {}]}, {}),
        ({"anyOf": [{"type": "string"}, {"type": "string"}]}, {"type": "string"}),
        (
            {"allOf": [{"type": "integer", "minimum": 1}, {"type": "number", "minimum": 2}]},
            {"type": "integer", "minimum": 1},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {
                "type": "object",
                "patternProperties": {"^a": {"type": "string"}},
                "additionalProperties": False,
            },
            {"type": "object", "properties": {}, "additionalProperties": True},
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", 3]},
            {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {}}},
        ),
        (
            {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"type": "object", "properties": {"a": {}}},
        ),
    ]:
        assert of(part) == plain


def test_null_stays_where_it_differs_from_omission() -> None:
    for part, required, plain in [
        ({**NULLABLE, "default": None}, False, {"type": "string"}),
        (NULLABLE, False, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (NULLABLE, True, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": ["string", "null"], "default": None}, False, {"type": "string"}),
        ({"type": ["string", "null"]}, True, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"enum": ["a", None], "default": None}, False, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", None]}, True, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"type": "null"}, True, {"type": "null"}),
    ]:
        assert of(part, required=required) == plain


def test_a_recursive_schema_is_cut_at_its_second_repetition() -> None:
    tree = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        },
    }
    made = of({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}})
    below = made["properties"]["children"]["items"]
    assert below["properties"]["name"] == {"type": "string"}
    assert below["properties"]["children"]["items"] == {"type": "object", "properties": {}}
    whole = {"type": "object", "properties": {"x": tree}, "$defs": {"tree": tree}}
    check = ArgumentsCheck(normalize_schema(whole))
    nested = {"name": "a", "children": [{"name": "b", "children": [{"name": "c", "children": []}]}]}
    assert check({"x": nested}) == {"x": nested}


def test_undeclared_arguments_are_unknown_unless_the_schema_is_open() -> None:
    for schema, takes_others in [
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": []}, False),
        ({"type": "object"}, True),
        ({"properties": {"a": {}}, "additionalProperties": True}, True),
        ({"properties": {"a": {}}, "additionalProperties": {}}, True),
        ({"properties": {"a": {}}, "if": {}, "then": {"properties": {"other": {}}}}, True),
        ({"properties": {"a": {}}, "patternProperties": {"^o": {}}}, True),
        ({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "object"}]}, True),
    ]:
        check = ArgumentsCheck(normalize_schema(schema))
        if takes_others:
            assert check({"other": 1}) == {"other": 1}
        else:
            with pytest.raises(InvalidArguments, match="unknown argument"):
                check({"other": 1})


def test_an_unusable_schema_gives_the_reason() -> None:
    for schema, why in [
        (None, "no object"),
        ("object", "no object"),
        (True, "no object"),
        ({"type": "string"}, "of type object, got"),
        ({"type": 7}, "of type object, got"),
        ({"type": "banana"}, "of type object, got"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "no object fits"),
        ({"anyOf": [{"type": "string"}, False]}, "no object fits"),
        ({"properties": {f"parameter_{n}": {"type": "string"} for n in range(1000)}}, "more than 16 KiB"),
    ]:
        with pytest.raises(Unusable, match=why):
            normalize_schema(schema)


def test_a_large_schema_loses_descriptions_first_and_depth_next() -> None:
    deep = {"type": "object", "properties": {f"field{n}": {"type": "string"} for n in range(30)}}
    wordy = {f"p{n}": {**deep, "description": "word " * 400} for n in range(20)}
    made = normalize_schema({"type": "object", "properties": wordy})
    assert_plain(made)
    assert list(made["properties"]) == list(wordy)
    assert {part["type"] for part in made["properties"].values()} == {"object"}


def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
    made: Any = {"type": "string"}
    for _ in range(depth):
        made = wrap(made)
    return {"type": "object", "properties": {"x": made}}


def doubling(levels: int) -> Any:
    both = {f"d{n}": {"properties": {c: {"$ref": f"#/$defs/d{n + 1}"} for c in "ab"}} for n in range(levels)}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": both}


def squaring(levels: int) -> Any:
    made: Any = {"type": "string"}
    for _ in range(levels):
        made = {
            "type": "object",
            "properties": {"x": made, "y": {"type": "integer"}},
            "anyOf": [{"type": "object", "properties": {f"z{n}": {"type": "string"}}} for n in range(20)],
        }
    return {"type": "object", "properties": {"x": made}}


HOSTILE = {
    "a hundred thousand properties deep": lambda: nested(100_000, lambda s: {"properties": {"x": s}}),
    "allOf in allOf": lambda: nested(100_000, lambda s: {"allOf": [s]}),
    "anyOf in anyOf": lambda: nested(100_000, lambda s: {"anyOf": [s, {"type": "null"}]}),
    "definitions that double": lambda: doubling(60),
    "alternatives of alternatives": lambda: squaring(8),
    "itself twice": lambda: {"allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}]},
    "a circle": lambda: {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "a huge enum": lambda: {"properties": {"x": {"enum": list(range(200_000))}}},
    "many huge enums": lambda: {
        "properties": {"x": {"anyOf": [{"enum": list(range(n, n + 190))} for n in range(0, 19_000, 190)]}}
    },
    "a million properties": lambda: {"properties": {str(n): {} for n in range(200_000)}},
    "products": lambda: {
        "allOf": [
            {"anyOf": [{"type": "object", "properties": {f"{a}{b}": {}}} for b in range(10)]}
            for a in range(200)
        ]
    },
    "a type that is deep": lambda: {"type": nested(100_000, lambda s: [s])},
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_schema_is_handled_in_bounded_time(made: Callable[[], Any]) -> None:
    schema = made()
    with limited():
        try:
            plain = normalize_schema(schema)
        except Unusable:
            return
        assert_plain(plain)
        ArgumentsCheck(plain)


NAMES = st.sampled_from(["a", "b", "c", "one", "two"])
Fitting = tuple[Any, Any]
"""A schema and a value that may fit it."""


CONSTANTS = [None, True, False, 0, 1, 1.5, "a", "", [1], {"a": 1}]
TEXTS = st.text("abz9", max_size=4)
NUMBERS = st.integers(-5, 5) | st.sampled_from([0.5, 1.0, -2.5])
SCHEMAS_OF_TEXTS = [
    {"type": "string", "title": "T"},
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "pattern": "^a"},
    {"type": "string", "pattern": "[a-z]+", "minLength": 1},
    {"type": "string", "enum": ["a", "b", "ab"]},
    {"type": ["integer", "string"], "minimum": 0, "maxLength": 2},
]
SCHEMAS_OF_NUMBERS = [
    {"type": "integer", "minimum": -3, "exclusiveMaximum": 2.5},
    {"type": "integer", "exclusiveMinimum": -2.5, "multipleOf": 0.5},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 5},
    {"type": ["number", "null"], "minimum": 0, "exclusiveMinimum": -5},
]


def leaves() -> st.SearchStrategy[Fitting]:
    listed = st.lists(st.sampled_from(CONSTANTS), min_size=1, max_size=4)
    constants = st.builds(lambda values: {"enum": values}, listed)
    constants |= st.builds(lambda value: {"const": value}, st.sampled_from(CONSTANTS))
    return (
        st.tuples(st.sampled_from(SCHEMAS_OF_TEXTS), TEXTS)
        | st.tuples(st.sampled_from(SCHEMAS_OF_NUMBERS), NUMBERS)
        | st.tuples(constants, st.sampled_from(CONSTANTS))
    )


def lists(inner: st.SearchStrategy[Fitting]) -> st.SearchStrategy[Fitting]:
    def made(items: list[Fitting], rest: Any) -> Fitting:
        schemas = [schema for schema, _ in items]
        of_each = {"items": {"anyOf": schemas}} if rest is None else {"prefixItems": schemas, "items": rest}
        return {"type": "array", **of_each}, [value for _, value in items]

    return st.builds(made, st.lists(inner, min_size=1, max_size=3), st.sampled_from([None, False]))


def objects(inner: st.SearchStrategy[Fitting]) -> st.SearchStrategy[Fitting]:
    def made(fields: dict[str, Fitting], required: bool, extra: Any, style: str) -> Fitting:
        schemas = {name: schema for name, (schema, _) in fields.items()}
        whole = {"type": "object", "properties": schemas, "required": list(fields) if required else []}
        if extra is not None:
            whole["additionalProperties"] = extra
        if style == "patterns":
            patterns = {f"^{name}": schema for name, schema in schemas.items()}
            whole = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
        if style == "parts":
            split = [{"type": "object", "properties": {n: s}, "required": [n]} for n, s in schemas.items()]
            whole = {"allOf": [*split, {"required": []}]}
        return whole, {name: one for name, (_, one) in fields.items()}

    extras = st.sampled_from([None, True, False, {"type": "string"}])
    styles = st.sampled_from(["", "patterns", "parts"])
    return st.builds(made, st.dictionaries(NAMES, inner, max_size=3), st.booleans(), extras, styles)


def combined(inner: st.SearchStrategy[Fitting]) -> st.SearchStrategy[Fitting]:
    def one_of(key: str, first: Fitting, second: Fitting) -> Fitting:
        return {key: [first[0], second[0]], "description": "either"}, first[1]

    def or_null(one: Fitting, value: bool) -> Fitting:
        return {"anyOf": [one[0], {"type": "null"}], "default": None}, one[1] if value else None

    keys = st.sampled_from(["anyOf", "oneOf", "allOf"])
    return st.builds(one_of, keys, inner, inner) | st.builds(or_null, inner, st.booleans())


FITTING = st.recursive(leaves(), lambda inner: lists(inner) | objects(inner) | combined(inner), max_leaves=12)


def without_nulls(value: Any) -> Any:
    """Left out and null are the same where a property may be left out."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(NAMES, FITTING, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_the_plain_form_accepts_what_the_original_accepts(
    fields: dict[str, Fitting], required: bool, referred: bool
) -> None:
    schemas = {name: schema for name, (schema, _) in fields.items()}
    value = {name: one for name, (_, one) in fields.items()}
    schema: dict[str, Any] = {"type": "object", "required": list(fields) if required else []}
    schema["properties"] = {name: {"$ref": f"#/$defs/{name}"} for name in schemas} if referred else schemas
    schema["$defs"] = schemas
    if not Draft202012Validator(schema).is_valid(value):
        return
    plain = normalize_schema(schema)
    assert_plain(plain)
    assert without_nulls(ArgumentsCheck(plain)(value)) == without_nulls(value)
