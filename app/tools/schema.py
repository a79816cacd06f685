"""The schema of a function's arguments, of its docstring and annotations, in the form that models read best.

`Optional` becomes "not required", a literal an enum, defaults are kept, titles are not, and nested
models stand where they are used.
"""

import ast
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import griffe
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from app.messages import JSON
from app.text import shortened
from app.tools.plain import plain

Schema = dict[str, JSON]

# The types of a parameter that says nothing about itself.
PERMISSIVE = ("string", "number", "boolean", "object", "array", "null")
LARGEST_SCHEMA = 16 * 1024  # bytes of one tool's arguments, which a model reads again and again
LONGEST_DESCRIPTION = 500  # characters about one parameter
_MOST_NODES = 2000
NO_DOCSTRING = "has no docstring, so it is not a tool; say in one what it does"

_EXAMPLE = r"(?:examples?|ejemplos?|exemplos?)[ \t]*"
# The rest of the line, an indented block below it, or NumPy's section up to the next underlined title.
_EXAMPLES = re.compile(
    rf"^(?P<indent>[ \t]*){_EXAMPLE}:[ \t]*(?:(?P<line>\S.*)"
    r"|\n(?P<below>(?:(?:(?P=indent)[ \t]+\S.*|[ \t]*)(?:\n|\Z))*))"
    rf"|^[ \t]*{_EXAMPLE}\n[ \t]*-{{3,}}[ \t]*\n(?P<section>(?:(?!.*\n[ \t]*-{{3,}}[ \t]*$).*\n?)*)",
    re.IGNORECASE | re.MULTILINE,
)
_ONE_STOP = re.compile(r"(?<!\.)\.$")
_BULLET = re.compile(r"^[-*•]\s+")
# The parser takes a Google title as a section's only after a blank line.
_BEFORE_A_TITLE = re.compile(
    r"(?<=\S)[ \t]*\n(?=[ \t]*(?:args|arguments|params|parameters"
    r"|(?:keyword|other) (?:args|arguments|parameters)|returns?|raises|yields?|notes?):[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_AROUND_A_NAME = re.compile(r"^[*`]*(\w+).*", re.DOTALL)  # `a (int) `, `**a`, marks
_CONTEXT = re.compile(r"\b(?:Tool)?Context\b")
_EXAMPLES_KEPT = 2
_COLLECTING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_GOOGLE = {"warnings": False, "returns_named_value": False, "returns_multiple_items": False}
_STYLES: Any = {"google": _GOOGLE, "numpy": {"warnings": False}, "sphinx": {"warnings": False}}


class Missing(Enum):
    """The mark for what is written and cannot be read."""

    UNKNOWN = "an unknown annotation"
    UNWRITTEN = "a default that is not JSON"


class TypesTooLarge(ValueError):
    """Annotations that come to more than a model should read, or that would take long to read here."""

    def __init__(self) -> None:
        super().__init__("its types are too large")


@dataclass(frozen=True)
class Docstring:
    """A docstring's summary without its full stop, parameters by name, result, and examples."""

    description: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Signature:
    """Words, parameters and the schema of the arguments.

    `adapters` convert JSON into the Python types (dates, enums, models). `fills` are defaults that Python
    would not fill in itself. `warnings` are for the function's author.
    """

    docstring: Docstring
    schema: Schema
    adapters: Mapping[str, Any]
    fills: Mapping[str, Any]
    warnings: tuple[str, ...]


def signature_of(fn: Callable[..., object]) -> Signature:
    """Read a live function. Raises TypeError for what has no signature, ValueError for a generator."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ValueError(f"{name_of(fn)} is a generator, so it is not a tool; return a list")
    docstring, hints = parse_docstring(fn.__doc__), _hints(inspect.unwrap(fn))
    parameters = inspect.signature(fn).parameters.values()
    return read_parameters(parameters, lambda one: hints.get(one.name, one.empty), docstring, {})


def read_parameters(
    parameters: Iterable[inspect.Parameter],
    hint: Callable[[inspect.Parameter], object],
    docstring: Docstring,
    around: Mapping[str, object],
) -> Signature:
    """Describe the parameters of a function by the types that `hint` gives.

    `around` maps the names that these may use. Raises TypesTooLarge for more than 16 KB of JSON.
    """
    properties: dict[str, Schema] = {}
    required: list[str] = []
    warnings: list[str] = []
    adapters: dict[str, Any] = {}
    fills: dict[str, object] = {}
    for position, parameter in enumerate(parameters):
        name, default = parameter.name, parameter.default
        is_bound = position == 0 and name in {"self", "cls"}
        if is_bound or is_context(parameter) or parameter.kind in _COLLECTING:
            continue
        annotation, description = hint(parameter), docstring.params.get(name, "")
        if isinstance(default, FieldInfo):
            if annotation is parameter.empty:
                description = default.description or ""
            annotation, default = _from_field(annotation, default)
            if default is not parameter.empty:
                fills[name] = default
        schema, adapter = read_annotation(annotation, around)
        if schema is None:
            if annotation not in (Any, object):
                fault = "no annotation" if annotation is parameter.empty else "an unknown annotation"
                warnings.append(f"{name}: {fault}, so any JSON value is accepted")
            schema = {"type": list(PERMISSIVE)}
        if adapter is not None:
            adapters[name] = adapter
        if default is parameter.empty:
            required.append(name)
        else:
            schema = {**optional(schema), **default_keyword(default)}
        if default is Missing.UNWRITTEN:
            warnings.append(f"{name}: its default is no literal, so the model is not told of it")
        description = str(schema.get("description", description))
        if len(description) > LONGEST_DESCRIPTION:
            warnings.append(f"{name}: its description is cut to {LONGEST_DESCRIPTION} characters")
        if description:
            schema["description"] = shortened(description, LONGEST_DESCRIPTION)
        properties[name] = schema
    whole: Schema = {"type": "object", "properties": properties, "required": required}
    try:
        plain(whole, LARGEST_SCHEMA)
    except ValueError:
        raise TypesTooLarge from None
    return Signature(docstring, whole, adapters, fills, tuple(warnings))


def _from_field(annotation: object, info: FieldInfo) -> tuple[object, object]:
    """Return the annotation together with the `Field(…)` that is its default, and the real default."""
    default: object = info.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined or default is ...:
        default = inspect.Parameter.empty
    if annotation is not inspect.Parameter.empty:
        try:
            annotation = typing.Annotated[annotation, info]
        except TypeError:  # `Optional` alone, and other words of typing that are no type
            annotation = Missing.UNKNOWN
    return annotation, default


def name_of(fn: Callable[..., object]) -> str:
    """Return the name of a callable, or that of its class."""
    return str(getattr(fn, "__name__", type(fn).__name__))


def is_context(parameter: inspect.Parameter) -> bool:
    """Return True for the parameter that receives the context of the call.

    It has that name, or its annotation (in source: a node) names a ToolContext or an MCP server's Context.
    """
    annotation = parameter.annotation
    if isinstance(annotation, ast.AST):
        text = ast.unparse(annotation)
    else:
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return parameter.name == "context" or _CONTEXT.search(text) is not None


def _hints(target: Callable[..., object]) -> dict[str, object]:
    """Return annotations with their names looked up; what cannot be looked up is marked as unknown."""
    hints: dict[str, object] = {}
    for name, annotation in getattr(target, "__annotations__", {}).items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        names = getattr(target, "__globals__", {})
        try:
            hints |= typing.get_type_hints(holder, globalns=names, include_extras=True)
        except Exception:  # an annotation is the author's own expression: it may raise anything
            hints[name] = Missing.UNKNOWN
    return hints


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles; what it does not say stays empty."""
    said, examples = _without_examples(inspect.cleandoc((text or "").replace("\r\n", "\n")))
    description, returns = "", ""
    params: dict[str, str] = {}
    # a first line would lose what is indented below it
    below = "\n" + _BEFORE_A_TITLE.sub("\n\n", said.strip())
    found: Any = griffe.Docstring(below, lineno=1)
    for section in griffe.parse_auto(found, default="google", per_style_options=_STYLES):
        if section.kind is griffe.DocstringSectionKind.text and not description:
            description = _ONE_STOP.sub("", _paragraph(section.value))
        elif section.kind.value in ("parameters", "other parameters"):
            params |= {
                _AROUND_A_NAME.sub(r"\1", item.name): _paragraph(item.description) for item in section.value
            }
        elif section.kind is griffe.DocstringSectionKind.returns and not returns:
            returns = " ".join(" ".join(item.description for item in section.value).split())
    return Docstring(description, params, returns, examples)


def _without_examples(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without its examples, and the first of them that are sentences (no doctests)."""
    examples: list[str] = []
    for found in _EXAMPLES.finditer(text):
        block = (found["line"] or found["below"] or found["section"] or "").split("\n")
        lines = [line.strip() for line in block if line.strip()]
        if not any(line.startswith((">>>", "```")) for line in lines):
            examples += [_BULLET.sub("", line).strip("\"'“”«» ") for line in lines]
    return _EXAMPLES.sub("", text), tuple(examples[:_EXAMPLES_KEPT])


def _paragraph(text: str) -> str:
    return " ".join(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].split())


def described(description: str, examples: Iterable[str]) -> str:
    """Return a description as the model reads it: the summary, then the examples."""
    return "\n".join([description, *(f"Example: {example}" for example in examples)]).strip()


def read_annotation(annotation: object, around: Mapping[str, object]) -> tuple[Schema | None, Any | None]:
    """Return a schema of one annotation, and what turns checked JSON into that type.

    There is neither where the annotation says nothing that JSON Schema could. Raises TypesTooLarge.
    """
    if isinstance(annotation, Missing) or annotation in (Any, object, inspect.Parameter.empty):
        return None, None
    try:
        make: Any = TypeAdapter
        adapter = make(annotation)
        if not adapter.pydantic_complete:  # a name in it is known where the function was written, not here
            adapter.rebuild(_types_namespace=around)
        written = adapter.json_schema()
        schema = _Tidy(written.pop("$defs", {})).part(written)
    except TypesTooLarge:
        raise
    except Exception:  # the author's own classes and hooks may raise anything; the caller warns
        return None, None
    return (schema, adapter) if schema else (None, None)


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
    except (ValueError, TypeError):
        return {}
    return {"default": written}


class _Tidy:
    """Pydantic's schema in our form: definitions stand where they are used, in themselves only their type.

    Each such place counts against what a schema may have: where definitions use others twice, twenty make
    a million.
    """

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions
        self._open: set[str] = set()
        self._left = _MOST_NODES

    def part(self, schema: JSON) -> Schema:
        self._left -= 1
        if self._left < 0:
            raise TypesTooLarge
        if not isinstance(schema, dict):
            return {} if schema is True else {"not": {}}
        if "$ref" in schema:
            return self._referenced(schema)
        tidied: Schema = {}
        for key, value in schema.items():
            if key in {"title", "discriminator"} or (key == "additionalProperties" and value is True):
                continue
            if key == "properties":
                tidied[key] = self._properties(value, schema.get("required", ()))
            elif key in {"anyOf", "oneOf", "allOf", "prefixItems"}:
                tidied[key] = [self.part(part) for part in value]
            elif key in {"items", "additionalProperties", "propertyNames"} and isinstance(value, dict):
                tidied[key] = self.part(value)
            elif key == "const":
                tidied["enum"] = [value]
            else:
                tidied[key] = value
        return tidied

    def _properties(self, properties: dict[str, JSON], required: Iterable[str]) -> Schema:
        tidied = {name: self.part(schema) for name, schema in properties.items()}
        for name in tidied.keys() - set(required):
            tidied[name] = part = {**optional(tidied[name])}
            if part.get("default", ...) is None:
                del part["default"]
        return tidied

    def _referenced(self, schema: Schema) -> Schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        beside = {key: value for key, value in schema.items() if key not in {"$ref", "title"}}
        defined = self._definitions[name]
        if name in self._open:
            return {"type": defined["type"], **beside} if "type" in defined else beside
        self._open.add(name)
        made = self.part(defined)
        self._open.discard(name)
        return {**made, **beside}
