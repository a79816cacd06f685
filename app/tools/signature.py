"""The docstring and the parameters of a live function, and the schema that they make."""

import ast
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import griffe

from app.tools.schema import Missing, Parameter, Schema, from_field, read_parameters

_EXAMPLE = re.compile(r"^(\s*)(?:examples?|ejemplos?|exemplos?)\s*:\s*(.*)$", re.IGNORECASE)
_EXAMPLE_TITLE = re.compile(r"^\s*(?:examples?|ejemplos?|exemplos?)\s*$", re.IGNORECASE)
_UNDERLINE = re.compile(r"^\s*-{3,}\s*$")
_BULLET = re.compile(r"^[-*•]\s+")
_GOOGLE_TITLE = re.compile(
    r"^(\s*)(args|arguments|params|parameters|(?:keyword|other) (?:args|arguments|parameters)"
    r"|returns?|raises|yields?|notes?):\s*$",
    re.I,
)
_NUMPY_TITLE = re.compile(r"^\s*(other parameters|parameters|returns|raises|yields|notes)\s*$", re.I)
_FIELD = re.compile(r"^\s*:(?:param|parameter|arg|argument|key|returns?|raises)\b[^:\n]*:", re.MULTILINE)
_NAME = re.compile(r"[*`]*(\w+)")
_EXAMPLES_KEPT = 2
_GOOGLE: Any = {"warnings": False, "returns_named_value": False, "returns_multiple_items": False}


@dataclass(frozen=True)
class Docstring:
    """A docstring's summary without its full stop, parameters by name, result, and examples."""

    description: str = ""
    params: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    examples: tuple[str, ...] = ()


def parse_docstring(text: str | None) -> Docstring:
    """Read a docstring of any of the three styles; what it does not say stays empty."""
    lines, examples = _without_examples(inspect.cleandoc((text or "").replace("\r\n", "\n")).split("\n"))
    description, returns = "", ""
    params: dict[str, str] = {}
    for section in _sections(_set_apart("\n".join(lines).strip())):
        if section.kind is griffe.DocstringSectionKind.text and not description:
            description = _summary(section.value)
        elif section.kind.value in ("parameters", "other parameters"):
            params |= {_bare(item.name): _one_line(item.description) for item in section.value}
        elif section.kind is griffe.DocstringSectionKind.returns and not returns:
            returns = " ".join(_one_line(item.description) for item in section.value).strip()
    return Docstring(description, params, returns, examples)


def _sections(text: str) -> list[Any]:
    """Parse Google's or NumPy's sections, and reST fields, which may stand beside them."""
    fields, rest = _fields_apart(text) if _FIELD.search(text) else ("", text)
    found: list[Any] = []
    lines = rest.split("\n")
    docstring = griffe.Docstring(f"\n{rest}", lineno=1)  # a first line would lose what is indented below it
    if any(_NUMPY_TITLE.match(line) and _UNDERLINE.match(below) for line, below in pairwise(lines)):
        found += griffe.parse_numpy(docstring, warnings=False)
    elif not fields or any(map(_GOOGLE_TITLE.match, lines)):
        found += griffe.parse_google(docstring, **_GOOGLE)
    if fields:
        docstring = griffe.Docstring(fields if found else text, lineno=1)
        found += griffe.parse_sphinx(docstring, warnings=False)
    return found


def _fields_apart(text: str) -> tuple[str, str]:
    """Return the reST fields with what is indented below them, and the rest."""
    fields: list[str] = []
    rest: list[str] = []
    within = -1
    for line in text.split("\n"):
        if _FIELD.match(line):
            within = _indent(line)
        elif line.strip() and _indent(line) <= within:
            within = -1
        (rest if within < 0 else fields).append(line)
    return "\n".join(fields).strip(), "\n".join(rest).strip()


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


def _without_examples(lines: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return the lines that are no examples, and the first examples that are sentences (no doctests)."""
    kept: list[str] = []
    examples: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        underlined = at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])
        start = at + 1
        if _EXAMPLE_TITLE.match(line) and underlined:
            start = at = at + 2
            while at < len(lines) and not (at + 1 < len(lines) and _UNDERLINE.match(lines[at + 1])):
                at += 1
            examples += _sentences(lines[start:at])
        elif match := _EXAMPLE.match(line):
            at += 1
            while (
                not match[2]
                and at < len(lines)
                and (not lines[at].strip() or _indent(lines[at]) > len(match[1]))
            ):
                at += 1
            examples += _sentences([match[2]] if match[2] else lines[start:at])
        else:
            kept.append(line)
            at += 1
    return kept, tuple(examples[:_EXAMPLES_KEPT])


def _sentences(block: list[str]) -> list[str]:
    if any(line.strip().startswith((">>>", "```")) for line in block):
        return []
    return [_BULLET.sub("", line.strip()).strip("\"'“”«» ") for line in block if line.strip()]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _summary(text: str) -> str:
    line = _one_line(re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0])
    return line[:-1] if line.endswith(".") and not line.endswith("..") else line


def _one_line(text: str) -> str:
    return " ".join(text.split())


GENERATOR = "is a generator, so it is not a tool; return a list"
NO_DOCSTRING = "has no docstring, so it is not a tool; say in one what it does"
CONTEXTS = frozenset({"Context", "ToolContext"})
"""Types that say that a parameter is no argument: ours, and that of an MCP server."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Words, parameters and the schema of the arguments.

    `adapters` convert JSON into the Python types that need it (dates, enums, models). `fills` are
    defaults that Python would not fill in itself. `warnings` are for the function's author.
    """

    docstring: Docstring
    schema: Schema
    wants_context: bool = False
    adapters: Mapping[str, Any] = field(default_factory=dict)
    fills: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def signature_of(fn: Callable[..., object]) -> Signature:
    """Reads a live function. Raises TypeError for what has no signature, ValueError for a generator."""
    if _is_generator(fn):
        raise ValueError(f"{name_of(fn)} {GENERATOR}")
    docstring = parse_docstring(getattr(_bound(fn), "__doc__", "") or "")
    target = inspect.unwrap(fn) if inspect.isroutine(fn) else type(fn).__call__
    target = getattr(fn, "func", target)
    around = _surroundings(target)
    found, wants_context = _parameters(fn, _hints(target, around), docstring)
    fills = {}
    parameters = []
    for parameter in found:
        if type(parameter.default).__name__ == "FieldInfo":
            parameter, fill = from_field(parameter)
            if fill is not Missing.REQUIRED:
                fills[parameter.name] = fill
        parameters.append(parameter)
    arguments = read_parameters(parameters, around)
    return Signature(
        docstring, arguments.schema, wants_context, arguments.adapters, fills, arguments.warnings
    )


def name_of(fn: Callable[..., object]) -> str:
    """Return the name of a callable, or that of its class."""
    bound = _bound(fn)
    return str(getattr(bound, "__name__", type(bound).__name__))


def _bound(fn: Callable[..., object]) -> Callable[..., object]:
    """Return the function of a `partial`, whose own name and docstring say nothing."""
    return fn.func if isinstance(fn, functools.partial) else fn


def is_context(parameter: inspect.Parameter) -> bool:
    """Return True for the parameter that receives the context of the call.

    It has that name, or is annotated as a ToolContext or as the Context of an MCP server.
    """
    if parameter.name == "context":
        return True
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return "Context" in text and names_type(ast.Constant(text), CONTEXTS)


def names_type(annotation: ast.AST, names: Collection[str]) -> bool:
    """Return True if an annotation is a class of one of these names, alone or with None."""
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in names
        case ast.Constant(value=str(text)):
            try:
                return names_type(ast.parse(text, mode="eval").body, names)
            except (SyntaxError, ValueError, RecursionError, MemoryError):  # NUL bytes, absurd nesting
                return False
        case ast.Call(func=ast.Name(id="ForwardRef"), args=[inner, *_]):  # of "Optional['X']", written out
            return names_type(inner, names)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_that_or_none((left, right), names)
        case ast.Subscript(value=ast.Name(id=form) | ast.Attribute(attr=form), slice=inside):
            parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            if form in ("Optional", "Union"):
                return _is_that_or_none(parts, names)
            return names_type(parts[0], names) if form == "Annotated" and parts else form in names
    return False


def _is_that_or_none(parts: Iterable[ast.expr], names: Collection[str]) -> bool:
    told = [part for part in parts if not (isinstance(part, ast.Constant) and part.value is None)]
    return bool(told) and all(names_type(part, names) for part in told)


def _is_generator(fn: Callable[..., object]) -> bool:
    return any(
        inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)
        for called in (fn, getattr(fn, "__call__", None))  # noqa: B004 - an object with a __call__
    )


def _parameters(
    fn: Callable[..., object], hints: Mapping[str, object], docstring: Docstring
) -> tuple[list[Parameter], bool]:
    found: list[Parameter] = []
    wants_context = False
    for position, parameter in enumerate(inspect.signature(fn).parameters.values()):
        if is_context(parameter):
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


def _hints(target: Callable[..., object], around: dict[str, object]) -> dict[str, object]:
    """Return annotations with their names looked up; one that cannot be is left out, the others stay."""
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
    """Return the names that a function closes over; an annotation may use them."""
    code, cells = getattr(target, "__code__", None), getattr(target, "__closure__", None) or ()
    found: dict[str, object] = {}
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=True):
        with suppress(ValueError):  # the cell is not filled yet
            found[name] = cell.cell_contents
    return found
