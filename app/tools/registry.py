"""The tools there are, by name."""

from collections.abc import Iterable

from app.errors import RecadoError
from app.tools.schema import Schema
from app.tools.tool import Tool


class DuplicateToolError(RecadoError, ValueError):
    """A name that is taken already."""


class ToolNotFoundError(RecadoError, KeyError):
    """A name that no tool has."""

    def __str__(self) -> str:  # KeyError would put the text in quotes
        return str(self.args[0]) if self.args else ""


class ToolRegistry:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, allow_override: bool = False) -> None:
        """Add a tool. Raises DuplicateToolError for a name that is taken, unless it may be replaced."""
        if tool.name in self._tools and not allow_override:
            raise DuplicateToolError(
                f"a tool named {tool.name!r} is registered already; "
                "rename one of the two or pass allow_override=True"
            )
        self._tools[tool.name] = tool

    def unregister(self, name: str) -> None:
        """Remove a tool. Raises ToolNotFoundError."""
        self.get(name)
        del self._tools[name]

    def get(self, name: str) -> Tool:
        """Return the tool of that name. Raises ToolNotFoundError."""
        tool = self._tools.get(name)
        if tool is None:
            raise ToolNotFoundError(f"no tool is named {name!r}")
        return tool

    def find(self, name: str) -> Tool | None:
        """Return the tool of that name, None where there is none."""
        return self._tools.get(name)

    def list_all(self) -> list[Tool]:
        """Return all tools, sorted by name."""
        return [self._tools[name] for name in sorted(self._tools)]

    def get_schemas(self, allowed: Iterable[str] | None = None) -> list[Schema]:
        """Return function definitions, by name for `None` (all of them), else in the order asked for.

        Raises ToolNotFoundError for an unknown name.
        """
        tools = self.list_all() if allowed is None else self.filter_by_names(allowed)
        return [tool.get_schema() for tool in tools]

    def filter_by_names(self, names: Iterable[str]) -> list[Tool]:
        """Return the tools of these names, in their order. Raises ToolNotFoundError for an unknown one."""
        return [self.get(name) for name in names]

    def has_tool(self, name: str) -> bool:
        return name in self._tools

    def count(self) -> int:
        return len(self._tools)

    def clear(self) -> None:
        self._tools.clear()
