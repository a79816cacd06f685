"""Tools: their interface, the registry, and the engine that runs a call."""

from app.tools.engine import ConfirmationPolicy, ExecutionEngine, NoTTYError
from app.tools.files import file_tools
from app.tools.paths import PathTraversalError, validate_path
from app.tools.result import ToolResult
from app.tools.schema import parse_docstring
from app.tools.source import build_catalog, get_catalog_cached
from app.tools.tool import DuplicateToolError, Tool, ToolContext, ToolNotFoundError, ToolRegistry
