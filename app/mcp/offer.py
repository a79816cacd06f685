"""What all servers offer together: tools under names that nobody else has, a line on each category."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from app.characters import visible
from app.mcp.adapter import adapt
from app.mcp.names import unique_names
from app.mcp.supervisor import Supervisor
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


def offer(servers: Iterable[Supervisor], taken: Collection[str]) -> Offer:
    """The tools that were approved; `taken` are categories of others."""
    offering = [server for server in servers if server.approved]
    offered = unique_names(
        (server.definition.name, raw["name"]) for server in offering for raw in server.approved
    )
    tools: list[Tool] = []
    names: dict[str, tuple[str, ...]] = {}
    descriptions: dict[str, str] = {}
    for server in offering:
        name = server.definition.name
        category = f"mcp_{name}" if name in taken else name
        adapted = [
            adapt(server.definition, raw, server.call, name=offered[name, raw["name"]], category=category)
            for raw in server.approved
        ]
        tools += adapted
        names[name] = tuple(tool.name for tool in adapted)
        descriptions[category] = _description(server)
    return Offer(tuple(tools), names, descriptions)


def _description(server: Supervisor) -> str:
    """What it is said to be, and what its tools are called: of others, so short and with nothing hidden."""
    said = visible(server.definition.description[:_LONGEST_DESCRIPTION]).strip()
    tools = [visible(raw["name"][:_LONGEST_NAME]) for raw in server.approved[:_MOST_NAMED]]
    more = ", …" if len(server.approved) > _MOST_NAMED else ""
    return f"{said or f'the server {server.definition.name}'}: {', '.join(tools)}{more}"
