"""Tools: what they are, which there are, and how one is run."""

from typing import TYPE_CHECKING

from app.lazy import lazily

if TYPE_CHECKING:
    from app.tools.catalog import build_catalog, get_catalog_cached
    from app.tools.confirmation import ConfirmationPolicy, NoTTYError
    from app.tools.context import ToolContext
    from app.tools.docstrings import parse_docstring
    from app.tools.engine import ExecutionEngine
    from app.tools.files import file_tools
    from app.tools.paths import PathTraversalError, validate_path
    from app.tools.registry import DuplicateToolError, ToolNotFoundError, ToolRegistry
    from app.tools.result import ToolResult
    from app.tools.tool import Tool

__getattr__ = lazily(
    __name__,
    {
        "catalog": ("build_catalog", "get_catalog_cached"),
        "confirmation": ("ConfirmationPolicy", "NoTTYError"),
        "context": ("ToolContext",),
        "docstrings": ("parse_docstring",),
        "engine": ("ExecutionEngine",),
        "files": ("file_tools",),
        "paths": ("PathTraversalError", "validate_path"),
        "registry": ("DuplicateToolError", "ToolNotFoundError", "ToolRegistry"),
        "result": ("ToolResult",),
        "tool": ("Tool",),
    },
)
