"""The tools of a source file, read without importing or running it."""

import ast
import errno
import hashlib
import json
import os
import platform
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import orjson
import structlog

from app.messages import JSON
from app.tools.annotations import Names, statements
from app.tools.classes import Unresolvable
from app.tools.docstrings import Docstring, parse_docstring
from app.tools.plain import sendable
from app.tools.schema import (
    Missing,
    Parameter,
    Schema,
    TypesTooLarge,
    described,
    from_field,
    read_parameters,
    shortened,
)
from app.tools.signature import GENERATOR, NO_DOCSTRING

log = structlog.get_logger(__name__)

CACHE_FILE = "tool_catalog.json"

_REGISTERING = frozenset({"tool", "resource", "prompt"})
_CONTEXTS = frozenset({"Context", "ToolContext"})
_LARGEST_SOURCE = 256 * 1024
_CACHED_PATHS = 64
_MOST_TOOLS = 200
_LONGEST_DESCRIPTION, _LONGEST_EXAMPLE = 2000, 500
_READ_OF_DOCSTRING = 20_000
_READERS = ("griffelib", "pydantic", "pydantic-core", "typing-extensions")
"""Packages whose release may change what a catalogue says."""

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
        """Name, description and parameters, as the model reads them."""
        words = described(self.description, self.examples)
        return {"name": self.name, "description": words, "parameters": self.schema}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A public function that is no tool, and why: a sentence of which the function is the subject."""

    function: str
    reason: str


def build_catalog(path: str | Path) -> dict[str, JSON]:
    """The catalogue of a file, of a skill's folder, or of a folder of skills and adapters.

    Of a folder: `scripts/tools.py` beside its SKILL.md, those of the skills directly in it, and the files
    directly in it that register tools with a decorator. Links that lead out of it are not followed.
    `hash` is the SHA-1 of the source (of a folder: of its files' names and hashes) and `version` its first
    12 digits. Raises SyntaxError for a file that is not Python, OSError for one that cannot be read; in a
    folder such files are left out and named in the log.
    """
    path = Path(path)
    return _built(path, _sources(path))


def get_catalog_cached(path: str | Path, cache_dir: str | Path | None = None) -> dict[str, JSON]:
    """The same, kept in `cache_dir` until the sources or the code that reads them change.

    For whoever asks again and again about files that are not served; a server has a catalogue of its own.
    Without a `cache_dir` the settings are read anew, and it is `.cache` in their data folder.
    """
    path, cache = Path(path), Path(cache_dir or _usual_cache_dir()) / CACHE_FILE
    sources = _sources(path)
    key = f"{_own_hash()}-{_hash(path, sources)}"
    place = str(path.absolute())
    kept = _load(cache)
    entry = kept.get(place)
    if isinstance(entry, dict) and entry.get("key") == key and _is_catalog(entry.get("catalog")):
        catalog: dict[str, JSON] = entry["catalog"]
        return catalog
    catalog = _built(path, sources)
    kept.pop(place, None)
    recent = dict(list(kept.items())[-(_CACHED_PATHS - 1) :])
    _store(cache, {**recent, place: {"key": key, "catalog": catalog}})
    return catalog


def stamp(definitions: Iterable[Mapping[str, JSON]]) -> tuple[str, str]:
    """Version (12 digits) and hash (SHA-1) of tool definitions, in whatever order they come.

    A definition is `{name, description, parameters}`, alone or as `function` of the OpenAI form.
    """
    plain = sorted((one.get("function", one) for one in definitions), key=lambda one: str(one["name"]))
    digest = _sha1(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS))
    return digest[:12], digest


class Described(Protocol):
    """What a line about a tool is made of, whether the tool was read or runs."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def examples(self) -> tuple[str, ...]: ...


def prompt_list(tools: Iterable[Described]) -> str:
    """The tools as lines "- name: description", each with its examples below it."""
    lines = []
    for tool in tools:
        lines.append(f"- {tool.name}: {tool.description}")
        lines += [f"  e.g. {example}" for example in tool.examples]
    return "\n".join(lines)


def find_tools(source: str | bytes) -> tuple[list[FoundTool], list[LeftOut]]:
    """The tools of a module's text, and its public functions that are none. Raises SyntaxError.

    Where anything is decorated with `x.tool`, `x.resource` or `x.prompt` only top-level functions under
    `x.tool` are tools; elsewhere it is every public, documented top-level function.
    """
    try:
        return _find_tools(_parsed(source))
    except RecursionError as error:  # an annotation of absurd length
        raise SyntaxError("cannot be read: it is nested too deeply") from error


def _find_tools(module: ast.Module) -> tuple[list[FoundTool], list[LeftOut]]:
    names = Names(module)
    is_adapter = any(_registration(node) for node in statements(module) if isinstance(node, _Function))
    tools: dict[str, FoundTool] = {}
    left_out: list[LeftOut] = []
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
            left_out.append(LeftOut(node.name, reason))
    return list(tools.values()), left_out


def _parsed(source: str | bytes) -> ast.Module:
    if len(source) > _LARGEST_SOURCE:
        raise SyntaxError(f"the file has more than the {_LARGEST_SOURCE} bytes that are read")
    try:
        return ast.parse(source)
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes, absurd nesting
        raise SyntaxError(f"cannot be parsed: {type(error).__name__}") from error


def _why_not(node: _Function, is_adapter: bool) -> str:
    """Why a function is no tool, "" where it is one; an undecorated generator is none in any live module."""
    if is_adapter:
        is_tool = _registration(node) == "tool"
        return "" if is_tool else UNDECORATED
    if not node.decorator_list and _yields(node):
        return GENERATOR
    return "" if (ast.get_docstring(node) or "").strip() else NO_DOCSTRING


def _yields(node: _Function) -> bool:
    """Whether a function's own body yields, whatever the functions inside it do."""
    waiting: list[ast.AST] = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(part, _Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(part)
    return False


def _registration(node: _Function) -> str:
    """ "tool", "resource" or "prompt" for a function that a decorator registers; else ""."""
    decorator = _decorator(node)
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    return target.attr if isinstance(target, ast.Attribute) else ""


def _decorator(node: _Function) -> ast.expr | None:
    found = None
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in _REGISTERING:
            if target.attr == "tool":
                return decorator
            found = found or decorator
    return found


def _found(node: _Function, names: Names) -> FoundTool:
    docstring = parse_docstring((ast.get_docstring(node) or "")[:_READ_OF_DOCSTRING])
    given = _decorator_texts(node)
    arguments = read_parameters(_parameters(node, names, docstring), names.made)
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
    """`name` and `description` written in the decorator; the first plain argument is the name."""
    decorator = _decorator(node)
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


def _parameters(node: _Function, names: Names, docstring: Docstring) -> list[Parameter]:
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(spec.defaults))
    pairs = [
        *zip(positional, [*defaults, *spec.defaults], strict=True),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    found: list[Parameter] = []
    for at, (argument, default) in enumerate(pairs):
        if argument.arg == "context" or _is_context(argument.annotation):
            continue
        if at == 0 and argument.arg in {"self", "cls"}:
            continue
        try:
            annotation = names.annotation(argument.annotation)
        except Unresolvable:
            annotation = Missing.UNKNOWN
        found.append(_parameter(argument.arg, annotation, names.default(default), docstring))
    return found


def _parameter(name: str, annotation: object, default: object, docstring: Docstring) -> Parameter:
    description = docstring.params.get(name, "")
    parameter = Parameter(name, annotation, default, description)
    if type(default).__name__ != "FieldInfo":
        return parameter
    return from_field(parameter)[0]


def _is_context(annotation: ast.expr | None) -> bool:
    """Whether it is the context that the host hands in, ours or an MCP server's."""
    if annotation is None:
        return False
    words = ast.unparse(annotation).strip("\"'").replace(" ", "")
    name = words.removeprefix("typing.").removeprefix("Optional[").split("[")[0].rstrip("]")
    return name.removesuffix("|None").rpartition(".")[2] in _CONTEXTS


def _written(tools: Iterable[FoundTool], digest: str) -> dict[str, JSON]:
    listed = list(tools)
    return {
        "version": digest[:12],
        "hash": digest,
        "count": len(listed),
        "promptList": prompt_list(listed),
        "functionSchema": [tool.definition() for tool in listed],
    }


def _built(path: Path, sources: Mapping[str, bytes]) -> dict[str, JSON]:
    tools: list[FoundTool] = []
    for name, content in sources.items():
        try:
            tools += find_tools(content)[0]
        except SyntaxError as error:
            if not path.is_dir():
                raise
            log.warning("left out of the catalogue", file=name, error=f"line {error.lineno}: {error.msg}")
    return _written(tools, _hash(path, sources))


def _sources(path: Path) -> dict[str, bytes]:
    """The texts a catalogue is made of, by their names within a folder."""
    if not path.is_dir():
        return {path.name: _content(path)}
    real = os.path.realpath(path)
    found: dict[str, bytes] = {}
    for file in _tool_files(path):
        try:
            inside = os.path.realpath(file).startswith(real + os.sep)
            content = _content(file) if inside else b""
        except OSError as error:
            log.warning("left out of the catalogue", file=str(file), error=error.strerror or str(error))
            continue
        if inside and (file.parent != path or _has_adapters(content)):
            found[str(file.relative_to(path))] = content
    return found


def _tool_files(folder: Path) -> Iterator[Path]:
    """Where tools may stand in a folder; a `tools.py` elsewhere is a library of somebody's."""
    for skill in (folder, *sorted(folder.iterdir())):
        if (skill / "SKILL.md").is_file() and (skill / "scripts" / "tools.py").exists():
            yield skill / "scripts" / "tools.py"
    yield from sorted(folder.glob("*.py"))


def _has_adapters(content: bytes) -> bool:
    """Whether a file registers anything; one that is no Python counts, so that it is named."""
    try:
        module = _parsed(content)
    except SyntaxError:
        return True
    return any(_registration(node) for node in statements(module) if isinstance(node, _Function))


def _content(file: Path) -> bytes:
    """At most a little more than is taken. Raises OSError, also for what is no file: reading a pipe waits."""
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "is not a regular file", str(file))
    with file.open("rb") as opened:
        return opened.read(_LARGEST_SOURCE + 1)


def _hash(path: Path, sources: Mapping[str, bytes]) -> str:
    if not path.is_dir():
        return _sha1(next(iter(sources.values())))
    return _sha1("\n".join(f"{name} {_sha1(content)}" for name, content in sources.items()).encode())


def _own_hash() -> str:
    """Of all that makes catalogues: another release of this code, Python or a package makes them anew."""
    code = [file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py"))]
    releases = [platform.python_version(), *(version(package) for package in _READERS)]
    return _sha1(b"".join([*code, " ".join(releases).encode()]))


def _usual_cache_dir() -> Path:
    from app.settings import Settings

    return Settings().data_dir / ".cache"


def _sha1(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()


def _load(cache: Path) -> dict[str, JSON]:
    try:
        kept = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _is_catalog(value: JSON) -> bool:
    wanted = {"version": str, "hash": str, "count": int, "promptList": str, "functionSchema": list}
    return isinstance(value, dict) and all(isinstance(value.get(key), kind) for key, kind in wanted.items())


def _store(cache: Path, kept: dict[str, JSON]) -> None:
    """Whole or not at all; a cache that cannot be written costs time, not the catalogue."""
    temporary = cache.with_name(f".{cache.name}.{secrets.token_hex(6)}")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, cache)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        log.warning("the tool catalogue was not cached", error=type(error).__name__)
