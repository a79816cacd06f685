"""Ten MCP servers: started side by side, beside one after the other."""

import time
from collections.abc import Iterator
from functools import partial
from itertools import count, repeat
from pathlib import Path

from app.mcp.definitions import ServerDefinition, ServerState
from app.mcp.servers import McpServers
from app.processes.sandbox import Sandbox
from app.settings import Settings
from bench.measure import Plan, Row, interleaved, ratio
from bench.process import Release
from tests.standins.mcp_server import command

SERVERS = 10
SECONDS = 60.0
BUSY_SECONDS = 0.25
"""Of a processor, until a server answers: more than a small one on Node, less than one in Python."""


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    """The first start finds out which revision each speaks; the later ones know it."""
    await started(folder / "warm", side_by_side=True)  # the packages of the protocol are loaded now
    found = []
    for what, place in (("their first start", _new(folder)), ("a later start", repeat(folder / "warm"))):

        async def side(side_by_side: bool, place: Iterator[Path] = place) -> float:
            return await started(next(place), side_by_side)

        sides = {"ours": partial(side, True), "one by one": partial(side, False)}
        figures = await interleaved(plan.rounds, sides)
        named, ours, other = f"{SERVERS} MCP servers, {what}", figures["ours"], figures["one by one"]
        found.append(ratio(named, ours, other, "s", goal=0.55, named="one after the other"))
    return found


def _new(folder: Path) -> Iterator[Path]:
    return (folder / str(number) for number in count())


async def started(folder: Path, side_by_side: bool) -> float:
    """Seconds until all of them are ready."""
    program, *args = command(busy=BUSY_SECONDS)
    names = [f"server{number}" for number in range(SERVERS)]
    definitions: list[ServerDefinition] = []
    sandbox = Sandbox(Settings(_env_file=None, DATA_DIR=folder))  # type: ignore[call-arg]
    servers = McpServers(_Written(definitions), sandbox, folder, _Alerts())
    began = time.perf_counter()
    for name in names:
        definitions.append(ServerDefinition(name, command=program, args=tuple(args)))
        if not side_by_side:
            await servers.refresh()
            await servers.settled(name, SECONDS)
    await servers.refresh()
    states = [await servers.settled(name, SECONDS) for name in names]
    took = time.perf_counter() - began
    await servers.stop()
    if any(state.phase != "ready" for state in states):
        raise RuntimeError(f"not every server is ready: {states}")
    return took


class _Written:
    def __init__(self, definitions: list[ServerDefinition]) -> None:
        self._definitions = definitions

    def look(self) -> list[ServerDefinition]:
        return list(self._definitions)


class _Alerts:
    async def server_changed(self, state: ServerState) -> None:
        if state.reason:
            raise RuntimeError(f"{state.name}: {state.reason}")
