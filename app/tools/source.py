"""The tools of a source file, read without importing or running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import Parameter

from app.messages import JSON
from app.text import shortened
from app.tools.annotations import Names, statements
from app.tools.plain import sendable
from app.tools.schema import Schema, TypesTooLarge, described
from app.tools.signature import GENERATOR, NO_DOCSTRING, parse_docstring, read_parameters

_REGISTERING = frozenset({"tool", "resource", "prompt"})
LARGEST_SOURCE = 256 * 1024
_MOST_TOOLS = 200
_LONGEST_DESCRIPTION, _LONGEST_EXAMPLE = 2000, 500
_READ_OF_DOCSTRING = 20_000

UNDECORATED = "is not decorated as others in its file are, so it is not a tool"

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class FoundTool:
    """A tool as its source describes it. `warnings` are for its author."""

    name: str
    function: str
    description: str
    examples: tuple[str, ...]
    schema: Schema
    warnings: tuple[str, ...] = ()

    def definition(self) -> dict[str, JSON]:
        """Return name, description and parameters, as the model reads them."""
        words = described(self.description, self.examples)
        return {"name": self.name, "description": words, "parameters": self.schema}


def find_tools(source: str | bytes) -> tuple[list[FoundTool], list[str]]:
    """Return the tools of a module's text, and which public functions are none and why. Raises SyntaxError.

    Where anything is decorated with `x.tool`, `x.resource` or `x.prompt` only top-level functions under
    `x.tool` are tools; elsewhere it is every public, documented top-level function.
    """
    if len(source) > LARGEST_SOURCE:
        raise SyntaxError(f"the file has more than the {LARGEST_SOURCE} bytes that are read")
    try:
        module = ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, absurd nesting
        raise SyntaxError(f"cannot be parsed: {type(error).__name__}") from error
    try:
        return _find_tools(module)
    except RecursionError as error:  # an annotation of absurd length
        raise SyntaxError("cannot be read: it is nested too deeply") from error


def _find_tools(module: ast.Module) -> tuple[list[FoundTool], list[str]]:
    names = Names(module)
    is_adapter = any(_decorator(node)[0] for node in statements(module) if isinstance(node, _Function))
    tools: dict[str, FoundTool] = {}
    left_out: dict[str, str] = {}
    for node in module.body:
        if not isinstance(node, _Function) or (node.name.startswith("_") and not is_adapter):
            continue
        reason = _why_not(node, is_adapter)
        if not reason and len(tools) == _MOST_TOOLS:
            reason = f"comes after {_MOST_TOOLS} others, so it is not a tool; a file may have no more"
        if not reason:
            try:
                tool = _found(node, names)
            except TypesTooLarge as error:
                reason = f"is not a tool: {error}"
            else:
                tools.pop(tool.name, None)
                tools[tool.name] = tool
        if reason and not node.name.startswith("_"):
            left_out.setdefault(node.name, reason)
    used = {tool.function for tool in tools.values()}  # overloads and others of its name have no docstring
    return list(tools.values()), [f"{name} {why}" for name, why in left_out.items() if name not in used]


def _why_not(node: _Function, is_adapter: bool) -> str:
    """Return the reason why a function is no tool, "" where it is one."""
    if is_adapter:
        return "" if _decorator(node)[0] == "tool" else UNDECORATED
    if not node.decorator_list and _yields(node):
        return GENERATOR
    return "" if (ast.get_docstring(node) or "").strip() else NO_DOCSTRING


def _yields(node: _Function) -> bool:
    """Return True if a function's own body yields."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(part, _Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(part)
    return False


def _decorator(node: _Function) -> tuple[str, ast.expr | None]:
    """Return "tool", "resource" or "prompt", as which a decorator registers a function, and that decorator.

    One of a tool counts first; "" for none.
    """
    found: tuple[str, ast.expr | None] = "", None
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in _REGISTERING:
            if target.attr == "tool":
                return "tool", decorator
            found = found if found[0] else (target.attr, decorator)
    return found


def _found(node: _Function, names: Names) -> FoundTool:
    docstring = parse_docstring((ast.get_docstring(node) or "")[:_READ_OF_DOCSTRING])
    given = _decorator_texts(node)
    parameters = _parameters(node.args, names)
    arguments = read_parameters(
        parameters, lambda one: names.annotation(one.annotation), docstring, names.made
    )
    name: str = sendable(given.get("name") or node.name)
    description: str = sendable(given.get("description") or docstring.description or name)
    warnings = arguments.warnings
    if len(description) > _LONGEST_DESCRIPTION:
        warnings = (f"its description is cut to {_LONGEST_DESCRIPTION} characters", *warnings)
    return FoundTool(
        name=name,
        function=node.name,
        description=shortened(description, _LONGEST_DESCRIPTION),
        examples=tuple(shortened(one, _LONGEST_EXAMPLE) for one in sendable(list(docstring.examples))),
        schema=sendable(arguments.schema),
        warnings=warnings,
    )


def _decorator_texts(node: _Function) -> dict[str, str]:
    """Return `name` and `description` written in the decorator; the first plain argument is the name."""
    _, decorator = _decorator(node)
    if not isinstance(decorator, ast.Call):
        return {}
    written = {word.arg: word.value for word in decorator.keywords if word.arg in {"name", "description"}}
    if decorator.args:
        written.setdefault("name", decorator.args[0])
    return {
        key: value.value
        for key, value in written.items()
        if key and isinstance(value, ast.Constant) and isinstance(value.value, str)
    }


def _parameters(spec: ast.arguments, names: Names) -> Iterator[Parameter]:
    positional = [*spec.posonlyargs, *spec.args]
    defaults = [*[None] * (len(positional) - len(spec.defaults)), *spec.defaults, *spec.kw_defaults]
    for argument, default in zip([*positional, *spec.kwonlyargs], defaults, strict=True):
        annotation = argument.annotation or Parameter.empty
        yield Parameter(
            argument.arg, Parameter.KEYWORD_ONLY, default=names.default(default), annotation=annotation
        )
