"""Tools: their interface, the registry, and the engine that runs a call."""

from app.tools.catalog import build_catalog, get_catalog_cached
from app.tools.confirmation import ConfirmationPolicy, NoTTYError
from app.tools.context import ToolContext
from app.tools.engine import ExecutionEngine
from app.tools.files import file_tools
from app.tools.paths import PathTraversalError, validate_path
from app.tools.registry import DuplicateToolError, ToolNotFoundError, ToolRegistry
from app.tools.result import ToolResult
from app.tools.signature import parse_docstring
from app.tools.tool import Tool
