"""What all servers offer together: tools under names that nobody else has, a line on each category."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.mcp.adapter import adapt
from app.mcp.names import unique_names
from app.mcp.supervisor import Supervisor
from app.messages import JSON
from app.text import visible
from app.tools.tool import Tool

_LONGEST_DESCRIPTION = 300
_MOST_NAMED = 15
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Offer:
    """`names`: the tools of each server, as they are offered; `descriptions`: a line for each category."""

    tools: tuple[Tool, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, "_Made"] = field(default_factory=dict)
    """By the tool's name, what each was made of: one that did not change is the same object."""


@dataclass(frozen=True, slots=True)
class _Made:
    server: Supervisor
    raw: Mapping[str, JSON]
    tool: Tool


def offer(servers: Iterable[Supervisor], before: Offer) -> Offer:
    """The tools that were approved."""
    offering = [server for server in servers if server.approved]
    offered = unique_names(
        (server.definition.name, raw["name"]) for server in offering for raw in server.approved
    )
    made: dict[str, _Made] = {}
    names: dict[str, tuple[str, ...]] = {}
    descriptions: dict[str, str] = {}
    for server in offering:
        name = server.definition.name
        own = {offered[name, raw["name"]]: raw for raw in server.approved}
        made |= {tool: _made(server, raw, tool, before.made.get(tool)) for tool, raw in own.items()}
        names[name] = tuple(own)
        descriptions[name] = _description(server)
    return Offer(tuple(one.tool for one in made.values()), names, descriptions, made)


def _made(server: Supervisor, raw: Mapping[str, JSON], name: str, before: _Made | None) -> _Made:
    if before is not None and before.server is server and before.raw == raw:
        return before
    definition = server.definition
    return _Made(server, raw, adapt(definition, raw, server.call, name=name, category=definition.name))


def _description(server: Supervisor) -> str:
    """What it is said to be, and what its tools are called: of others, so short and with nothing hidden."""
    said = visible(server.definition.description[:_LONGEST_DESCRIPTION]).strip()
    tools = [visible(raw["name"][:_LONGEST_NAME]) for raw in server.approved[:_MOST_NAMED]]
    more = ", …" if len(server.approved) > _MOST_NAMED else ""
    return f"{said or f'the server {server.definition.name}'}: {', '.join(tools)}{more}"
