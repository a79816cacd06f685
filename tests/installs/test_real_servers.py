"""Public servers from the real registries of npm and PyPI: installed, run together and called."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from app.installs.entries import read_entry
from app.installs.pipeline import Approval
from app.installs.servers import ServerInstaller, ServerRequest
from app.mcp.configuration import Configuration
from app.mcp.pins import ServerState
from app.mcp.servers import McpServers
from app.mcp.supervisor import Limits
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.tools import ToolContext, ToolResult
from tests.mcp.manager import descendants, lives
from tests.world import ROOT, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]

SERVERS: dict[str, dict[str, Any]] = {
    "everything": {"identifier": "@modelcontextprotocol/server-everything", "version": "2026.8.31"},
    "filesystem": {
        "identifier": "@modelcontextprotocol/server-filesystem",
        "version": "2026.8.31",
        "packageArguments": [
            {"type": "positional", "valueHint": "allowed_directory", "format": "filepath", "isRequired": True}
        ],
    },
    "memory": {
        "identifier": "@modelcontextprotocol/server-memory",
        "version": "2026.8.31",
        "environmentVariables": [{"name": "MEMORY_FILE_PATH", "format": "filepath"}],
    },
    "sequential-thinking": {
        "identifier": "@modelcontextprotocol/server-sequential-thinking", "version": "2026.8.31"
    },
    "time": {"identifier": "mcp-server-time", "version": "2026.10.19"},
    "git": {
        "identifier": "mcp-server-git",
        "version": "2026.10.19",
        "packageArguments": [{"type": "named", "name": "--repository", "format": "filepath"}],
    },
    "sqlite": {
        "identifier": "mcp-server-sqlite",
        "version": "2025.4.25",
        "packageArguments": [
            {"type": "named", "name": "--db-path", "format": "filepath", "isRequired": True}
        ],
    },
}  # fmt: skip
VALUES = {"git": {"repository": "repository"}}


class Place:
    """A data folder with the servers."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self.settings = Settings(
            _env_file=None,
            DATA_DIR=self.data,
            DATABASE_URL=f"sqlite:///{self.data}/recado.db",
            mcp_config_path=self.data / "mcp_servers.json",
        )
        self.sandbox = Sandbox(self.settings)
        self.workspace = self.settings.workspace_dir
        self.troubles: list[tuple[str, str]] = []

    def servers(self, limits: Limits = Limits()) -> McpServers:  # noqa: B008 (frozen)
        """Those that are installed, not started yet."""
        return McpServers(Configuration(self.settings, {}), self.sandbox, self.data, self, limits=limits)

    async def install(self) -> None:
        lanes = [
            [name for name in SERVERS if (name in ("time", "git", "sqlite")) is python]
            for python in (True, False)
        ]
        await asyncio.gather(*(self._install(names) for names in lanes))

    async def _install(self, names: Sequence[str]) -> None:
        installer = ServerInstaller(self.settings, self.sandbox)
        for name in names:
            kind = "npm" if SERVERS[name]["identifier"].startswith("@") else "pypi"
            package = {"registryType": kind, "transport": {"type": "stdio"}, **SERVERS[name]}
            offline = {"io.modelcontextprotocol.registry/publisher-provided": {"sandbox": {"network": False}}}
            entry = read_entry(
                {"name": f"io.github.test/mcp-server-{name}", "packages": [package], "_meta": offline}
            )
            assert entry is not None
            plan = await installer.propose(ServerRequest(entry, values=VALUES.get(name, {}), folder="."))
            assert plan.name == name
            await installer.commit(Approval(plan.subject, "p0"))

    async def server_changed(self, state: ServerState) -> None:
        self.troubles.append((state.name, state.reason))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """All seven, installed once."""
    made = Place(tmp_path_factory.mktemp("servers"))
    verdict = made.sandbox.probe()
    if not verdict.works:
        pytest.skip(verdict.reason)
    repository = made.workspace / "repository"
    repository.mkdir(parents=True)
    commit = [
        "-c",
        "user.name=Ana",
        "-c",
        "user.email=ana@example.com",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Begin",
    ]
    for command in (["init", "-q"], commit):
        subprocess.run(["git", *command], cwd=repository, check=True, timeout=30)
    asyncio.run(made.install())
    return made


async def test_seven_public_servers_are_run_together_called_and_stopped(place: Place) -> None:
    servers = place.servers()
    others = descendants(os.getpid())  # what earlier tests of this process forked their servers from
    try:
        await servers.refresh()
        states = await asyncio.gather(*(servers.settled(name, 60) for name in SERVERS))
        assert {one.name: (one.phase, one.reason) for one in states} == dict.fromkeys(SERVERS, ("ready", ""))
        assert all(one.tools for one in states)
        (place.workspace / "note.txt").write_text("of the workspace")

        async def call(name: str, /, **arguments: Any) -> str:
            tool = next(one for one in servers.tools if one.name == name)
            result = await tool.execute(arguments, ToolContext())
            assert isinstance(result, ToolResult)
            assert result.ok, result.to_json()
            return result.to_json()

        ana = {"name": "Ana", "entityType": "person", "observations": ["x"]}
        told = await asyncio.gather(
            call("mcp_everything_echo", message="heard"),
            call("mcp_filesystem_read_text_file", path=str(place.workspace / "note.txt")),
            call("mcp_memory_create_entities", entities=[ana]),
            call("mcp_time_convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"),
            call("mcp_git_git_log", repo_path=str(place.workspace / "repository")),
            call("mcp_sqlite_create_table", query="CREATE TABLE kept (word TEXT)"),
            call(
                "mcp_sequential-thinking_sequentialthinking",
                thought="x", nextThoughtNeeded=False, thoughtNumber=1, totalThoughts=1,
            ),
        )  # fmt: skip
        expected = ("heard", "of the workspace", "Ana", "21:00", "Begin", "created", "thoughtNumber")
        for text, wanted in zip(told, expected, strict=True):
            assert wanted in text
        kept = [path.name for path in (place.data / "mcp").glob("*/data/*")]
        assert {"memory_file_path", "db_path"} <= set(kept)
        running = descendants(os.getpid()) - others
        assert len(running) >= len(SERVERS)
    finally:
        await servers.stop()
    wait_for(lambda: not any(map(lives, running)), "a server outlived its stop")


async def test_pictures_objects_and_slow_work_of_a_server_come_through(place: Place) -> None:
    servers = place.servers(Limits(call=3.0))
    try:
        await servers.refresh()
        state = await servers.settled("everything", 60)
        assert (state.phase, state.revision) == ("ready", "2025-11-25")
        assert [name for name, _ in state.dropped] == ["simulate-research-query"]  # a task of the protocol

        async def call(name: str, **arguments: Any) -> ToolResult:
            tool = next(one for one in servers.tools if one.name == f"mcp_everything_{name}")
            return await tool.execute(arguments, ToolContext())

        picture = await call("get-tiny-image")
        assert [file.mime_type for file in picture.attachments] == ["image/png"]
        weather = await call("get-structured-content", location="New York")
        assert set(weather.data) == {"temperature", "conditions", "humidity"}
        assert (await call("trigger-long-running-operation", duration=5, steps=5)).ok
    finally:
        await servers.stop()


async def test_a_server_made_for_the_first_sdk_got_it(place: Place) -> None:
    record = json.loads((place.data / "mcp/sqlite/installed.json").read_text())
    assert record["older_sdk"]
    assert "mcp==1." in Path(record["folder"], "requirements.lock").read_text()


HOST = """
import asyncio, sys
from pathlib import Path
from tests.installs.test_real_servers import SERVERS, Place

async def main():
    servers = Place(Path(sys.argv[1])).servers()
    await servers.refresh()
    states = await asyncio.gather(*(servers.settled(name, 60) for name in SERVERS))
    print([one.name for one in states if one.phase != "ready"], flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_killed_host_leaves_none_of_them(place: Place) -> None:
    command = [sys.executable, "-c", HOST, str(place.data.parent)]
    host = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert host.stdout is not None
        assert next(line for line in host.stdout if line.startswith("[")) == "[]\n"  # logs stand before it
        running = descendants(host.pid)
        assert len(running) >= len(SERVERS)
    finally:
        host.kill()
        host.communicate()
    wait_for(lambda: not any(map(lives, running)), "a server outlived its host")
