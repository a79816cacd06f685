"""Search among all tools that a person may use: the service `search` of bundled skills."""

from collections.abc import Iterable

from app.messages import JSON
from app.people import Person
from app.routing.tool_catalog import SEARCH_TOOLS, ToolCatalog

__all__ = ["SEARCH_TOOLS", "ToolSearch"]
LONGEST_DESCRIPTION = 200


class ToolSearch:
    """Searches the tools that a person may use, without helpers that only lead to others."""

    def __init__(self, abilities: ToolCatalog) -> None:
        self._abilities = abilities

    def search(self, words: str, person: Person, limit: int = 5) -> list[dict[str, str]]:
        """Return name, description and category of the tools that fit the words best.

        As in a turn, tools for each of several tasks are found.
        """
        among = self._categories_of_tools(person)
        hits = self._abilities.index.spread(words, among=among, limit=limit)
        tools = [tool for hit in hits if (tool := self._abilities.tool(hit.id)) is not None]
        return [
            {"name": tool.name, "description": _first_line(tool.description), "category": tool.category}
            for tool in tools
        ]

    def categories(self, person: Person) -> list[dict[str, JSON]]:
        """Return name, description and tools of every skill that has any for the person."""
        tools: dict[str, list[str]] = {}
        for name, category in self._categories_of_tools(person).items():
            tools.setdefault(category, []).append(name)
        return [
            {"name": name, "description": _first_line(description), "tools": tools[name]}
            for name, description in self._abilities.categories(person)
            if name in tools
        ]

    def names_others(self, skills: Iterable[str]) -> bool:
        """Return whether any of these skills was written by others."""
        return bool(self._abilities.foreign(skills, ()))

    def _categories_of_tools(self, person: Person) -> dict[str, str]:
        return {
            name: category
            for name, category in self._abilities.tool_categories(person).items()
            if (tool := self._abilities.tool(name)) is not None and not tool.harmless
        }


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0][:LONGEST_DESCRIPTION]
