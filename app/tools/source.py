"""The tools of a source file, read without importing or running it, and their catalogue."""

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path

import orjson
import structlog

from app import __version__
from app.messages import JSON, mapping
from app.security import write_private
from app.settings import Settings
from app.text import shortened
from app.tools.annotations import Names
from app.tools.plain import sendable
from app.tools.schema import NO_DOCSTRING, Schema, TypesTooLarge, described, parse_docstring, read_parameters
from app.tools.tool import Tool

log = structlog.get_logger(__name__)

_REGISTERING = frozenset({"tool", "resource", "prompt"})
LARGEST_SOURCE = 256 * 1024
CACHE_FILE = "tool_catalog.json"
_MOST_TOOLS = 200
_LONGEST_DESCRIPTION, _LONGEST_EXAMPLE = 2000, 500
_READ_OF_DOCSTRING = 20_000

_UNDECORATED = "is not decorated as others in its file are, so it is not a tool"

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
        return _find_tools(ast.parse(source))
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, absurd nesting
        raise SyntaxError(f"cannot be parsed: {type(error).__name__}") from error


def _find_tools(module: ast.Module) -> tuple[list[FoundTool], list[str]]:
    names = Names(module)
    is_adapter = any(_registers(node) for node in ast.walk(module) if isinstance(node, _Function))
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
        return "" if "tool" in _registers(node) else _UNDECORATED
    return "" if (ast.get_docstring(node) or "").strip() else NO_DOCSTRING


def _registers(node: _Function) -> dict[str, ast.expr]:
    """Return the decorators that register a function, by "tool", "resource" or "prompt"."""
    found: dict[str, ast.expr] = {}
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in _REGISTERING:
            found.setdefault(target.attr, decorator)
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
    decorator = _registers(node).get("tool")
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


def build_catalog(path: str | Path) -> dict[str, JSON]:
    """Return the catalogue of a file; `hash` is the SHA-1 of the source, `version` its first 12 digits.

    Raises SyntaxError for a file that is not Python, and OSError.
    """
    return _built(_source(Path(path)))


def get_catalog_cached(path: str | Path, cache_dir: str | Path | None = None) -> dict[str, JSON]:
    """Return `build_catalog`, kept in `cache_dir` until the file or this release change.

    For whoever asks again and again about files that are not served; a server has a catalogue of its own.
    Without a `cache_dir` the settings are read anew, and it is `.cache` in their data folder.
    """
    path, cache = Path(path), Path(cache_dir or Settings().data_dir / ".cache") / CACHE_FILE
    source = _source(path)
    key = f"{__version__}-{_sha1(source)}"
    try:
        kept = mapping(json.loads(cache.read_bytes()))
    except (OSError, ValueError, RecursionError):
        kept = {}
    entry = mapping(kept.get(str(path.absolute())))
    if entry.get("key") != key:
        entry = {"key": key, "catalog": _built(source)}
        try:
            write_private(cache, json.dumps({**kept, str(path.absolute()): entry}))
        except OSError as error:  # it costs time, not the catalogue
            log.warning("the tool catalogue was not cached", error=type(error).__name__)
    catalog: dict[str, JSON] = entry["catalog"]
    return catalog


def stamp(definitions: Iterable[Mapping[str, JSON]]) -> tuple[str, str]:
    """Return version (12 digits) and hash (SHA-1) of tool definitions, in whatever order they come.

    A definition is `{name, description, parameters}`, alone or as `function` of the OpenAI form.
    """
    plain = sorted((one.get("function", one) for one in definitions), key=lambda one: str(one["name"]))
    digest = _sha1(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS))
    return digest[:12], digest


def prompt_list(tools: Iterable[FoundTool | Tool]) -> str:
    """Write the tools as lines "- name: description", each with its examples below it."""
    lines = []
    for tool in tools:
        lines.append(f"- {tool.name}: {tool.description}")
        lines += [f"  e.g. {example}" for example in tool.examples]
    return "\n".join(lines)


def _built(source: bytes) -> dict[str, JSON]:
    tools, _ = find_tools(source)
    digest = _sha1(source)
    return {
        "version": digest[:12],
        "hash": digest,
        "count": len(tools),
        "promptList": prompt_list(tools),
        "functionSchema": [tool.definition() for tool in tools],
    }


def _source(path: Path) -> bytes:
    if not path.is_file():  # a pipe would be waited for
        raise FileNotFoundError(f"{path} is no file")
    with path.open("rb") as file:
        return file.read(LARGEST_SOURCE + 1)


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
