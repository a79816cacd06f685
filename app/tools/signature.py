"""The docstring and the parameters of a live function, and the schema that they make."""

import ast
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import griffe
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from app.text import shortened
from app.tools.plain import plain
from app.tools.schema import (
    LARGEST_SCHEMA,
    LONGEST_DESCRIPTION,
    PERMISSIVE,
    Missing,
    Schema,
    TypesTooLarge,
    default_keyword,
    optional,
    read_annotation,
)

_EXAMPLE = r"(?:examples?|ejemplos?|exemplos?)[ \t]*"
# The rest of the line, an indented block below it, or NumPy's section up to the next underlined title.
_EXAMPLES = re.compile(
    rf"^(?P<indent>[ \t]*){_EXAMPLE}:[ \t]*(?:(?P<line>\S.*)"
    r"|\n(?P<below>(?:(?:(?P=indent)[ \t]+\S.*|[ \t]*)(?:\n|\Z))*))"
    rf"|^[ \t]*{_EXAMPLE}\n[ \t]*-{{3,}}[ \t]*\n(?P<section>(?:(?!.*\n[ \t]*-{{3,}}[ \t]*$).*\n?)*)",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"^[-*•]\s+")
_GOOGLE_TITLE = re.compile(
    r"^(\s*)(args|arguments|params|parameters|(?:keyword|other) (?:args|arguments|parameters)"
    r"|returns?|raises|yields?|notes?):\s*$",
    re.I,
)
_NAME = re.compile(r"[*`]*(\w+)")
_AROUND_NAMES = re.compile(r"[\s'\"]|\b(?:\w+\.)+")
_CONTEXT = re.compile(
    r"(?:(?:Optional|Union|Annotated)\[|ForwardRef\(|None[,|])*(?:Tool)?Context(?:\[.*\])?[\])]*(?:[,|]None\]?|,.*\])?",
    re.DOTALL,
)
_EXAMPLES_KEPT = 2
_GOOGLE = {"warnings": False, "returns_named_value": False, "returns_multiple_items": False}
_STYLES: Any = {"google": _GOOGLE, "numpy": {"warnings": False}, "sphinx": {"warnings": False}}


@dataclass(frozen=True)
class Docstring:
    """A docstring's summary without its full stop, parameters by name, result, and examples."""

    description: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: tuple[str, ...] = ()


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles; what it does not say stays empty."""
    said, examples = _without_examples(inspect.cleandoc((text or "").replace("\r\n", "\n")))
    description, returns = "", ""
    params: dict[str, str] = {}
    text = f"\n{_set_apart(said.strip())}"  # a first line would lose what is indented below it
    found: Any = griffe.Docstring(text, lineno=1)
    for section in griffe.parse_auto(found, default="google", per_style_options=_STYLES):
        if section.kind is griffe.DocstringSectionKind.text and not description:
            description = _summary(section.value)
        elif section.kind.value in ("parameters", "other parameters"):
            params |= {_bare(item.name): _paragraph(item.description) for item in section.value}
        elif section.kind is griffe.DocstringSectionKind.returns and not returns:
            returns = " ".join(" ".join(item.description for item in section.value).split())
    return Docstring(description, params, returns, examples)


def _bare(name: str) -> str:
    """Return a parameter's name without what may stand around it: `a (int) `, `**a`, marks."""
    found = _NAME.match(name)
    return found[1] if found else name


def _set_apart(text: str) -> str:
    """Put a blank line before each Google section title: the parser takes only those as sections."""
    lines: list[str] = []
    for line in text.split("\n"):
        if _GOOGLE_TITLE.match(line) and lines and lines[-1].strip():
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _without_examples(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text without its examples, and the first of them that are sentences (no doctests)."""
    examples: list[str] = []
    for found in _EXAMPLES.finditer(text):
        examples += _sentences((found["line"] or found["below"] or found["section"] or "").split("\n"))
    return _EXAMPLES.sub("", text), tuple(examples[:_EXAMPLES_KEPT])


def _sentences(block: list[str]) -> list[str]:
    if any(line.strip().startswith((">>>", "```")) for line in block):
        return []
    return [_BULLET.sub("", line.strip()).strip("\"'“”«» ") for line in block if line.strip()]


def _summary(text: str) -> str:
    line = _paragraph(text)
    return line[:-1] if line.endswith(".") and not line.endswith("..") else line


def _paragraph(text: str) -> str:
    return " ".join(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].split())


GENERATOR = "is a generator, so it is not a tool; return a list"
NO_DOCSTRING = "has no docstring, so it is not a tool; say in one what it does"


@dataclass(frozen=True, slots=True)
class Signature:
    """Words, parameters and the schema of the arguments.

    `adapters` convert JSON into the Python types that need it (dates, enums, models). `fills` are
    defaults that Python would not fill in itself. `warnings` are for the function's author.
    """

    docstring: Docstring
    schema: Schema
    wants_context: bool
    adapters: Mapping[str, Any]
    fills: Mapping[str, Any]
    warnings: tuple[str, ...]


def signature_of(fn: Callable[..., object]) -> Signature:
    """Read a live function. Raises TypeError for what has no signature, ValueError for a generator."""
    called = (fn, getattr(fn, "__call__", None))  # noqa: B004 - an object with a __call__
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in called):
        raise ValueError(f"{name_of(fn)} {GENERATOR}")
    docstring = parse_docstring(getattr(_bound(fn), "__doc__", ""))
    target = inspect.unwrap(fn) if inspect.isroutine(fn) else type(fn).__call__
    target = getattr(fn, "func", target)
    hints = _hints(target)
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
    definitions: dict[str, Schema] = {}
    required: list[str] = []
    warnings: list[str] = []
    adapters: dict[str, Any] = {}
    fills: dict[str, object] = {}
    wants_context = False
    for position, parameter in enumerate(parameters):
        name, default = parameter.name, parameter.default
        if is_context(parameter):
            wants_context = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if position == 0 and name in {"self", "cls"}:
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
        definitions |= schema.pop("$defs", {})
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
    if definitions:
        whole["$defs"] = definitions
    try:
        plain(whole, LARGEST_SCHEMA)
    except ValueError:
        raise TypesTooLarge from None
    return Signature(docstring, whole, wants_context, adapters, fills, tuple(warnings))


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
    bound = _bound(fn)
    return str(getattr(bound, "__name__", type(bound).__name__))


def _bound(fn: Callable[..., object]) -> Callable[..., object]:
    """Return the function of a `partial`, whose own name and docstring say nothing."""
    return fn.func if isinstance(fn, functools.partial) else fn


def is_context(parameter: inspect.Parameter) -> bool:
    """Return True for the parameter that receives the context of the call.

    It has that name, or is annotated (in source: by a node) as a ToolContext or the Context of an MCP server.
    """
    annotation = parameter.annotation
    if isinstance(annotation, ast.AST):
        text = ast.unparse(annotation)
    else:
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return parameter.name == "context" or _CONTEXT.fullmatch(_AROUND_NAMES.sub("", text)) is not None


def _hints(target: Callable[..., object]) -> dict[str, object]:
    """Return annotations with their names looked up; what cannot be looked up is marked as unknown."""
    hints: dict[str, object] = {}
    for name, annotation in getattr(target, "__annotations__", {}).items():
        holder = types.SimpleNamespace(__annotations__={name: annotation})
        names = getattr(inspect.unwrap(target), "__globals__", {})
        try:
            hints |= typing.get_type_hints(holder, globalns=names, include_extras=True)
        except Exception:  # an annotation is the author's own expression: it may raise anything
            hints[name] = Missing.UNKNOWN
    return hints
