"""The servers that run, as abilities: their tools by category, a line on each, phrases that lead to them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.mcp.servers import McpServers
from app.routing.snapshot import Phrases, ServerAbility
from app.skills.folder import stamp
from app.skills.phrases import FILE, phrases
from app.tools import Tool


class ServerToolCatalog:
    """Fulfils `Servers`."""

    def __init__(self, servers: McpServers, data_dir: Path) -> None:
        self._servers = servers
        self._data_dir = data_dir
        self._abilities: Sequence[ServerAbility] = ()
        self._made_of: object = ((), ())

    async def refresh(self) -> None:
        """Takes over what changed in the configuration, and which tools there are by now."""
        await self._servers.refresh()
        named: dict[str, list[Tool]] = {}
        for tool in self._servers.tools:
            named.setdefault(tool.category, []).append(tool)
        stamps = tuple(stamp(self._file(name)) for name in named)
        made_of = (tuple(self._servers.tools), stamps)
        if made_of == self._made_of:
            return
        written = await asyncio.to_thread(self._written, named)
        described, origins = self._servers.descriptions, self._origins()
        self._made_of = made_of
        self._abilities = tuple(
            ServerAbility(
                name,
                described.get(name, ""),
                origins.get(name) != "operator",
                written[name],
                tuple(tools),
            )
            for name, tools in named.items()
        )

    async def first_starts(self) -> bool:
        """Waits a moment for those that start for the first time; whether there were any."""
        return await self._servers.first_starts()

    def abilities(self) -> Sequence[ServerAbility]:
        """Those whose tools can be used now: the same object while nothing changed."""
        return self._abilities

    def _written(self, named: Mapping[str, Sequence[Tool]]) -> dict[str, Phrases]:
        return {
            name: phrases(self._file(name), {tool.name: tool.description for tool in tools})
            for name, tools in named.items()
        }

    def _file(self, name: str) -> Path:
        return self._data_dir / "mcp" / name / FILE

    def _origins(self) -> dict[str, str]:
        return {one.name: one.definition.origin for one in self._servers.states() if one.definition}
