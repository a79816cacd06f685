"""What Python code does that a reader should know, by its syntax tree: nothing of it runs."""

import ast
import re
from collections.abc import Iterator
from typing import Literal

MAX_SOURCE = 256 * 1024
"""Bytes of a file; a larger one is no tools.py either."""
MAX_SOURCES = 1024 * 1024
"""Bytes of all files of a skill: a second of parsing for each 300 KB that were made to be slow."""

_RISKY = re.compile(
    r"(?:subprocess|pty|ctypes|_ctypes|cffi|multiprocessing|runpy|code)\..+"
    r"|os\.(?:system|popen|fork|forkpty|kill|killpg|setuid|setgid|exec\w+|spawn\w+|posix_spawnp?)"
    r"|asyncio\.create_subprocess_(?:exec|shell)"
    r"|(?:builtins\.)?(?:eval|exec|compile|__import__)"
    r"|importlib\.(?:import_module|util\..+|machinery\..+)"
    r"|(?:pickle|cPickle|dill|cloudpickle|marshal|shelve|joblib)\.(?:loads?|open|Unpickler)"
    r"|(?:socket\.(?:socket|create_connection|create_server)|socketserver\..+)"
)


def is_python(path: str, text: str) -> bool:
    """Whether a file is Python by its name or its first line."""
    return path.lower().endswith((".py", ".pyw", ".pyi")) or bool(re.match(r"#!.{0,80}python", text))


def python_findings(source: bytes) -> Iterator[tuple[Literal["runs-code", "unreadable"], int, str]]:
    """Calls that start programs, run text as code, load native code or open sockets: kind, line, the call."""
    try:
        module = ast.parse(source)  # as bytes: a line "coding: utf-7" counts here as it will when it runs
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        yield "unreadable", getattr(error, "lineno", None) or 1, "Python that cannot be parsed"
        return
    nodes = sorted(
        (node for node in ast.walk(module) if isinstance(node, ast.Call | ast.Import | ast.ImportFrom)),
        key=lambda node: node.lineno,
    )
    names = dict(_imported(nodes))
    lines = source.decode("utf-8", "replace").split("\n")
    for node in nodes:
        name = _dotted(node.func, names) if isinstance(node, ast.Call) else ""
        if _RISKY.fullmatch(name) or _imports_native(node):
            yield "runs-code", node.lineno, lines[node.lineno - 1] if node.lineno <= len(lines) else name


def _imported(nodes: list[ast.Call | ast.Import | ast.ImportFrom]) -> Iterator[tuple[str, str]]:
    """Names that imports bind, and what each stands for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _imports_native(node: ast.AST) -> bool:
    return isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "ctypes" for alias in node.names)


def _dotted(function: ast.expr, names: dict[str, str]) -> str:
    """The full name of what is called; "" where it is no plain name."""
    attributes: list[str] = []
    while isinstance(function, ast.Attribute):
        attributes.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name):
        return ""
    return ".".join([names.get(function.id, function.id), *reversed(attributes)])
