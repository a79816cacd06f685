"""Snapshots of all tools at one moment, and the servers that bring some of them."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import orjson

from app.mcp.servers import McpServers
from app.messages import JSON
from app.people import Audience, Person, may_use
from app.search.index import Document
from app.search.lexicon import phrases_of
from app.skills.disclosure import readable_files
from app.skills.folder import stamp as file_stamp
from app.skills.phrases import FILE
from app.skills.phrases import phrases as read_phrases
from app.skills.skill import Skill
from app.tools import Tool
from app.tools.catalog import stamp
from app.tools.schema import Schema
from app.tools.tool import brief

Phrases = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Example phrases by tool, then by language."""


@dataclass(frozen=True, slots=True)
class ServerTools:
    """A server and its tools; `description` is the line that the classifier reads.

    `installed`: it was installed, and is not the operator's own.
    """

    name: str
    description: str = ""
    installed: bool = True
    phrases: Phrases = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()


class Servers(Protocol):
    """The servers that bring tools beside those of the skill folders."""

    async def refresh(self) -> None:
        """Take over what changed in the configuration; servers start and stop in the background."""

    async def first_starts(self) -> bool:
        """Wait a moment for those that start for the first time; return whether there were any."""

    def offered(self) -> Sequence[ServerTools]:
        """Return those that can be used now: the same object while nothing changed."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The definitions of all tools as models are offered them; `body` is their JSON."""

    version: str = ""
    hash: str = ""
    body: str = "[]"


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """The skills, servers and tools at one moment; it never changes, so a turn never sees half of a reload.

    `servers` are by category; `files` are those that can be read of each skill; `sizes` are the bytes of each
    tool's definition; `categories` are those of each tool that has one, in the order of the tools' names;
    `trusted` are the skills and servers that are the release's or the operator's own.
    """

    skills: Mapping[str, Skill] = field(default_factory=dict)
    servers: Mapping[str, ServerTools] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    phrases: Phrases = field(default_factory=dict)
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=Catalog)
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    categories: Mapping[str, str] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()

    def usable(self, person: Person) -> Mapping[str, Skill]:
        """Return the skills that a person may use."""
        return {name: skill for name, skill in self.skills.items() if may_use(person, skill.audience)}

    def tool_categories(self, person: Person) -> Mapping[str, str]:
        """Return the tools that a person may be offered, sorted, with their categories."""
        return {name: one for name, one in self.categories.items() if is_for(person, self.tools[name])}

    def servers_of(self, person: Person) -> Iterable[ServerTools]:
        """Return the servers that have a tool for this person."""
        return (
            server
            for server in self.servers.values()
            if any(is_for(person, self.tools[tool.name]) for tool in server.tools)
        )

    def documents(self) -> list[Document]:
        """Return the tools as the index reads them."""
        return [document(tool, self._said(tool)) for tool in self.tools.values()]

    def _said(self, tool: Tool) -> Mapping[str, tuple[str, ...]]:
        """Return its example phrases; if there are none, some made of its own texts."""
        said = self.phrases.get(tool.name, {})
        return said if any(said.values()) else phrases_of(tool.name.removeprefix("mcp_"), tool.description)

    def skill_documents(self) -> list[Document]:
        """Return the skills as their index reads them, their tools in place of parameters."""
        return [_skill_document(skill) for skill in self.skills.values()]


def build_snapshot(
    before: CatalogSnapshot,
    skills: Iterable[Skill],
    tools: Sequence[Tool],
    phrases: Phrases,
    servers: Iterable[ServerTools],
    guest_tools: Collection[str] = (),
) -> CatalogSnapshot:
    """Return a snapshot of the skills in use, their tools and phrases, and servers. It blocks on folders.

    `guest_tools`: names of tools, skills and servers that guests may use though only members could.
    """
    by_name = {
        skill.name: replace(skill, audience=_opened(skill.audience, guest_tools, skill.name))
        for skill in skills
    }
    categories = _categories(servers, by_name)
    offered = {tool.name: tool for tool in tools}
    for server in categories.values():
        offered |= {tool.name: tool for tool in server.tools if tool.name not in offered}
    for name, tool in offered.items():
        audience = _opened(tool.audience, guest_tools, name, tool.category)
        offered[name] = tool if audience == tool.audience else tool.replace(audience=audience)
    definitions = {name: brief(tool) for name, tool in offered.items()}
    functions = {name: definition["function"] for name, definition in definitions.items()}
    categories_of_tools = {name: tool.category for name, tool in sorted(offered.items()) if tool.category}
    bodies = {name: orjson.dumps(function) for name, function in functions.items()}
    return CatalogSnapshot(
        by_name,
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
        frozenset(
            (
                *(server.name for server in categories.values() if not server.installed),
                *(skill.name for skill in by_name.values() if skill.installed is None),
            )
        ),
    )


def _opened(audience: Audience, guest_tools: Collection[str], *names: str) -> Audience:
    return "everyone" if audience == "members" and not set(guest_tools).isdisjoint(names) else audience


def document(tool: Tool, phrases: Mapping[str, Sequence[str]]) -> Document:
    """Return a tool as the index reads it."""
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
    """Return whether a person may be offered a tool."""
    return may_use(person, tool.audience)


def _categories(servers: Iterable[ServerTools], skills: Collection[str]) -> dict[str, ServerTools]:
    """Return the servers by category: their names, but never a skill's, whose rights they would get."""
    named: dict[str, ServerTools] = {}
    for server in servers:
        category = server.name
        while category in skills or category in named:
            category = f"mcp_{category}"
        tools = tuple(
            tool if tool.category == category else tool.replace(category=category) for tool in server.tools
        )
        named[category] = ServerTools(category, server.description, server.installed, server.phrases, tools)
    return named


def _files(skill: Skill, before: CatalogSnapshot) -> tuple[str, ...]:
    """Return the readable files of a skill, none of a bundled one; an unchanged skill is not read again."""
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


class ServerToolCatalog:
    """The running MCP servers with their tools and example phrases; implements `Servers`."""

    def __init__(self, servers: McpServers, data_dir: Path) -> None:
        self._servers = servers
        self._data_dir = data_dir
        self._offered: Sequence[ServerTools] = ()
        self._made_of: object = ((), ())

    async def refresh(self) -> None:
        """Take over what changed in the configuration, and the tools there are by now."""
        await self._servers.refresh()
        named: dict[str, list[Tool]] = {}
        for tool in self._servers.tools:
            named.setdefault(tool.category, []).append(tool)
        stamps = tuple(file_stamp(self._file(name)) for name in named)
        made_of = (tuple(self._servers.tools), stamps)
        if made_of == self._made_of:
            return
        written = await asyncio.to_thread(self._written, named)
        described, origins = self._servers.descriptions, self._origins()
        self._made_of = made_of
        self._offered = tuple(
            ServerTools(
                name, described.get(name, ""), origins.get(name) != "operator", written[name], tuple(tools)
            )
            for name, tools in named.items()
        )

    async def first_starts(self) -> bool:
        """Wait a moment for those that start for the first time; return whether there were any."""
        return await self._servers.first_starts()

    def offered(self) -> Sequence[ServerTools]:
        """Return those whose tools can be used now: the same object while nothing changed."""
        return self._offered

    def _written(self, named: Mapping[str, Sequence[Tool]]) -> dict[str, Phrases]:
        return {
            name: read_phrases(self._file(name), {tool.name: tool.description for tool in tools})
            for name, tools in named.items()
        }

    def _file(self, name: str) -> Path:
        return self._data_dir / "mcp" / name / FILE

    def _origins(self) -> dict[str, str]:
        return {one.name: one.definition.origin for one in self._servers.states() if one.definition}
