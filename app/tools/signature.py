"""The schema of a live function, from its docstring and its parameters."""

import ast
import functools
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from app.tools.docstrings import Docstring, parse_docstring
from app.tools.schema import Missing, Parameter, Schema, from_field, read_parameters

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
    """The function of a `partial`, whose own name and words are of any partial."""
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
    """Annotations with their names looked up; one that cannot be is left out, the others stay."""
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
