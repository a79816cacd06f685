"""A folder's `scripts/tools.py` as a module of this process.

The server does this with bundled skills alone; all other code runs in a worker.
"""

import hashlib
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from app.errors import RecadoError
from app.tools.signature import GENERATOR, NO_DOCSTRING

ToolFunction = Callable[..., Any]


class ToolsModuleError(RecadoError):
    """A scripts/tools.py that could not be imported; the text names the line."""


def tool_functions(path: Path, skill: str) -> tuple[dict[str, ToolFunction], list[str]]:
    """Return the public, documented top-level functions of a file, and why others are left out.

    Raises ToolsModuleError where the file does not run.
    """
    return documented_functions(run_module(path, skill))


def documented_functions(module: ModuleType) -> tuple[dict[str, ToolFunction], list[str]]:
    """Return the same for a module that was run."""
    functions: dict[str, ToolFunction] = {}
    left_out: list[str] = []
    for name, value in vars(module).items():
        if name.startswith("_") or not inspect.isfunction(value) or value.__module__ != module.__name__:
            continue
        if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
            left_out.append(f"{name} {GENERATOR}")
        elif (value.__doc__ or "").strip():
            functions[name] = value
        elif value.__name__ != "<lambda>":
            left_out.append(f"{name} {NO_DOCSTRING}")
    return functions, left_out


def named_function(module: ModuleType, name: str) -> ToolFunction | None:
    """Return the callable that a decorator made of a function of that name; None where there is none.

    It may be a cache, a callable object, or an object with the function as `fn`, as some MCP packages make.
    """
    value = vars(module).get(name)
    if callable(value):
        return value  # type: ignore[no-any-return]
    kept = getattr(value, "fn", None)
    return kept if callable(kept) else None


def run_module(path: Path, skill: str) -> ModuleType:
    """Compile and run the file as a fresh module; `from .other import …` finds other.py beside it.

    Raises ToolsModuleError where it does not run. The import system is not used: its .pyc files are told
    apart by whole seconds, so a file changed twice within one would be taken from the cache.
    """
    package = ModuleType(_package_name(path, skill))
    package.__path__ = [str(path.parent)]
    module = ModuleType(f"{package.__name__}.{path.stem}")
    module.__package__, module.__file__ = package.__name__, str(path)
    if not any(isinstance(finder, _FinderBeside) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FinderBeside())
    _forget(package.__name__)
    sys.modules[package.__name__] = package
    sys.modules[module.__name__] = module  # dataclasses and forward references look their module up here
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # noqa: S102 - the caller says whose code it is
    except (Exception, SystemExit) as error:
        _forget(package.__name__)
        raise ToolsModuleError(_fault(path, error)) from error
    return module


_PREFIX = "recado_skill_"


def _package_name(path: Path, skill: str) -> str:
    readable = re.sub(r"\W", "_", skill)
    return f"{_PREFIX}{readable}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]


class _FinderBeside(MetaPathFinder):
    """Finds the modules beside a tools.py, and those alone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if not (path and package.startswith(_PREFIX)):
            return None
        file = Path(path[0], f"{name}.py")
        return (
            spec_from_file_location(fullname, file, loader=_Fresh(fullname, str(file)))
            if file.exists()
            else None
        )


class _Fresh(SourceFileLoader):
    """Compiles anew each time, and leaves no .pyc behind."""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.get_data(self.path), self.path, "exec")


def _fault(path: Path, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"scripts/tools.py needs the package {error.name}, which is not installed"
    if isinstance(error, SyntaxError):
        return f"scripts/tools.py line {error.lineno}: {error.msg}"
    lines = [
        f" line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return f"scripts/tools.py{lines[-1] if lines else ''}: {type(error).__name__}: {error}"
