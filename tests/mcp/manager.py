"""A manager with servers to manage, as tests use it."""

import json
import os
from pathlib import Path
from typing import Any

from app.mcp.definitions import ServerDefinition, ServerState
from app.mcp.servers import Limits, McpServers
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.tools.result import ToolResult
from app.tools.tool import Tool
from tests.standins.mcp_server import command

SECONDS = 20.0
QUICK = Limits(connect=10.0, pauses=(0.01, 0.01, 0.01, 0.01), relist=0.05)
"""Pauses that a test can wait for."""


class Manager:
    """`servers` over `definitions`, in a data folder; hears what the app would hear."""

    def __init__(self, folder: Path, limits: Limits = QUICK, **more: Any) -> None:
        self.folder = folder
        self.definitions: dict[str, ServerDefinition] = {}
        self.changes = 0
        self.troubles: list[tuple[str, str]] = []
        self.sandbox = Sandbox(Settings(_env_file=None, DATA_DIR=folder))  # type: ignore[call-arg]
        self.servers = McpServers(self, self.sandbox, folder, self, limits=limits, **more)
        self.servers.listeners.append(self._changed)

    def look(self) -> list[ServerDefinition]:
        return list(self.definitions.values())

    def write(self, name: str, scenario: dict[str, Any] | None = None, **fields: Any) -> None:
        """Writes a stand-in down; `scenario` is as its own file says."""
        program, *args = command(**(scenario or {}))
        self.definitions[name] = ServerDefinition(
            name, **({"command": program, "args": tuple(args)} | fields)
        )

    async def start(self, name: str, scenario: dict[str, Any] | None = None, **fields: Any) -> ServerState:
        """The same, and waits until it is ready or known not to become so."""
        self.write(name, scenario, **fields)
        await self.servers.refresh()
        return await self.servers.settled(name, SECONDS)

    def state(self, name: str) -> ServerState:
        return next(state for state in self.servers.states() if state.name == name)

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.servers.tools if tool.name == name)

    async def call(self, name: str, /, **args: Any) -> ToolResult:
        return await self.tool(name).execute(args)

    async def read(self, name: str, /, **args: Any) -> Any:
        """Call a tool of the stand-in and return the JSON that it says."""
        result = await self.call(name, **args)
        assert result.ok, result
        return json.loads(result.data)

    def _changed(self) -> None:
        self.changes += 1

    async def server_changed(self, state: ServerState) -> None:
        held = ", ".join(one.tool for one in state.held_back)
        self.troubles.append((state.name, f"held back: {held}" if held else state.reason))


def lives(pid: int) -> bool:
    """Tell whether a process runs: one that ended and waits for its parent does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except FileNotFoundError:
        return False


def descendants(root: int) -> set[int]:
    """The living processes below one."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except FileNotFoundError:
                continue
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid for pid in found - {root} if lives(pid)}
