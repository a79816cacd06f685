"""JSON Schema from a function's parameters, in the form that models read best.

`Optional` becomes "not required", a literal an enum, defaults are kept, titles are not, and nested
models stand where they are used. Plain types are written by hand here; the rest is pydantic's work.
"""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal, Union

from app.messages import JSON
from app.tools.docstrings import Docstring, parse_docstring

Schema = dict[str, JSON]

PERMISSIVE = ("string", "number", "boolean", "object", "array", "null")
"""The types of a parameter that says nothing about itself."""

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


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function, however it was found."""

    name: str
    annotation: object = Missing.ANNOTATION
    default: object = Missing.REQUIRED
    description: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function tells about itself: words, parameters and the schema of its arguments.

    `adapters` convert JSON into the Python types that need it (dates, enums, models). `fills` are
    defaults that Python would not fill in itself. `warnings` are for the function's author.
    """

    docstring: Docstring
    schema: Schema
    wants_context: bool = False
    adapters: Mapping[str, Any] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def described(description: str, examples: Iterable[str]) -> str:
    """A description as the model reads it: the summary, then the examples."""
    return "\n".join([description, *(f"Example: {example}" for example in examples)]).strip()


def signature_of(fn: Callable[..., object]) -> Signature:
    """Reads a live function. Raises TypeError for what has no signature."""
    docstring = parse_docstring(getattr(fn, "__doc__", "") or "")
    parameters, wants_context = _live_parameters(fn, docstring)
    fills = {}
    plain = []
    for parameter in parameters:
        if type(parameter.default).__name__ == "FieldInfo":
            parameter, fill = from_field(parameter)
            if fill is not Missing.REQUIRED:
                fills[parameter.name] = fill
        plain.append(parameter)
    schema, warnings = arguments_schema(plain)
    adapters = {p.name: adapter for p in plain if (adapter := _adapter(p.annotation)) is not None}
    return Signature(docstring, schema, wants_context, adapters, fills, tuple(warnings))


def arguments_schema(parameters: Iterable[Parameter]) -> tuple[Schema, list[str]]:
    """The schema of an arguments object, and what its author should know."""
    properties: dict[str, Schema] = {}
    required: list[str] = []
    warnings: list[str] = []
    definitions: dict[str, Schema] = {}
    for parameter in parameters:
        schema = annotation_schema(parameter.annotation)
        if schema is None:
            if parameter.annotation not in (Any, object):
                fault = (
                    parameter.annotation if parameter.annotation is Missing.ANNOTATION else Missing.UNKNOWN
                )
                warnings.append(f"{parameter.name}: {fault.value}, so any JSON value is accepted")
            schema = {"type": list(PERMISSIVE)}
        definitions |= schema.pop("$defs", {})
        if parameter.default is Missing.REQUIRED:
            required.append(parameter.name)
        else:
            schema = _optional(schema)
            schema |= _default(parameter.default)
        if parameter.description and "description" not in schema:
            schema["description"] = parameter.description
        properties[parameter.name] = schema
    whole: Schema = {"type": "object", "properties": properties, "required": required}
    if definitions:
        whole["$defs"] = definitions
    return whole, warnings


def annotation_schema(annotation: object) -> Schema | None:
    """A fresh schema of one annotation; `None` where it says nothing that JSON Schema could."""
    if isinstance(annotation, Missing) or annotation in (Any, object):
        return None
    native = _native(annotation)
    if native is not None:
        return native
    from pydantic.errors import PydanticUserError

    try:
        written = _type_adapter(annotation).json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    return _Tidy(written.pop("$defs", {})).whole(written) or None


def _live_parameters(fn: Callable[..., object], docstring: Docstring) -> tuple[list[Parameter], bool]:
    hints = _hints(fn)
    found: list[Parameter] = []
    wants_context = False
    for position, parameter in enumerate(inspect.signature(fn).parameters.values()):
        if parameter.name == "context":
            wants_context = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if position == 0 and parameter.name in {"self", "cls"}:
            continue
        default = Missing.REQUIRED if parameter.default is parameter.empty else parameter.default
        annotation = hints.get(parameter.name, Missing.ANNOTATION)
        description = docstring.params.get(parameter.name, "")
        found.append(Parameter(parameter.name, annotation, default, description))
    return found, wants_context


def _hints(fn: Callable[..., object]) -> dict[str, object]:
    """Annotations with their names looked up; one that cannot be is left out, the others stay."""
    target = inspect.unwrap(fn) if inspect.isroutine(fn) else type(fn).__call__
    target = getattr(fn, "func", target)
    around = _surroundings(target)
    try:
        return typing.get_type_hints(target, localns=around, include_extras=True)
    except Exception:  # an annotation is the author's own expression: it may raise anything
        return _hints_one_by_one(target, around)


def _hints_one_by_one(target: Callable[..., object], around: dict[str, object]) -> dict[str, object]:
    hints: dict[str, object] = {}
    for name, annotation in getattr(target, "__annotations__", {}).items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        try:
            hints |= typing.get_type_hints(
                holder, globalns=getattr(target, "__globals__", {}), localns=around, include_extras=True
            )
        except Exception:  # noqa: S112 - reported by the caller as an unknown annotation
            continue
    return {name: hints.get(name, Missing.UNKNOWN) for name in getattr(target, "__annotations__", {})}


def _surroundings(target: Callable[..., object]) -> dict[str, object]:
    """Names of the enclosing function that an annotation may use."""
    code, cells = getattr(target, "__code__", None), getattr(target, "__closure__", None) or ()
    names = getattr(code, "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # the cell is not filled yet
            continue
    return found


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
    annotation = typing.Annotated[parameter.annotation, info]  # type: ignore[name-defined]
    return replace(parameter, annotation=annotation, default=default), default


def _adapter(annotation: object) -> Any | None:
    """What turns checked JSON into this type; `None` for types that JSON already has."""
    if annotation_schema(annotation) is None or _native(annotation) is not None:
        return None
    return _type_adapter(annotation)


def _type_adapter(annotation: object) -> Any:
    from pydantic import TypeAdapter

    make: Any = TypeAdapter
    return make(_portable(annotation))


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
    if origin is dict and inner[0] is str:
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
    if isinstance(value, str | int | float | bool) and not isinstance(value, Enum):
        return {"default": value}
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return {"default": to_jsonable_python(value)}
    except (PydanticSerializationError, ValueError, TypeError):
        return {}


def _portable(annotation: object) -> object:
    """With every `typing.TypedDict` as the one of typing_extensions: pydantic needs it before 3.12."""
    if typing.is_typeddict(annotation):
        return _extended(annotation)
    inner = typing.get_args(annotation)
    if not inner or typing.get_origin(annotation) is Literal:
        return annotation
    changed = tuple(_portable(part) for part in inner)
    if all(new is old for new, old in zip(changed, inner, strict=True)):
        return annotation
    origin: Any = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        return Union[changed]  # noqa: UP007 - built from parts at run time
    if origin is typing.Annotated:
        return typing.Annotated[changed]
    return origin[changed]


def _extended(annotation: Any) -> object:
    import typing_extensions

    hints = typing.get_type_hints(annotation, include_extras=True)
    required = annotation.__required_keys__
    fields = {
        name: typing_extensions.Required[_portable(_unmarked(hint))]
        if name in required
        else typing_extensions.NotRequired[_portable(_unmarked(hint))]
        for name, hint in hints.items()
    }
    make: Any = typing_extensions.TypedDict
    made = make(annotation.__name__, fields)
    made.__doc__ = annotation.__doc__
    return made


def _unmarked(hint: object) -> object:
    marked = typing.get_origin(hint) in (typing.Required, typing.NotRequired)
    return typing.get_args(hint)[0] if marked else hint


class _Tidy:
    """Pydantic's schema in our form: definitions stand where they are used unless they hold themselves."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._kept: dict[str, Schema] = {}

    def whole(self, schema: Schema) -> Schema:
        tidied = self._node(schema, ())
        return {**tidied, "$defs": self._kept} if self._kept else tidied

    def _node(self, schema: JSON, above: tuple[str, ...]) -> Schema:
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
        waiting, seen = [*_references(self._definitions[name])], set[str]()
        while waiting:
            reached = waiting.pop()
            if reached == name:
                return True
            if reached not in seen and reached in self._definitions:
                seen.add(reached)
                waiting += _references(self._definitions[reached])
        return False


def _references(value: JSON) -> list[str]:
    if isinstance(value, list):
        return [name for part in value for name in _references(part)]
    if not isinstance(value, dict):
        return []
    own = [value["$ref"].rpartition("/")[2]] if isinstance(value.get("$ref"), str) else []
    return own + [name for part in value.values() for name in _references(part)]
