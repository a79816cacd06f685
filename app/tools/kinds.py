"""The kinds of JSON values, and values and schemas in words that let a model mend its call."""

import json
from collections.abc import Callable, Mapping

from app.messages import JSON

LONGEST_SHOWN = 80


def expected(schema: JSON) -> str:
    """A schema in a few words."""
    if not isinstance(schema, dict):
        return "any value"
    if isinstance(schema.get("enum"), list):
        return "one of " + ", ".join(_shown(value) for value in schema["enum"][:20])
    if "const" in schema:
        return _shown(schema["const"])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " or ".join(dict.fromkeys(expected(part) for part in schema[key][:8]))
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return " or ".join(_KIND_NAMES.get(str(kind), str(kind)) for kind in kinds)
    return _KIND_NAMES.get(str(kinds), "a value that fits the schema")


def came(value: JSON) -> str:
    """A value and its kind, short enough for a message."""
    return f"{_shown(value)} ({_kind(value)})"


def _shown(value: JSON) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _kind(value: JSON) -> str:
    for kind, test in KINDS.items():
        if kind != "number" and test(value):
            return kind
    return "number" if isinstance(value, float) else type(value).__name__


def is_integer(value: JSON) -> bool:
    return type(value) is int or (isinstance(value, float) and value.is_integer())


KINDS: dict[str, Callable[[JSON], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": is_integer,
    "number": lambda value: type(value) is int or isinstance(value, float),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
    "null": lambda value: value is None,
}
_KIND_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
