"""Servers that misbehave: each is contained and named, and the others go on."""

import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from app.mcp.client import PAGES
from app.mcp.servers import Limits
from tests.mcp.manager import QUICK, SECONDS, Manager, descendants
from tests.standins.mcp_server import command, tool
from tests.world import until

pytestmark = pytest.mark.slow

MEGABYTES = {"megabytes": {"type": "integer"}}


async def test_a_line_of_50_megabytes_ends_its_server_and_takes_no_memory(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("flood", properties=MEGABYTES)]})
    await manager.start("two")
    tracemalloc.start()
    try:
        result = await manager.call("mcp_one_flood", megabytes=50)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.code == "OUTCOME_UNKNOWN"
    await until(lambda: "a message of more than 8 MiB" in manager.state("one").reason, "the reason")
    assert most < 30 * 2**20
    assert (await manager.call("mcp_two_echo", text="hola")).ok


COUNT = {"count": {"type": "integer"}}


async def test_a_server_that_asks_without_end_and_reads_no_answer_is_ended(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("pester", properties=COUNT)]})
    await manager.start("two")
    assert (await manager.call("mcp_one_pester", count=5000)).code == "OUTCOME_UNKNOWN"
    await until(lambda: "does not read what it is sent" in manager.state("one").reason, "the reason")
    assert (await manager.call("mcp_two_echo", text="hola")).ok


async def test_a_server_has_a_time_to_start_and_longer_where_it_is_fetched_first(tmp_path: Path) -> None:
    manager = Manager(tmp_path, Limits(connect=1.0, download=SECONDS, pauses=()))
    runner = tmp_path / "npx"
    runner.write_text('#!/bin/sh\nexec "$@"\n')
    runner.chmod(0o755)
    slow = tuple(command(seconds=1.5))
    manager.write("late", command=slow[0], args=slow[1:])
    assert (await manager.start("fetched", command=str(runner), args=slow)).phase == "ready"
    manager.write("silent", {"silent": ["tools/list"]})
    await manager.servers.refresh()
    for name in ("late", "silent"):
        await until(lambda name=name: manager.state(name).phase == "broken", "the end of its time")
        assert "it was not ready within 1 s" in manager.state(name).reason
    await manager.servers.stop()


async def test_a_server_that_answers_nothing_any_more_is_started_again(tmp_path: Path) -> None:
    manager = Manager(tmp_path, Limits(connect=4.0, call=1.0, pauses=QUICK.pauses))
    await manager.start("one", {"tools": [tool("freeze"), tool("pid")]})
    before = (await manager.call("mcp_one_pid")).data
    assert (await manager.call("mcp_one_freeze")).code == "OUTCOME_UNKNOWN"
    await until(lambda: manager.state("one").phase != "ready", "its end")
    assert (await manager.call("mcp_one_pid")).data != before
    await manager.servers.stop()


async def test_a_tool_without_a_schema_is_left_out_alone(manager: Manager) -> None:
    bad = [
        {"name": "no_schema", "description": "x"},
        {"name": "no_object", "inputSchema": {"type": "string"}},
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "twice", "inputSchema": {"type": "object"}},
        {"name": "twice", "inputSchema": {"type": "object"}},
        {"name": "titled", "title": 5, "inputSchema": {"type": "object"}},
        "no tool",
    ]
    state = await manager.start("one", {"tools": [tool("good"), *bad]})
    assert {"mcp_one_good", "mcp_one_twice"} <= set(state.tools)
    assert [name for name, _ in state.dropped].count("twice") == 1
    assert {"no_object", "?", "titled"} <= {name for name, _ in state.dropped}
    assert all(why for _, why in state.dropped)


@pytest.mark.parametrize("kind", ["endless", "loop"])
async def test_a_list_without_end_is_cut(manager: Manager, kind: str) -> None:
    state = await manager.start("one", {"cursor": kind})
    assert state.phase == "ready"
    assert len(state.tools) == (PAGES if kind == "endless" else 2)
    assert "the list has no end" in state.dropped[-1][1]


async def test_the_reason_of_a_death_is_taken_from_stderr_without_a_secret_or_half_of_one(
    manager: Manager, tmp_path: Path
) -> None:
    scenario = {
        "stderr": "loading\nError: the API key s3cret-0f-its-own is invalid",
        "starts": str(tmp_path / "starts"),
        "dies": list(range(1, 100)),
    }
    env = (("API_KEY", "s3cret-0f-its-own"),)
    state = await manager.start("one", scenario, env=env)
    assert state.phase == "broken"
    assert "Error: the API key … is invalid" in state.reason
    await until(lambda: manager.troubles, "being told")
    cut = "x" * 8170 + "\nError:  s3cret-0f-its-own\n" + "and so on " * 20
    half = await manager.start("half", scenario | {"stderr": cut, "starts": str(tmp_path / "half")}, env=env)
    assert half.phase == "broken"
    assert "s3c" not in half.reason + str(manager.troubles)
    assert "own" not in half.reason
    fixed = await manager.start("one", scenario | {"dies": []}, env=env)
    assert fixed.phase == "ready"
    await until(lambda: ("one", "") in manager.troubles, "the news that it is mended")


async def test_dying_at_every_call_sets_a_server_aside(manager: Manager) -> None:
    await manager.start("one", {"tools": [tool("crash")]})
    for _ in range(len(QUICK.pauses) + 1):
        assert (await manager.call("mcp_one_crash")).code == "OUTCOME_UNKNOWN"
        await manager.servers.settled("one", 10)
    await until(lambda: manager.state("one").phase == "broken", "its being set aside")
    assert not manager.servers.tools
    told = "set aside after 5 failures in a row"
    await until(lambda: manager.troubles[-1][1].startswith(told), "being told")


async def test_invalid_results_and_errors_become_results(manager: Manager) -> None:
    codes = {"broken": "ok", "fail": "TOOL_ERROR", "refuse": "BAD_REQUEST"}
    await manager.start("one", {"tools": [tool(name) for name in codes]})
    assert {name: (await manager.call(f"mcp_one_{name}")).code for name in codes} == codes


def cmdlines(pids: set[int]) -> str:
    return "\n".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in pids)


@pytest.mark.parametrize("sandboxed", [False, True])
async def test_no_secret_is_on_a_command_line(manager: Manager, tmp_path: Path, sandboxed: bool) -> None:
    if sandboxed and (refusal := manager.sandbox.refusal()):
        pytest.skip(refusal)
    fields: dict[str, Any] = {"sandboxed": sandboxed, "env": (("API_KEY", "s3cret-0f-its-own"),)}
    python, *args = command(tools=[tool("environment")])
    fields |= {"command": os.path.realpath(python), "args": tuple(args), "folder": str(Path(args[2]).parent)}
    state = await manager.start("one", **fields)
    assert state.phase == "ready", state.reason
    assert (await manager.read("mcp_one_environment"))["API_KEY"] == "s3cret-0f-its-own"
    shown = cmdlines(descendants(os.getpid()))
    assert "mcp_server.py" in shown
    assert "s3cret" not in shown
