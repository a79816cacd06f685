"""JSON Schema from a function's parameters, in the form that models read best.

`Optional` becomes "not required", a literal an enum, defaults are kept, titles are not, and nested
models stand where they are used.
"""

import inspect
import json
import types
import typing
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Literal, Union

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_jsonable_python

from app.messages import JSON

Schema = dict[str, JSON]

# The types of a parameter that says nothing about itself.
PERMISSIVE = ("string", "number", "boolean", "object", "array", "null")
LARGEST_SCHEMA = 16 * 1024  # bytes of one tool's arguments, which a model reads again and again
LONGEST_DESCRIPTION = 500  # characters about one parameter
_MOST_NODES = 2000

_JSON_TYPES = (str, int, float, bool, type(None), None, list, dict, Any, object)


class Missing(Enum):
    """The mark for what is written and cannot be read."""

    UNKNOWN = "an unknown annotation"
    UNWRITTEN = "a default that is not JSON"


class TypesTooLarge(ValueError):
    """Annotations that come to more than a model should read, or that would take long to read here."""

    def __init__(self) -> None:
        super().__init__("its types are too large")


def described(description: str, examples: Iterable[str]) -> str:
    """Return a description as the model reads it: the summary, then the examples."""
    return "\n".join([description, *(f"Example: {example}" for example in examples)]).strip()


def read_annotation(annotation: object, around: Mapping[str, object]) -> tuple[Schema | None, Any | None]:
    """Return a schema of one annotation, and what turns checked JSON into that type.

    There is no schema where the annotation says nothing that JSON Schema could, and no adapter where JSON has
    the type. Raises TypesTooLarge.
    """
    if isinstance(annotation, Missing) or annotation in (Any, object, inspect.Parameter.empty):
        return None, None
    try:
        make: Any = TypeAdapter
        adapter = make(annotation)
        if not adapter.pydantic_complete:  # a name in it is known where the function was written, not here
            adapter.rebuild(_types_namespace=around)
        written = adapter.json_schema()
        schema = _Tidy(written.pop("$defs", {})).whole(written)
    except TypesTooLarge:
        raise
    except Exception:  # the author's own classes and hooks may raise anything; the caller warns
        return None, None
    return (schema, None if _is_json(annotation) else adapter) if schema else (None, None)


def _is_json(annotation: object) -> bool:
    """Tell whether checked JSON is of this type already."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return all(type(value) in (str, int, bool, type(None)) for value in inner)
    if origin in (Union, types.UnionType, list):
        return all(map(_is_json, inner))
    if origin is dict:
        return not inner or (inner[0] is str and _is_json(inner[1]))
    return any(annotation is kind for kind in _JSON_TYPES)


def optional(schema: Schema) -> Schema:
    """Return a schema without the null that only says "may be left out"."""
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or {"type": "null"} not in branches:
        return schema
    rest = [branch for branch in branches if branch != {"type": "null"}]
    outer = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(rest) == 1:
        return {**rest[0], **outer}
    return {"anyOf": rest, **outer} if rest else schema


def default_keyword(value: object) -> Schema:
    """Return the keyword for a default, none where JSON has no such value."""
    if value is None or isinstance(value, Missing):
        return {}
    try:
        written = to_jsonable_python(value)
        json.dumps(written, allow_nan=False)  # JSON has no infinity: a model's server refuses the whole call
    except (PydanticSerializationError, ValueError, TypeError):
        return {}
    return {"default": written}


class _Tidy:
    """Pydantic's schema in our form: definitions stand where they are used unless they hold themselves.

    Each such place counts against what a schema may have: where definitions use others twice, twenty make
    a million.
    """

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._kept: dict[str, Schema] = {}
        self._open: set[str] = set()
        self._left = _MOST_NODES

    def whole(self, schema: Schema) -> Schema:
        tidied = self._node(schema)
        return {**tidied, "$defs": self._kept} if self._kept else tidied

    def _node(self, schema: JSON) -> Schema:
        self._left -= 1
        if self._left < 0:
            raise TypesTooLarge
        if not isinstance(schema, dict):
            return {} if schema is True else {"not": {}}
        if "$ref" in schema:
            return self._reference(schema)
        tidied: Schema = {}
        for key, value in schema.items():
            if key == "properties":
                tidied[key] = self._properties(value, schema.get("required", ()))
            elif key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
                tidied[key] = [self._node(part) for part in value]
            elif key in {"items", "additionalProperties", "propertyNames"} and isinstance(value, dict):
                tidied[key] = self._node(value)
            elif key == "const":
                tidied["enum"] = [value]
            elif key not in {"title", "discriminator"} and not (
                key == "additionalProperties" and value is True
            ):
                tidied[key] = value
        return tidied

    def _properties(self, properties: dict[str, JSON], required: Iterable[str]) -> Schema:
        tidied = {name: self._node(schema) for name, schema in properties.items()}
        for name in tidied.keys() - set(required):
            tidied[name] = {
                key: value
                for key, value in optional(tidied[name]).items()
                if (key, value) != ("default", None)
            }
        return tidied

    def _reference(self, schema: Schema) -> Schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        beside = {key: value for key, value in schema.items() if key not in {"$ref", "title"}}
        if name not in self._definitions:
            return beside
        if name in self._open:
            self._kept[name] = {}
        elif name not in self._kept:
            self._open.add(name)
            made = self._node(self._definitions[name])
            self._open.discard(name)
            if name not in self._kept:
                return {**made, **beside}
            self._kept[name] = made
        return {"$ref": f"#/$defs/{name}", **beside}
