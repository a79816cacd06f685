"""The client that the suite starts with the address of its server: our own manager, as the assistant uses it.

It lists the server's tools and calls what the scenario names, else each of them once. A failed call is no
fault of the client's; a server that cannot be used is.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from app.mcp.definitions import ServerDefinition, ServerState
from app.mcp.servers import McpServers
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.tools import Tool

SECONDS = 20.0
SAMPLES: dict[str, JSON] = {
    "string": "x",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


class _Suite:
    """The configuration with the suite's server alone; prints its troubles."""

    def __init__(self, url: str) -> None:
        self._definition = ServerDefinition("suite", url=url)

    def look(self) -> list[ServerDefinition]:
        return [self._definition]

    async def server_changed(self, state: ServerState) -> None:
        print(state.name, state.reason or "is mended")


async def run(url: str, folder: Path) -> str:
    """What went wrong with the server, "" where nothing did."""
    sandbox = Sandbox(Settings(_env_file=None, DATA_DIR=folder))  # type: ignore[call-arg]
    suite = _Suite(url)
    servers = McpServers(suite, sandbox, folder, suite)
    await servers.refresh()
    try:
        state = await servers.settled("suite", SECONDS)
        print(state.phase, state.revision, state.tools, state.dropped)
        for tool, arguments in _calls({tool.name: tool for tool in servers.tools}):
            async with asyncio.timeout(SECONDS):
                print(tool.name, arguments, (await tool.execute(arguments)).to_json(1000))
        return state.reason if state.phase != "ready" else ""
    finally:
        await servers.stop()


def _calls(tools: dict[str, Tool]) -> list[tuple[Tool, dict[str, JSON]]]:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    named = [
        (tools.get(f"mcp_suite_{one['name']}"), one["arguments"]) for one in context.get("toolCalls", ())
    ]
    return [(tool, given) for tool, given in named if tool is not None] or [
        (tool, _sample(tool)) for tool in tools.values()
    ]


def _sample(tool: Tool) -> dict[str, JSON]:
    properties = tool.input_schema.get("properties", {})
    return {name: SAMPLES.get(properties[name].get("type")) for name in tool.input_schema.get("required", ())}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(asyncio.run(run(sys.argv[-1], Path(folder))) or 0)
