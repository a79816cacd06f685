"""A folder's `scripts/tools.py` as a module of this process, and what it may import.

The server does this with bundled skills alone; all other code runs in a worker.
"""

import ast
import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from app.errors import RecadoError
from app.i18n import lazy
from app.skills.folder import entries


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
    if isinstance(error, SyntaxError):
        return lazy("{file} line {n}: {error}", file="scripts/tools.py", n=error.lineno, error=error.msg)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f" line {frame.lineno}" for frame in frames if frame.filename == str(path)]
    return f"scripts/tools.py{lines[-1] if lines else ''}: {type(error).__name__}: {error}"


def missing_packages(folder: Path, source: bytes) -> tuple[str, ...]:
    """Return the packages that `source` imports unguarded and that are missing; only `a` of `a.b` counts.

    Imports inside functions, `if` and `try` count as guarded. What a module beside it lacks shows at the
    first call.
    """
    beside = {entry.name.removesuffix(".py") for entry in entries(folder / "scripts")}
    return tuple(sorted(name for name in set(_top_level(source)) - beside if not is_installed(name)))


def is_installed(name: str) -> bool:
    """Tell whether a package of that name can be imported; nothing is imported."""
    if name in sys.stdlib_module_names or name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _top_level(source: bytes) -> Iterator[str]:
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for statement in module.body:
        if isinstance(statement, ast.Import):
            yield from (name.name.partition(".")[0] for name in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.partition(".")[0]
