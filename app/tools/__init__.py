"""Tools: what they are, which there are, and how one is run."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.tools.catalog import build_catalog, get_catalog_cached
    from app.tools.confirmation import ConfirmationPolicy, NoTTYError
    from app.tools.context import ToolContext
    from app.tools.docstrings import parse_docstring
    from app.tools.engine import ExecutionEngine
    from app.tools.files import PathTraversalError, file_tools, validate_path
    from app.tools.registry import DuplicateToolError, ToolNotFoundError, ToolRegistry
    from app.tools.result import ToolResult
    from app.tools.tool import Tool

__all__ = [
    "ConfirmationPolicy",
    "DuplicateToolError",
    "ExecutionEngine",
    "NoTTYError",
    "PathTraversalError",
    "Tool",
    "ToolContext",
    "ToolNotFoundError",
    "ToolRegistry",
    "ToolResult",
    "build_catalog",
    "file_tools",
    "get_catalog_cached",
    "parse_docstring",
    "validate_path",
]

_HOMES = {
    "ConfirmationPolicy": "confirmation",
    "DuplicateToolError": "registry",
    "ExecutionEngine": "engine",
    "NoTTYError": "confirmation",
    "PathTraversalError": "files",
    "Tool": "tool",
    "ToolContext": "context",
    "ToolNotFoundError": "registry",
    "ToolRegistry": "registry",
    "ToolResult": "result",
    "build_catalog": "catalog",
    "file_tools": "files",
    "get_catalog_cached": "catalog",
    "parse_docstring": "docstrings",
    "validate_path": "files",
}


def __getattr__(name: str) -> object:
    """Names are imported when they are first used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
