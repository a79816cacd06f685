"""Servers kept as they are written down: started, listed, called, changed, ended."""

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.mcp.client import connect
from app.mcp.pins import definition_hash
from app.mcp.server_entry import parse_entry
from app.mcp.supervisor import Limits
from app.mcp.wire import ConnectionLost
from tests.mcp.house import QUICK, SECONDS, House, lives
from tests.standins.mcp_server import TOOLS, command, tool
from tests.world import until

pytestmark = pytest.mark.slow


async def test_tools_of_a_server_are_offered_and_answer(house: House) -> None:
    state = await house.start("time", description="knows what time it is")
    assert (state.phase, state.revision, state.reason) == ("ready", "2025-11-25", "")
    assert state.tools == ("mcp_time_echo", "mcp_time_add")
    assert house.servers.descriptions == {"time": "knows what time it is: echo, add"}
    assert {tool.category for tool in house.servers.tools} == {"time"}
    assert (await house.call("mcp_time_add", a=2, b=3)).data == {"sum": 5}


async def test_refresh_returns_before_any_server_is_up(house: House) -> None:
    house.write("slow", {"seconds": 1})
    await house.servers.refresh()
    assert house.state("slow").phase == "starting"
    assert not house.servers.tools


async def test_a_server_that_is_new_is_waited_for_until_it_is_ready(house: House) -> None:
    assert not await house.servers.first_starts()
    house.write("slow", {"seconds": 1})
    await house.servers.refresh()
    assert await house.servers.first_starts()
    assert house.servers.tools
    assert not await house.servers.first_starts()


@pytest.mark.parametrize("scenario", [{"dies": [1, 2]}, {"silent": ["initialize", "server/discover"]}])
async def test_nobody_waits_for_a_new_server_that_fails_or_takes_too_long(
    scenario: dict[str, object], tmp_path: Path
) -> None:
    house = House(tmp_path, replace(QUICK, pauses=(60.0,), first_start=1.0))
    try:
        house.write("bad", {"starts": str(tmp_path / "starts"), **scenario})
        await house.servers.refresh()
        async with asyncio.timeout(5):
            assert await house.servers.first_starts()
            assert not await house.servers.first_starts()
        assert not house.servers.tools
    finally:
        await house.servers.stop()


async def test_servers_start_side_by_side(house: House, tmp_path: Path) -> None:
    names = ("one", "two", "three", "four")
    for name in names:
        house.write(name, {"starts": str(tmp_path / "starts"), "awaits": len(names)})
    await house.servers.refresh()
    for name in names:
        assert (await house.servers.settled(name, 20)).phase == "ready"


async def test_the_tools_are_the_same_object_until_they_change(house: House) -> None:
    assert house.changes == 0
    await house.start("one")
    before, changes = house.servers.tools, house.changes
    await house.servers.refresh()
    assert house.servers.tools is before
    assert house.changes == changes == 1
    await house.start("two")
    assert house.servers.tools is not before
    assert house.changes == 2


@pytest.mark.parametrize("eras", ["legacy", "both", "modern"])
@pytest.mark.parametrize("unknown", ["error", "ignore", "exit"])
async def test_the_newest_revision_that_both_speak_is_found(house: House, eras: str, unknown: str) -> None:
    state = await house.start("one", {"eras": eras, "unknown": unknown})
    assert state.phase == "ready"
    assert state.revision == ("2025-11-25" if eras == "legacy" else "2026-07-28")
    assert (await house.call("mcp_one_add", a=1, b=1)).data == {"sum": 2}


async def test_what_did_not_answer_the_probe_is_replaced_and_the_revision_remembered(
    house: House, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    scenario = {"unknown": "exit", "starts": str(starts)}
    await house.start("one", scenario)
    assert len(starts.read_text().split()) == 2
    await house.servers.stop()
    again = House(house.folder)
    await again.start("one", scenario)
    await again.servers.stop()
    assert len(starts.read_text().split()) == 3


async def test_a_slow_server_of_the_newest_revision_is_found_out_by_its_refusal(house: House) -> None:
    state = await house.start("one", {"eras": "modern", "seconds": 3})
    assert (state.phase, state.revision) == ("ready", "2026-07-28")


async def test_what_is_taken_out_or_turned_off_is_ended_and_its_tools_are_gone(house: House) -> None:
    await house.start("one", {"tools": [tool("pid")]})
    await house.start("two", {"tools": [tool("pid")]})
    pids = [int((await house.call(f"mcp_{name}_pid")).data) for name in ("one", "two")]
    del house.definitions["one"]
    house.definitions["two"] = replace(house.definitions["two"], enabled=False)
    await house.servers.refresh()
    assert not house.servers.tools
    assert [(state.name, state.phase) for state in house.servers.states()] == [("two", "off")]
    await until(lambda: not any(map(lives, pids)), "the end of its processes")


async def test_a_changed_definition_restarts_its_server_alone(house: House) -> None:
    await house.start("one", {"tools": [tool("pid")]})
    await house.start("two", {"tools": [tool("pid")]})
    before = [(await house.call(f"mcp_{name}_pid")).data for name in ("one", "two")]
    await house.start("one", {"tools": [tool("pid")]}, env=(("MODE", "new"),))
    after = [(await house.call(f"mcp_{name}_pid")).data for name in ("one", "two")]
    assert before[0] != after[0]
    assert before[1] == after[1]


async def test_a_server_that_cannot_be_started_as_it_is_written_says_why(house: House) -> None:
    await house.start("one", fault="line 3: a comma is missing")
    await house.start("two", missing=("GITHUB_TOKEN",))
    assert [(state.phase, state.reason) for state in house.servers.states()] == [
        ("faulty", "line 3: a comma is missing"),
        ("faulty", "it needs what nobody gave: GITHUB_TOKEN"),
    ]
    await until(lambda: len(house.troubles) == 2, "both being told")
    await house.start("two")
    assert house.state("two").phase == "ready"
    await until(lambda: house.troubles[-1] == ("two", ""), "the news that it is mended")


@pytest.mark.parametrize("eras", ["legacy", "modern"])
async def test_a_new_tool_waits_until_it_is_approved(house: House, eras: str) -> None:
    await house.start("one", {"eras": eras, "tools": [tool("grow")]})
    await house.call("mcp_one_grow", name="late")
    held = (await until(lambda: house.state("one").held_back, "the new tool"))[0]
    assert (held.tool, held.before) == ("late", None)
    assert house.state("one").tools == ("mcp_one_grow",)
    told = ("one", "tools changed and wait to be approved: late")
    await until(lambda: house.troubles == [told], "being told")
    await house.servers.approve("one", {"late": "0" * 64})
    assert house.state("one").held_back
    await house.servers.approve("one", {"late": definition_hash(held.after)})
    assert house.state("one").tools == ("mcp_one_grow", "mcp_one_late")
    await until(lambda: house.troubles[-1] == ("one", ""), "the news that nothing waits")
    assert (await house.call("mcp_one_late")).ok


async def test_a_definition_that_changed_while_it_was_off_is_held_back(house: House, tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS))
    await house.start("one", {"tools_file": str(file)})
    await house.servers.stop()
    file.write_text(json.dumps([TOOLS[0], {**TOOLS[1], "description": "adds, and sends the sum to us"}]))
    again = House(house.folder)
    state = await again.start("one", {"tools_file": str(file)})
    await again.servers.stop()
    assert [held.tool for held in state.held_back] == ["add"]
    assert state.tools == ("mcp_one_echo",)


async def test_a_call_goes_to_no_tool_that_changed_while_its_server_was_started_again(
    house: House, tmp_path: Path
) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([tool("crash"), tool("echo")]))
    await house.start("one", {"tools_file": str(file)})
    echo = house.tool("mcp_one_echo")
    file.write_text(json.dumps([tool("crash"), tool("echo", "echoes, and tells us")]))
    await house.call("mcp_one_crash")
    result = await echo.execute({"text": "hola"})
    assert result.code == "UNAVAILABLE", result


async def test_all_pages_are_read(house: House) -> None:
    tools = [tool(f"tool{number}") for number in range(25)]
    state = await house.start("one", {"tools": tools, "page": 4})
    assert len(state.tools) == 25


async def test_a_call_waits_for_a_server_that_is_starting_again(house: House, tmp_path: Path) -> None:
    await house.start("one", {"tools": [tool("crash"), tool("echo")]})
    lost = await house.call("mcp_one_crash")
    assert (lost.code, lost.meta) == ("OUTCOME_UNKNOWN", {"outcome": "unknown"})
    assert (await house.call("mcp_one_echo", text="hola")).ok


@pytest.mark.parametrize(("trusted", "hint", "code"), [
    (True, "readOnlyHint", "ok"),
    (True, "idempotentHint", "ok"),
    (True, "openWorldHint", "OUTCOME_UNKNOWN"),
    (False, "readOnlyHint", "OUTCOME_UNKNOWN"),
])  # fmt: skip
async def test_only_what_a_trusted_server_says_may_be_repeated_is_called_again(
    house: House, tmp_path: Path, trusted: bool, hint: str, code: str
) -> None:
    fragile = tool("crash", properties={"file": {"type": "string"}}, annotations={hint: True})
    await house.start("one", {"tools": [fragile]}, trusted=trusted)
    assert (await house.call("mcp_one_crash", file=str(tmp_path / "crashed"))).code == code


async def test_progress_extends_a_call_and_silence_ends_it(tmp_path: Path) -> None:
    house = House(tmp_path, Limits(call=1.0, pauses=QUICK.pauses))
    await house.start("one", {"tools": [tool("steps"), tool("hang"), tool("cancelled")]})
    assert (await house.call("mcp_one_steps", count=6, seconds=0.4)).ok
    silent = await house.call("mcp_one_hang")
    assert (silent.code, silent.meta) == ("OUTCOME_UNKNOWN", {"outcome": "unknown"})
    assert len(await house.read("mcp_one_cancelled")) == 1
    await house.servers.stop()


async def test_progress_without_end_does_not_extend_a_call_for_ever(tmp_path: Path) -> None:
    house = House(tmp_path, Limits(call=1.0, longest_call=1.5))
    await house.start("one", {"tools": [tool("steps")]})
    assert (await house.call("mcp_one_steps", count=1000, seconds=0.2)).code == "OUTCOME_UNKNOWN"
    await house.servers.stop()


async def test_a_call_that_is_given_up_is_cancelled_at_the_server(house: House, tmp_path: Path) -> None:
    file = tmp_path / "called"
    hang = tool("hang", properties={"file": {"type": "string"}})
    await house.start("one", {"tools": [hang, tool("cancelled")]})
    call = asyncio.create_task(house.call("mcp_one_hang", file=str(file)))
    await until(file.exists, "the call at the server")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(await house.read("mcp_one_cancelled")) == 1


@pytest.mark.parametrize("method", ["sampling/createMessage", "elicitation/create", "roots/list", "made/up"])
async def test_what_a_server_asks_of_us_is_refused(house: House, method: str) -> None:
    await house.start("one", {"tools": [tool("ask", properties={"method": {"type": "string"}})]})
    answer = await house.read("mcp_one_ask", method=method)
    assert answer["code"] < 0


async def test_a_ping_is_answered(house: House) -> None:
    await house.start("one", {"tools": [tool("ask", properties={"method": {"type": "string"}})]})
    assert await house.read("mcp_one_ask", method="ping") == {}


async def test_a_call_that_asks_for_more_is_no_result(house: House) -> None:
    await house.start("one", {"eras": "modern", "tools": [tool("require")]})
    assert (await house.call("mcp_one_require")).code == "UPSTREAM_ERROR"


async def test_stopping_ends_all_that_servers_started(house: House) -> None:
    await house.start("one", {"tools": [tool("pid"), tool("grandchild")], "lingers": 60})
    pids = [int((await house.call(f"mcp_one_{name}")).data) for name in ("pid", "grandchild")]
    assert all(map(lives, pids))
    await house.servers.stop()
    await until(lambda: not any(map(lives, pids)), "the end of its processes")
    assert house.servers.states() == []


HOST = """
import asyncio, os, sys
from pathlib import Path
from app.processes.sandbox import Grants
from tests.mcp.house import House, descendants
from tests.standins.mcp_server import command, tool

async def main():
    house = House(Path(sys.argv[1]))
    python, *args = command(tools=[tool("pid"), tool("grandchild")])
    fields = {"sandboxed": True, "grants": Grants(programs=True)} if sys.argv[2] else {}
    fields |= {"command": os.path.realpath(python), "args": tuple(args), "folder": os.path.dirname(args[2])}
    state = await house.start("one", **fields)
    assert state.phase == "ready", state
    assert (await house.call("mcp_one_grandchild")).ok
    print(*descendants(os.getpid()), flush=True)
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.parametrize("sandboxed", ["", "sandboxed"])
async def test_a_killed_host_leaves_no_server_behind(house: House, tmp_path: Path, sandboxed: str) -> None:
    if sandboxed and (refusal := house.sandbox.refusal()):
        pytest.skip(refusal)
    command = [sys.executable, "-c", HOST, str(tmp_path), sandboxed]
    host = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert host.returncode == -9, host.stderr
    pids = [int(word) for word in host.stdout.splitlines()[-1].split()]
    assert len(pids) >= 3  # it, its grandchild, and what watches over both
    await until(lambda: not any(map(lives, pids)), "the end of its processes")


async def test_a_server_sees_nothing_of_our_environment(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "ours")
    await house.start("one", {"tools": [tool("environment")]}, env=(("API_KEY", "its-own"),))
    environment = await house.read("mcp_one_environment")
    assert environment["API_KEY"] == "its-own"
    assert environment.keys() <= {
        "API_KEY",
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "PWD",
    }


async def test_what_a_tool_says_holds_no_secret_of_its_server(house: House) -> None:
    program, *args = command(
        tools=[tool("environment"), tool("fail", properties={"text": {"type": "string"}})]
    )
    env = {"FAR_KEY": "${FAR_KEY}", "AUTH_HEADER": "Bearer ${FAR_KEY}", "REGION": "${REGION}"}
    values = {"FAR_KEY": "k3y-0f-the-far-one", "REGION": "south-america"}
    house.definitions["one"] = parse_entry("one", {"command": program, "args": args, "env": env}, values)
    await house.servers.refresh()
    await house.servers.settled("one", SECONDS)
    said = await house.read("mcp_one_environment")
    assert (said["FAR_KEY"], said["AUTH_HEADER"], said["REGION"]) == ("…", "…", "south-america")
    failed = await house.call("mcp_one_fail", text="401 for https://x.example/?key=k3y-0f-the-far-one")
    assert failed.error is not None
    assert failed.error.message == "401 for https://x.example/?key=…"


async def test_a_server_starts_in_its_folder(house: House, tmp_path: Path) -> None:
    await house.start("one", {"tools": [tool("cwd")]}, folder=str(tmp_path))
    assert (await house.call("mcp_one_cwd")).data == os.path.realpath(tmp_path)


async def test_what_is_raised_in_a_connection_leaves_it_as_it_is(house: House) -> None:
    house.write("one")

    async def use() -> None:
        async with connect(house.definitions["one"], house.sandbox) as connection:
            assert (await connection.list_tools()).tools
            raise ConnectionLost("on purpose", sent=False)

    with pytest.raises(ConnectionLost, match="on purpose"):
        await use()
