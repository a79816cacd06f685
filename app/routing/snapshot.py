"""Snapshots of all tools at one moment: those of skills, and those of servers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import orjson

from app.mcp.servers import McpServers
from app.messages import JSON
from app.people import Audience, Person, may_use
from app.search.index import Document
from app.search.lexicon import phrases_of
from app.skills.skill import Skill
from app.tools import Tool
from app.tools.schema import Schema
from app.tools.source import stamp
from app.tools.tool import brief

Phrases = Mapping[str, Mapping[str, tuple[str, ...]]]
"""Example phrases by tool, then by language."""


@dataclass(frozen=True, slots=True)
class ServerTools:
    """A server and its tools; `description` is the line that the classifier reads.

    `installed`: it was installed, and is not the operator's own.
    """

    name: str
    description: str
    installed: bool
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """The skills, servers and tools at one moment; it never changes, so a turn never sees half of a reload.

    `servers` are by category; `version` and `hash` are those of all `definitions`, by which models know the
    tools; `sizes` are the bytes of each; `trusted` are the skills and servers that are the release's or the
    operator's own.
    """

    skills: Mapping[str, Skill] = field(default_factory=dict)
    servers: Mapping[str, ServerTools] = field(default_factory=dict)
    tools: Mapping[str, Tool] = field(default_factory=dict)
    version: str = ""
    hash: str = ""
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    trusted: frozenset[str] = frozenset()

    def usable(self, person: Person) -> Mapping[str, Skill]:
        """Return the skills that a person may use."""
        return {name: skill for name, skill in self.skills.items() if may_use(person, skill.audience)}

    def servers_of(self, person: Person) -> Iterable[ServerTools]:
        """Return the servers that have a tool for this person."""
        return (
            server
            for server in self.servers.values()
            if any(may_use(person, self.tools[tool.name].audience) for tool in server.tools)
        )

    def documents(self, written: Phrases) -> list[Document]:
        """Return the tools as the index reads them; those without phrases with `written` or derived ones."""
        documents = []
        for name, tool in self.tools.items():
            if not any(phrases := tool.phrases.values()):
                derived = phrases_of(name.removeprefix("mcp_"), tool.description)
                phrases = {**derived, **written.get(name, {})}.values()
            documents.append(document(tool, phrases))
        return documents

    def skill_documents(self) -> list[Document]:
        """Return the skills as their index reads them, their tools in place of parameters."""
        return [
            Document(
                id=skill.name,
                name=skill.name,
                description=skill.manifest.description,
                parameters={tool.name: tool.description for tool in skill.tools},
                examples=tuple(chain(*(said for tool in skill.tools for said in tool.phrases.values()))),
            )
            for skill in self.skills.values()
        ]


def build_snapshot(
    skills: Iterable[Skill],
    tools: Sequence[Tool],
    servers: McpServers | None = None,
    guest_tools: Collection[str] = (),
) -> CatalogSnapshot:
    """Return a snapshot of the skills in use, their tools, and servers.

    `guest_tools`: names of tools, skills and servers that guests may use though only members could.
    """

    def opened(audience: Audience, *names: str) -> Audience:
        return "everyone" if audience == "members" and not set(guest_tools).isdisjoint(names) else audience

    by_name = {one.name: replace(one, audience=opened(one.audience, one.name)) for one in skills}
    served = _served(servers, by_name) if servers is not None else {}
    offered = {tool.name: tool for tool in tools}
    for server in served.values():
        offered |= {tool.name: tool for tool in server.tools if tool.name not in offered}
    for name, tool in offered.items():
        audience = opened(tool.audience, name, tool.category)
        offered[name] = tool if audience == tool.audience else tool.replace(audience=audience)
    definitions = {name: brief(tool) for name, tool in offered.items()}
    functions = {name: definition["function"] for name, definition in definitions.items()}
    trusted = [name for name, server in served.items() if not server.installed]
    trusted += [name for name, one in by_name.items() if one.installed is None]
    version, hash = stamp([*functions.values()])
    return CatalogSnapshot(
        skills=by_name,
        servers=served,
        tools=offered,
        version=version,
        hash=hash,
        definitions=definitions,
        sizes={name: len(orjson.dumps(function)) for name, function in functions.items()},
        trusted=frozenset(trusted),
    )


def document(tool: Tool, phrases: Iterable[Sequence[str]]) -> Document:
    """Return a tool as the index reads it; `phrases` are the examples of each language."""
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
        examples=tuple(chain(*phrases)),
    )


def _served(servers: McpServers, skills: Collection[str]) -> dict[str, ServerTools]:
    """Return the servers by category: their names, but never a skill's, whose rights they would get."""
    own = {one.name for one in servers.states() if one.definition and one.definition.origin == "operator"}
    of_server: dict[str, list[Tool]] = {}
    for tool in servers.tools:
        of_server.setdefault(tool.category, []).append(tool)
    named: dict[str, ServerTools] = {}
    for name, tools in of_server.items():
        category = name
        while category in skills or category in named:
            category = f"mcp_{category}"
        if category != name:
            tools = [tool.replace(category=category) for tool in tools]
        description = servers.descriptions.get(name, "")
        named[category] = ServerTools(category, description, name not in own, tuple(tools))
    return named
