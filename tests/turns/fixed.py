"""Abilities that are just the tools of a registry."""

from app.tools import Tool, ToolRegistry


class Fixed:
    """Stand in for `ToolCatalog`; the category "shipped" belongs to the release."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def tool(self, name: str) -> Tool | None:
        return self._registry.get(name) if self._registry.has_tool(name) else None

    def settings(self, _: str) -> dict[str, str]:
        return {}

    def is_bundled(self, name: str) -> bool:
        return self._registry.get(name).category == "shipped"
