"""Servers kept as they are written down: started, listed, called, changed, ended."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.mcp.approved import definition_hash
from app.mcp.servers import Limits
from tests.mcp.manager import QUICK, Manager, lives
from tests.standins.mcp_server import command, tool
from tests.world import until

pytestmark = pytest.mark.slow


async def test_messages_do_not_wait_for_new_servers_that_fail_or_are_slow(tmp_path: Path) -> None:
    manager = Manager(tmp_path, replace(QUICK, pauses=(60.0,), first_start=1.0))
    manager.write("dies", {"starts": str(tmp_path / "starts"), "dies": [1, 2]})
    manager.write("silent", {"silent": ["initialize"]})
    await manager.servers.refresh()
    async with asyncio.timeout(5):
        assert await manager.servers.first_starts()
        assert not await manager.servers.first_starts()
    assert not manager.servers.tools
    await manager.servers.stop()


@pytest.mark.parametrize(
    ("eras", "revision"), [("legacy", "2025-11-25"), ("both", "2025-11-25"), ("modern", "2026-07-28")]
)
async def test_servers_with_and_without_a_handshake_are_used(
    manager: Manager, eras: str, revision: str
) -> None:
    state = await manager.start("one", {"eras": eras, "unknown": "exit"})
    assert (state.phase, state.revision) == ("ready", revision)
    assert (await manager.call("mcp_one_add", a=1, b=1)).data == {"sum": 2}


async def test_a_program_that_npx_left_half_installed_is_fetched_again(
    manager: Manager, tmp_path: Path
) -> None:
    cache, npx = tmp_path / "cache", tmp_path / "npx"
    program = cache / "_npx" / "0123456789abcdef"
    program.mkdir(parents=True)
    npx.write_text(
        "#!/bin/sh\n"
        f"if [ -e {program} ]; then\n"
        f"  echo 'ERR_MODULE_NOT_FOUND: no package zod imported from {program}/node_modules/x.js' >&2\n"
        '  exit 1\nfi\nexec "$@"\n'
    )
    npx.chmod(0o755)
    env = (("npm_config_cache", str(cache)),)
    state = await manager.start("half", command=str(npx), args=tuple(command()), env=env)
    assert state.phase == "ready"


async def test_a_server_that_is_removed_or_turned_off_ends_with_its_tools(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("pid")]})
    await manager.start("two", {"tools": [tool("pid")]})
    pids = [int((await manager.call(f"mcp_{name}_pid")).data) for name in ("one", "two")]
    del manager.definitions["one"]
    manager.definitions["two"] = replace(manager.definitions["two"], enabled=False)
    await manager.servers.refresh()
    assert not manager.servers.tools
    assert [(state.name, state.phase) for state in manager.servers.states()] == [("two", "off")]
    await until(lambda: not any(map(lives, pids)), "the end of its processes")


async def test_a_faulty_definition_is_reported_and_not_started(manager: Manager) -> None:
    await manager.start("one", fault="line 3: a comma is missing")
    await manager.start("two", missing=("GITHUB_TOKEN",))
    assert [(state.phase, state.reason) for state in manager.servers.states()] == [
        ("broken", "line 3: a comma is missing"),
        ("broken", "it needs what nobody gave: GITHUB_TOKEN"),
    ]
    await until(lambda: len(manager.troubles) == 2, "both being told")
    await manager.start("two")
    assert manager.state("two").phase == "ready"
    await until(lambda: manager.troubles[-1] == ("two", ""), "the news that it is mended")


async def test_a_new_tool_waits_until_it_is_approved(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("grow")]})
    await manager.call("mcp_one_grow", name="late")
    held = (await until(lambda: manager.state("one").held_back, "the new tool"))[0]
    assert (held.tool, held.before) == ("late", None)
    assert manager.state("one").tools == ("mcp_one_grow",)
    told = ("one", "held back: late")
    await until(lambda: told in manager.troubles, "being told")
    await manager.servers.approve("one", {"late": "0" * 64})
    assert manager.state("one").held_back
    await manager.servers.approve("one", {"late": definition_hash(held.after)})
    assert manager.state("one").tools == ("mcp_one_grow", "mcp_one_late")
    await until(lambda: manager.troubles[-1] == ("one", ""), "the news that nothing waits")
    assert (await manager.call("mcp_one_late")).ok


async def test_a_tool_that_changed_during_a_restart_is_not_called(manager: Manager, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([tool("crash"), tool("echo")]))
    await manager.start("one", {"tools_file": str(file)})
    echo = manager.tool("mcp_one_echo")
    file.write_text(json.dumps([tool("crash"), tool("echo", "echoes, and tells us")]))
    await manager.call("mcp_one_crash")
    result = await echo.execute({"text": "hola"})
    assert result.code == "UNAVAILABLE", result


async def test_progress_extends_a_call_and_silence_ends_it(tmp_path: Path) -> None:
    manager = Manager(tmp_path, Limits(call=1.0, pauses=QUICK.pauses))
    await manager.start("one", {"tools": [tool("steps"), tool("hang"), tool("cancelled")]})
    assert (await manager.call("mcp_one_steps", count=6, seconds=0.4)).ok
    silent = await manager.call("mcp_one_hang")
    assert (silent.code, silent.meta) == ("OUTCOME_UNKNOWN", {"outcome": "unknown"})
    assert len(await manager.read("mcp_one_cancelled")) == 1
    await manager.servers.stop()


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(manager: Manager, tmp_path: Path) -> None:
    file = tmp_path / "called"
    hang = tool("hang", properties={"file": {"type": "string"}})
    await manager.start("one", {"tools": [hang, tool("cancelled")]})
    call = asyncio.create_task(manager.call("mcp_one_hang", file=str(file)))
    await until(file.exists, "the call at the server")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(await manager.read("mcp_one_cancelled")) == 1


async def test_of_a_servers_requests_only_a_ping_is_answered(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("ask", properties={"method": {"type": "string"}})]})
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "made/up"):
        assert (await manager.read("mcp_one_ask", method=method))["code"] < 0
    assert await manager.read("mcp_one_ask", method="ping") == {}


async def test_stopping_ends_all_that_servers_started(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("pid"), tool("grandchild")], "lingers": 60})
    pids = [int((await manager.call(f"mcp_one_{name}")).data) for name in ("pid", "grandchild")]
    assert all(map(lives, pids))
    await manager.servers.stop()
    await until(lambda: not any(map(lives, pids)), "the end of its processes")
    assert manager.servers.states() == []


HOST = """
import asyncio, os, sys
from pathlib import Path
from typing import Any
from app.processes.sandbox import Grants
from tests.mcp.manager import Manager, descendants
from tests.standins.mcp_server import command, tool

async def main():
    manager = Manager(Path(sys.argv[1]))
    python, *args = command(tools=[tool("pid"), tool("grandchild")])
    fields = {"sandboxed": True, "grants": Grants(programs=True)} if sys.argv[2] else {}
    fields |= {"command": os.path.realpath(python), "args": tuple(args), "folder": os.path.dirname(args[2])}
    state = await manager.start("one", **fields)
    assert state.phase == "ready", state
    assert (await manager.call("mcp_one_grandchild")).ok
    print(*descendants(os.getpid()), flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.parametrize("sandboxed", ["", "sandboxed"])
async def test_a_killed_host_leaves_no_server(manager: Manager, tmp_path: Path, sandboxed: str) -> None:
    if sandboxed and (refusal := manager.sandbox.refusal()):
        pytest.skip(refusal)
    command = [sys.executable, "-c", HOST, str(tmp_path), sandboxed]
    host = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert host.returncode == -9, host.stderr
    pids = [int(word) for word in host.stdout.splitlines()[-1].split()]
    assert len(pids) >= 3  # it, its grandchild, and what watches over both
    await until(lambda: not any(map(lives, pids)), "the end of its processes")
