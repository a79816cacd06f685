"""The tools of a skill's folder: functions of this process for bundled skills, else as its text says."""

import ast
import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from app.errors import RecadoError
from app.i18n import lazy, program
from app.messages import JSON
from app.skills.folder import Signature, code_hash, read_file
from app.skills.manifest import Manifest, ManifestError, audience_of
from app.skills.workers import WorkerFault, Workers
from app.tools import Tool, ToolContext, ToolResult
from app.tools.source import find_tools

DEFAULT_TIMEOUT = 30.0
_HOOKS = ("guard", "card", "whole_card", "changes_person")  # on the function of a bundled tool; see `Tool`


@dataclass(frozen=True, slots=True)
class SkillTools:
    """The content of scripts/tools.py; `broken` where nothing of the skill may be offered because of it.

    `left_out` are the public functions that are no tools, each a sentence that says why.
    """

    tools: tuple[Tool, ...] = ()
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # that its code needs and that are not installed
    broken: bool = False


def read_tools(
    folder: Path,
    manifest: Manifest,
    workers: Workers | None,
    version: Signature,
    *,
    bundled: bool,
    is_installed: bool,
    runs_code: bool,
) -> SkillTools:
    """Return the tools of a folder as its text describes them, with calls to `workers`.

    Those of a bundled skill are functions of this process. Without workers a call has one of its own that
    ends with it, so that a test that loads one skill has nothing to close. An installed skill does not run
    so, for nothing confines it, and its results count as text of others, whatever its metadata says.
    """
    try:
        source = read_file(folder, "scripts/tools.py")
        found, left_out = find_tools(source)
        module = run_module(folder / "scripts/tools.py", manifest.name) if bundled and runs_code else None
    except (ToolsModuleError, ManifestError) as error:
        return SkillTools(faults=(error.told,), broken=True)
    except SyntaxError as error:
        where = {"file": "scripts/tools.py", "n": error.lineno or 1, "error": error.msg}
        return SkillTools(faults=(lazy("{file} line {n}: {error}", **where),), broken=True)
    names = [one.name for one in found]
    traits, warnings = _traits(manifest, names, bundled=bundled, is_installed=is_installed)
    tools: list[Tool] = []
    faults: list[str] = []
    if module is not None:
        for one in found:
            try:
                function = getattr(module, one.function)
                hooks = {name: getattr(function, name) for name in _HOOKS if hasattr(function, name)}
                tools.append(Tool.from_function(function, name=one.name, **hooks, **traits[one.name]))
            except Exception as error:  # a signature no schema can be made of leaves out this tool alone
                told = {"name": one.name, "error": str(error)}
                faults.append(lazy("the function {name} cannot become a tool: {error}", **told))
    else:
        code = "" if bundled else code_hash(folder)
        can_run = workers is not None or (runs_code and not is_installed)
        for one in found:
            own = {"code": code, "examples": one.examples, "warnings": one.warnings, **traits[one.name]}
            idempotent: bool = own["idempotent"]
            call = _call(workers, folder, version, one.function, idempotent) if can_run else _unavailable
            tools.append(Tool(one.name, one.description, one.schema, call, **own))
    return SkillTools(
        tuple(tools),
        tuple(faults),
        (*warnings, *(f"{tool.name}: {warning}" for tool in tools for warning in tool.warnings)),
        tuple(left_out),
        missing_packages(folder, source) if module is None else (),
    )


def _call(
    workers: Workers | None, folder: Path, version: Signature, function: str, idempotent: bool
) -> Callable[[dict[str, JSON], ToolContext], Awaitable[ToolResult]]:
    async def call(args: dict[str, JSON], context: ToolContext) -> ToolResult:
        used = workers or Workers()
        try:
            return await used.call(folder, version, function, args, context)
        except WorkerFault as fault:
            if not fault.started:
                message = f"{function} did not run: {fault}"
                return ToolResult.failure("UNAVAILABLE", message, "say so, and go on without it")
            message = f"{function} was cut off: {fault}"
            if idempotent:
                return ToolResult.failure("OUTCOME_UNKNOWN", message, "it may be called again")
            return ToolResult.unknown(message)
        finally:
            if workers is None:
                await used.close()

    return call


async def _unavailable(args: dict[str, JSON], context: ToolContext) -> ToolResult:
    return ToolResult.failure("UNAVAILABLE", "it runs only in the server", f"start: {program()} serve")


# The lists of tools in `metadata`, and the traits of the tools that they name.
_TRAITS = {
    "sensitive-tools": "sensitive",
    "destructive-tools": "destructive",
    "read-only-tools": "read_only",
    "idempotent-tools": "idempotent",
    "harmless-tools": "harmless",
    "search-results": "permits_addresses",
}
_TOOL_LISTS = (*_TRAITS, "own-results")


def _traits(
    manifest: Manifest, tools: Collection[str], *, bundled: bool, is_installed: bool
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the traits of each tool by its name, and warnings of metadata that is wrong or not believed."""
    lists = {key: set(manifest.words(key)) for key in _TOOL_LISTS}
    for key, names in lists.items():
        if "*" in names and key != "idempotent-tools":  # to run again takes a word on each tool
            lists[key] = (names - {"*"}).union(tools)
    warnings = [
        f"metadata names the tool {name!r}, which scripts/tools.py does not have"
        for name in sorted(set[str]().union(*lists.values()).difference(tools))
    ]
    distrusted = {} if bundled else dict.fromkeys(("harmless-tools", "search-results"), "of the release")
    distrusted |= {"own-results": "that is not from elsewhere"} if is_installed else {}
    for key, whose in distrusted.items():
        if lists[key]:
            lists[key] = set()
            warnings.append(f"{key} is only believed of a skill {whose}")
    timeout = manifest.text("timeout-seconds") or str(DEFAULT_TIMEOUT)
    try:
        seconds = float(timeout)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        warnings.append(f"timeout-seconds is {timeout!r}; expected seconds from 1 to 3600")
        seconds = DEFAULT_TIMEOUT
    shared = {"category": manifest.name, "timeout": seconds, "audience": audience_of(manifest)}
    traits = {
        name: {
            **shared,
            **{trait: name in lists[key] for key, trait in _TRAITS.items()},
            "outside": name not in lists["own-results"],
        }
        for name in tools
    }
    return traits, warnings


class ToolsModuleError(RecadoError):
    """A scripts/tools.py that could not be imported; the text names the line."""


def run_module(path: Path, skill: str) -> ModuleType:
    """Compile and run the file as a fresh module; `from .other import …` finds other.py beside it.

    Raises ToolsModuleError where it does not run. It is compiled anew each time: the import system tells .pyc
    files apart by whole seconds, so a file changed twice within one would be taken from the cache.
    """
    mark = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    readable = re.sub(r"\W", "_", skill)
    package = ModuleType(f"recado_skill_{readable}_{mark}")
    package.__path__ = [str(path.parent)]
    module = ModuleType(f"{package.__name__}.{path.stem}")
    module.__package__, module.__file__ = package.__name__, str(path)
    importlib.invalidate_caches()
    _forget(package.__name__)
    sys.modules[package.__name__] = package
    sys.modules[module.__name__] = module  # dataclasses and forward references look their module up here
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # noqa: S102 - the caller says whose code it is
    except (Exception, SystemExit) as error:
        _forget(package.__name__)
        raise ToolsModuleError(_fault(path, error)) from error
    return module


def _forget(package: str) -> None:
    for name in [name for name in list(sys.modules) if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


def _fault(path: Path, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return lazy("scripts/tools.py needs the package {name}, which is not installed", name=error.name)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f" line {frame.lineno}" for frame in frames if frame.filename == str(path)]
    return f"scripts/tools.py{lines[-1] if lines else ''}: {type(error).__name__}: {error}"


def missing_packages(folder: Path, source: bytes) -> tuple[str, ...]:
    """Return the packages that `source` imports unguarded and that are missing; only `a` of `a.b` counts.

    Imports inside functions, `if` and `try` count as guarded. What a module beside it lacks shows at the
    first call.
    """
    names: set[str] = set()
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Import):
            names |= {name.name.partition(".")[0] for name in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names.add(statement.module.partition(".")[0])
    names -= {path.stem for path in (folder / "scripts").iterdir()} | {"__main__"}
    return tuple(sorted(name for name in names if importlib.util.find_spec(name) is None))
