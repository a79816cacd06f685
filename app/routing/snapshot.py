"""All abilities at one moment: skills, servers, their tools, and what the index reads of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from app.messages import JSON
from app.people import Person
from app.search.index import Document
from app.search.phrasing import phrases_of
from app.skills.disclosure import readable_files
from app.skills.skill import Skill
from app.tools import Tool
from app.tools.brief import brief
from app.tools.catalog import stamp
from app.tools.schema import Schema

Phrases = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Example phrases of tools: by tool, then by language."""


@dataclass(frozen=True, slots=True)
class ServerAbility:
    """A server whose tools are offered. `description` is a line for whoever chooses categories.

    `from_elsewhere`: its owner installed it, it is not the operator's own.
    """

    name: str
    description: str = ""
    from_elsewhere: bool = True
    phrases: Phrases = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()


class Servers(Protocol):
    """Where tools come from that no folder holds."""

    async def refresh(self) -> None:
        """Takes over what changed in the configuration; starts and stops in the background."""

    async def first_starts(self) -> bool:
        """Waits a moment for those that start for the first time; whether there were any."""

    def abilities(self) -> Sequence[ServerAbility]:
        """Those that can be used now: the same object while nothing changed."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The definitions of all tools at one moment, as models are offered them; `body` is their JSON."""

    version: str = ""
    hash: str = ""
    body: str = "[]"


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """What one look found. Never changed: a turn never sees half of a reload."""

    skills: Mapping[str, Skill] = field(default_factory=dict)
    for_everyone: Mapping[str, Skill] = field(default_factory=dict)
    servers: Mapping[str, ServerAbility] = field(default_factory=dict)
    """By category."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    phrases: Phrases = field(default_factory=dict)
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What can be read of each skill."""
    catalog: Catalog = field(default_factory=Catalog)
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    """Each tool as a model is offered it; not to be changed."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each tool's definition."""
    categories: Mapping[str, str] = field(default_factory=dict)
    """The category of each tool that has one, by name, in the order of the names."""
    categories_for_everyone: Mapping[str, str] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()
    """The skills and servers that are the release's or the operator's own."""

    def usable(self, person: Person) -> Mapping[str, Skill]:
        """The skills that a person may use."""
        return self.skills if person.is_owner else self.for_everyone

    def tool_categories(self, person: Person) -> Mapping[str, str]:
        """The tools that a person may be offered, sorted, with their categories."""
        return self.categories if person.is_owner else self.categories_for_everyone

    def servers_of(self, person: Person) -> Iterable[ServerAbility]:
        """The servers that have a tool for this person."""
        return (
            server
            for server in self.servers.values()
            if any(is_for(person, self.tools[tool.name]) for tool in server.tools)
        )

    def documents(self) -> list[Document]:
        """The tools as the index reads them."""
        return [document(tool, self._said(tool)) for tool in self.tools.values()]

    def _said(self, tool: Tool) -> Mapping[str, tuple[str, ...]]:
        """Its example phrases; where nobody wrote any, what its own texts make."""
        said = self.phrases.get(tool.name, {})
        return said if any(said.values()) else phrases_of(tool.name.removeprefix("mcp_"), tool.description)

    def skill_documents(self) -> list[Document]:
        """The skills as their index reads them, their tools in place of parameters."""
        return [_skill_document(skill) for skill in self.skills.values()]


def view_of(
    before: CatalogSnapshot,
    skills: Iterable[Skill],
    tools: Sequence[Tool],
    phrases: Phrases,
    servers: Iterable[ServerAbility],
) -> CatalogSnapshot:
    """A view of skills in use, their `tools` and `phrases`, and servers. Blocks: files are looked for."""
    by_name = {skill.name: skill for skill in skills}
    categories = _categories(servers, by_name)
    offered = {tool.name: tool for tool in tools}
    for server in categories.values():
        offered |= {tool.name: tool for tool in server.tools if tool.name not in offered}
    definitions = {name: brief(tool) for name, tool in offered.items()}
    functions = {name: definition["function"] for name, definition in definitions.items()}
    categories_of_tools = {name: tool.category for name, tool in sorted(offered.items()) if tool.category}
    bodies = {name: orjson.dumps(function) for name, function in functions.items()}
    return CatalogSnapshot(
        by_name,
        {name: skill for name, skill in by_name.items() if skill.audience != "owners"},
        categories,
        offered,
        {
            **{tool: said for server in categories.values() for tool, said in server.phrases.items()},
            **phrases,
        },
        {name: _files(skill, before) for name, skill in by_name.items()},
        Catalog(*stamp([*functions.values()]), f"[{b','.join(bodies.values()).decode()}]"),
        definitions,
        {name: len(body) for name, body in bodies.items()},
        categories_of_tools,
        {name: one for name, one in categories_of_tools.items() if offered[name].audience != "owners"},
        frozenset(
            (
                *(server.name for server in categories.values() if not server.from_elsewhere),
                *(skill.name for skill in by_name.values() if skill.installed is None),
            )
        ),
    )


def document(tool: Tool, phrases: Mapping[str, Sequence[str]]) -> Document:
    """A tool as the index reads it."""
    properties: Mapping[str, JSON] = tool.input_schema.get("properties", {})
    return Document(
        id=tool.name,
        name=tool.name,
        description=tool.description,
        category=tool.category,
        parameters={
            name: str(schema.get("description", "")) if isinstance(schema, dict) else ""
            for name, schema in properties.items()
        },
        examples=tuple(phrase for texts in phrases.values() for phrase in texts),
    )


def is_for(person: Person, tool: Tool) -> bool:
    """Whether a person may be offered a tool."""
    return tool.audience != "owners" or person.is_owner


def _categories(servers: Iterable[ServerAbility], skills: Collection[str]) -> dict[str, ServerAbility]:
    """The servers by category: their names, but never a skill's, whose rights its tools would have."""
    named: dict[str, ServerAbility] = {}
    for server in servers:
        category = server.name
        while category in skills or category in named:
            category = f"mcp_{category}"
        tools = tuple(
            tool if tool.category == category else tool.replace(category=category) for tool in server.tools
        )
        named[category] = ServerAbility(
            category, server.description, server.from_elsewhere, server.phrases, tools
        )
    return named


def _files(skill: Skill, before: CatalogSnapshot) -> tuple[str, ...]:
    """Nothing of a shipped skill is there to be read; of one that did not change nothing is read."""
    if before.skills.get(skill.name) is skill:
        return before.files[skill.name]
    return () if skill.bundled else readable_files(skill)


def _skill_document(skill: Skill) -> Document:
    return Document(
        id=skill.name,
        name=skill.name,
        description=skill.manifest.description,
        parameters={tool.name: tool.description for tool in skill.tools},
        examples=tuple(
            phrase for texts in skill.phrases.values() for listed in texts.values() for phrase in listed
        ),
    )
