"""A folder's `scripts/tools.py` as a module of this process.

The server does this with shipped skills alone; all other code runs in a worker.
"""

import hashlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from app.errors import RecadoError
from app.tools.signature import GENERATOR, NO_DOCSTRING

ToolFunction = Callable[..., Any]


class ToolsModuleError(RecadoError):
    """A scripts/tools.py that could not be imported; the text names the line."""


def tool_functions(path: Path, skill: str) -> tuple[dict[str, ToolFunction], list[str]]:
    """The public, documented functions that a file defines at its top level, and why others are left out.

    Raises ToolsModuleError where the file does not run.
    """
    module = _run(path, skill)
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


def _run(path: Path, skill: str) -> ModuleType:
    """Compiles and runs the file as a fresh module.

    Not through the import system: its .pyc files are told apart by whole seconds, so a file changed
    twice within one would be taken from the cache.
    """
    module = ModuleType(_module_name(path, skill))
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and forward references look their module up here
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)  # noqa: S102 - the caller says whose code it is
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        raise ToolsModuleError(_fault(path, error)) from error
    return module


def _module_name(path: Path, skill: str) -> str:
    readable = re.sub(r"\W", "_", skill)
    return f"recado_skill_{readable}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _fault(path: Path, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"scripts/tools.py needs the package {error.name}, which is not installed"
    if isinstance(error, SyntaxError):
        return f"scripts/tools.py line {error.lineno}: {error.msg}"
    lines = [f" line {frame.lineno}" for frame in _frames(error) if frame.filename == str(path)]
    return f"scripts/tools.py{lines[-1] if lines else ''}: {type(error).__name__}: {error}"


def _frames(error: BaseException) -> list[Any]:
    import traceback

    return list(traceback.extract_tb(error.__traceback__))
