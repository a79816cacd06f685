"""JSON Schema from a function's parameters, in the form that models read best.

`Optional` becomes "not required", a literal an enum, defaults are kept, titles are not, and nested
models stand where they are used. Plain types are written by hand here; the rest is pydantic's work.
"""

import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, Union

from app.messages import JSON
from app.tools.plain import dumps

Schema = dict[str, JSON]

PERMISSIVE = ("string", "number", "boolean", "object", "array", "null")
"""The types of a parameter that says nothing about itself."""

LARGEST_SCHEMA = 16 * 1024
"""Bytes of JSON of one tool's arguments, which are read by a model again and again."""
LONGEST_DESCRIPTION = 500
"""Characters about one parameter."""
_MOST_NODES = 2000

_NOTHING: Mapping[str, object] = types.MappingProxyType({})
_SIMPLE: dict[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"type": "array", "items": {}},
    dict: {"type": "object"},
}


class Missing(Enum):
    """What stands where a parameter has no annotation or no default that could be written."""

    ANNOTATION = "no annotation"
    UNKNOWN = "an unknown annotation"
    REQUIRED = "no default"
    UNWRITTEN = "a default that is not JSON"


class TypesTooLarge(ValueError):
    """Annotations that come to more than a model should read, or that would take long to read here."""

    def __init__(self) -> None:
        super().__init__("its types are too large")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function, however it was found."""

    name: str
    annotation: object = Missing.ANNOTATION
    default: object = Missing.REQUIRED
    description: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The schema of a function's arguments, what makes its types of them, and words for its author."""

    schema: Schema
    adapters: Mapping[str, Any]
    warnings: tuple[str, ...]


def described(description: str, examples: Iterable[str]) -> str:
    """A description as the model reads it: the summary, then the examples."""
    return "\n".join([description, *(f"Example: {example}" for example in examples)]).strip()


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def read_parameters(parameters: Iterable[Parameter], around: Mapping[str, object] = _NOTHING) -> Arguments:
    """The arguments object of these parameters. `around`: what names in their annotations may mean.

    Raises TypesTooLarge where it would be more than 16 KB of JSON.
    """
    properties: dict[str, Schema] = {}
    required: list[str] = []
    warnings: list[str] = []
    definitions: dict[str, Schema] = {}
    adapters: dict[str, Any] = {}
    room = LARGEST_SCHEMA
    for parameter in parameters:
        schema, adapter = read_annotation(parameter.annotation, around)
        if schema is None:
            if parameter.annotation not in (Any, object):
                fault = (
                    parameter.annotation if parameter.annotation is Missing.ANNOTATION else Missing.UNKNOWN
                )
                warnings.append(f"{parameter.name}: {fault.value}, so any JSON value is accepted")
            schema = {"type": list(PERMISSIVE)}
        if adapter is not None:
            adapters[parameter.name] = adapter
        definitions |= schema.pop("$defs", {})
        if parameter.default is Missing.REQUIRED:
            required.append(parameter.name)
        else:
            schema = _optional(schema)
            schema |= _default(parameter.default)
        if parameter.default is Missing.UNWRITTEN:
            warnings.append(f"{parameter.name}: its default is no literal, so the model is not told of it")
        if parameter.description and "description" not in schema:
            schema["description"] = parameter.description
        if len(str(schema.get("description", ""))) > LONGEST_DESCRIPTION:
            schema["description"] = shortened(str(schema["description"]), LONGEST_DESCRIPTION)
            warnings.append(f"{parameter.name}: its description is cut to {LONGEST_DESCRIPTION} characters")
        properties[parameter.name] = schema
        room = _room_after([schema, definitions], room)
    whole: Schema = {"type": "object", "properties": properties, "required": required}
    if definitions:
        whole["$defs"] = definitions
    if len(dumps(whole)) > LARGEST_SCHEMA:
        raise TypesTooLarge
    return Arguments(whole, adapters, tuple(warnings))


def read_annotation(annotation: object, around: Mapping[str, object]) -> tuple[Schema | None, Any | None]:
    """A fresh schema of one annotation, and what turns checked JSON into that type.

    No schema where the annotation says nothing that JSON Schema could, no adapter where JSON has the type.
    Raises TypesTooLarge.
    """
    if isinstance(annotation, Missing) or annotation in (Any, object):
        return None, None
    native = _native(annotation)
    if native is not None:
        return native, None
    try:
        adapter = _type_adapter(annotation, around)
        written = adapter.json_schema()
        schema = _Tidy(written.pop("$defs", {})).whole(written)
    except TypesTooLarge:
        raise
    except Exception:  # the author's own classes and hooks may raise anything; the caller warns
        return None, None
    return (schema, adapter) if schema else (None, None)


def from_field(parameter: Parameter) -> tuple[Parameter, object]:
    """A parameter whose default is `Field(…)`: the field describes it, and holds the real default."""
    from pydantic.fields import FieldInfo
    from pydantic_core import PydanticUndefined

    info = parameter.default
    if not isinstance(info, FieldInfo):
        return parameter, Missing.REQUIRED
    default: object = info.get_default(call_default_factory=True, validated_data={})
    default = Missing.REQUIRED if default is PydanticUndefined or default is ... else default
    if parameter.annotation is Missing.ANNOTATION:
        return replace(parameter, default=default, description=info.description or ""), default
    try:
        annotated: object = typing.Annotated[parameter.annotation, info]
    except TypeError:  # `Optional` alone, and other words of typing that are no type
        annotated = Missing.UNKNOWN
    return replace(parameter, annotation=annotated, default=default), default


def _type_adapter(annotation: object, around: Mapping[str, object]) -> Any:
    from pydantic import TypeAdapter

    from app.tools.typed_dicts import make_readable

    make_readable(annotation, around)
    make: Any = TypeAdapter
    adapter = make(annotation)
    if not adapter.pydantic_complete:  # a name in it is known where the function was written, not here
        adapter.rebuild(_types_namespace=around)
    return adapter


def _native(annotation: object) -> Schema | None:
    """The schema of types that JSON has itself; `None` for all others."""
    try:
        simple = _SIMPLE.get(annotation)
    except TypeError:
        return None
    if simple is not None:
        return dict(simple)
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _enumeration(inner)
    if origin in (Union, types.UnionType):
        return _union([_native(part) for part in inner])
    if origin is list and len(inner) == 1:
        items = {} if inner[0] in (Any, object) else _native(inner[0])
        return None if items is None else {"type": "array", "items": items}
    if origin is dict and len(inner) == 2 and inner[0] is str:
        values = {} if inner[1] in (Any, object) else _native(inner[1])
        if values is None:
            return None
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    return None


def _union(parts: list[Schema | None]) -> Schema | None:
    known = [part for part in parts if part is not None]
    return {"anyOf": known} if len(known) == len(parts) else None


def _enumeration(values: Iterable[object]) -> Schema | None:
    listed = list(values)
    if not all(value is None or type(value) in (str, int, bool) for value in listed):
        return None
    kinds = {type(value) for value in listed}
    schema: Schema = {"enum": listed}
    if len(kinds) == 1 and (kind := _SIMPLE.get(kinds.pop())):
        return {**kind, **schema}
    return schema


def _optional(schema: Schema) -> Schema:
    """Without the null that only says "may be left out"."""
    branches = schema.get("anyOf")
    if not isinstance(branches, list) or {"type": "null"} not in branches:
        return schema
    rest = [branch for branch in branches if branch != {"type": "null"}]
    outer = {key: value for key, value in schema.items() if key != "anyOf"}
    if len(rest) == 1:
        return {**rest[0], **outer}
    return {"anyOf": rest, **outer} if rest else schema


def _default(value: object) -> Schema:
    if value is None or isinstance(value, Missing):
        return {}
    if isinstance(value, str | int | bool) and not isinstance(value, Enum):
        return {"default": value}
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        written = to_jsonable_python(value)
        json.dumps(written, allow_nan=False)  # JSON has no infinity: a model's server refuses the whole call
    except (PydanticSerializationError, ValueError, TypeError):
        return {}
    return {"default": written}


def _room_after(value: JSON, room: int) -> int:
    """What is left of so many characters and parts. Raises TypesTooLarge, as soon as nothing is."""
    waiting: list[JSON] = [value]
    while waiting:
        part = waiting.pop()
        room -= len(part) if isinstance(part, str) else 1
        if room < 0:
            raise TypesTooLarge
        if isinstance(part, Mapping):
            waiting += (*part, *part.values())
        elif isinstance(part, list | tuple):
            waiting += part
    return room


class _Tidy:
    """Pydantic's schema in our form: definitions stand where they are used unless they hold themselves.

    Each such place counts against what a schema may have: where definitions use others twice, twenty make
    a million.
    """

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._kept: dict[str, Schema] = {}
        self._referred = {name: set(_references(one)) for name, one in definitions.items()}
        self._left = _MOST_NODES

    def whole(self, schema: Schema) -> Schema:
        tidied = self._node(schema, ())
        return {**tidied, "$defs": self._kept} if self._kept else tidied

    def _node(self, schema: JSON, above: tuple[str, ...]) -> Schema:
        self._left -= 1
        if self._left < 0:
            raise TypesTooLarge
        if not isinstance(schema, dict):
            return {} if schema is True else {"not": {}}
        if "$ref" in schema:
            return self._reference(schema, above)
        tidied: Schema = {}
        for key, value in schema.items():
            if key == "properties":
                tidied[key] = self._properties(value, schema.get("required", ()), above)
            elif key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
                tidied[key] = [self._node(part, above) for part in value]
            elif key in {"items", "additionalProperties", "propertyNames"} and isinstance(value, dict):
                tidied[key] = self._node(value, above)
            elif key == "const":
                tidied["enum"] = [value]
            elif key not in {"title", "discriminator"} and not (
                key == "additionalProperties" and value is True
            ):
                tidied[key] = value
        return tidied

    def _properties(
        self, properties: dict[str, JSON], required: Iterable[str], above: tuple[str, ...]
    ) -> Schema:
        tidied = {name: self._node(schema, above) for name, schema in properties.items()}
        for name in tidied.keys() - set(required):
            optional = _optional(tidied[name])
            if "default" in optional and optional["default"] is None:
                del optional["default"]
            tidied[name] = optional
        return tidied

    def _reference(self, schema: Schema, above: tuple[str, ...]) -> Schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        beside = {key: value for key, value in schema.items() if key not in {"$ref", "title"}}
        if name not in self._definitions:
            return beside
        if not self._holds_itself(name):
            return {**self._node(self._definitions[name], (*above, name)), **beside}
        if name not in self._kept:
            self._kept[name] = {}
            self._kept[name] = self._node(self._definitions[name], (*above, name))
        return {"$ref": f"#/$defs/{name}", **beside}

    def _holds_itself(self, name: str) -> bool:
        waiting, seen = [*self._referred[name]], set[str]()
        while waiting:
            reached = waiting.pop()
            if reached == name:
                return True
            if reached not in seen and reached in self._definitions:
                seen.add(reached)
                waiting += self._referred[reached]
        return False


def _references(value: JSON) -> list[str]:
    if isinstance(value, list):
        return [name for part in value for name in _references(part)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"].rpartition("/")[2]] if isinstance(value.get("$ref"), str) else []
    return own + [name for part in value.values() for name in _references(part)]
