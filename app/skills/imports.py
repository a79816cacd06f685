"""Packages that a skill's code needs and that are not installed, found in its text alone."""

import ast
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from app.skills.folder import read_file
from app.skills.manifest import ManifestError

# Of all modules of a skill: parsing takes hundreds of times their size in memory.
READ_BYTES = 512 * 1024


def missing_packages(folder: Path, source: bytes) -> tuple[str, ...]:
    """Return the packages that `source` and the modules beside it import unguarded and that are missing.

    Imports inside functions, `if` and `try` count as guarded. Only `a` of `a.b` counts. Modules
    beyond `READ_BYTES` are not read: what they lack shows at the first call.
    """
    names = _imported(folder, source)
    return tuple(sorted(name for name in set(names) if not is_installed(name)))


def is_installed(name: str) -> bool:
    """Tell whether a package of that name can be imported; nothing is imported."""
    if name in sys.stdlib_module_names or name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def lack_of(packages: Iterable[str]) -> str:
    """Say which packages are missing, "" for none."""
    return "; ".join(f"it needs the package {name}, which is not installed" for name in packages)


def _imported(folder: Path, source: bytes) -> Iterator[str]:
    waiting, seen, left = [source], set[str](), READ_BYTES
    while waiting:
        text = waiting.pop()
        left -= len(text)
        if left < 0:
            return
        for name in _top_level(text):
            if name in seen:
                continue
            seen.add(name)
            beside = _beside(folder, name)
            if beside is None:
                yield name
            else:
                waiting.append(beside)


def _beside(folder: Path, name: str) -> bytes | None:
    """Return the text of a module in scripts/, b"" if it cannot be read; None where there is none."""
    for path in (f"scripts/{name}.py", f"scripts/{name}/__init__.py"):
        if os.path.exists(f"{folder}/{path}"):
            try:
                return read_file(folder, path)
            except ManifestError:
                return b""
    return b"" if os.path.isdir(f"{folder}/scripts/{name}") else None


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
