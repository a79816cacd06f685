"""Our tools at /mcp, over HTTP against a running server, as another program's host uses them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from app.main import create_app
from app.settings import Settings
from app.tools import Tool
from tests.test_dropped_skills import drop
from tests.world import Graph, Server, text_body, until, wait_for, world

pytestmark = pytest.mark.slow

TOKEN = "the-token-of-the-test"
LOCAL = {"Authorization": f"Bearer {TOKEN}"}
ERAS = ("legacy", "auto")
"""With a handshake, and the newest that both sides speak."""
JSON_RPC = {**LOCAL, "Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
LAMPS = '''
import time
from pathlib import Path


def switch_lamp(room: str) -> str:
    """Switches a lamp."""
    with Path("switched").open("a") as log:
        log.write(room + "\\n")
    while room in ("cellar", "attic", "loft"):
        time.sleep(0.1)
    return f"lit: {room}"
'''

World = Callable[..., tuple[Server, Graph]]


@asynccontextmanager
async def connected(server: Server, era: str) -> AsyncIterator[Client]:
    """A host of that era, which holds the token."""
    async with (
        httpx2.AsyncClient(headers=LOCAL, timeout=30, trust_env=False, verify=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http), mode=era) as client,
    ):
        yield client


async def call(server: Server, tool: str, era: str = "legacy", **arguments: Any) -> dict[str, Any]:
    """Call a tool and return the result in our own form."""
    async with connected(server, era) as client:
        result = await client.call_tool(tool, arguments)
    structured: dict[str, Any] = result.structured_content
    assert result.is_error is not structured["ok"]
    assert json.loads(result.content[0].text) == structured
    return structured


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


@pytest.fixture
def lamps(make_world: World, skills: Path) -> Server:
    """A server whose only tool of a person's own switches lamps, and must not be repeated."""
    drop(skills, "lamps", LAMPS)
    return make_world(SKILLS_DIR=str(skills), ADMIN_TOKEN=TOKEN)[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for the tests that leave nothing in it."""
    for made, _ in world(tmp_path_factory.mktemp("mcp"), ADMIN_TOKEN=TOKEN):
        yield made.start()


def test_without_the_token_nobody_comes_in(server: Server) -> None:
    for method, sent in (
        ("GET", ""),
        ("POST", "Bearer wrong"),
        ("POST", f"Basic {TOKEN}"),
        ("DELETE", "Bearer"),
    ):
        answer = server.http.request(method, f"/mcp?token={TOKEN}", headers={"Authorization": sent})
        assert answer.status_code == 401, sent
        assert answer.headers["www-authenticate"] == "Bearer"


def test_pages_of_other_sites_are_refused_even_with_the_token(server: Server) -> None:
    proxied = {"Host": "evil.example:8000", "X-Forwarded-For": "203.0.113.9"}
    for headers, status in (
        ({}, 200),
        ({"Origin": "http://localhost:6274"}, 200),
        ({"Origin": "http://[::1]:6274"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Host": "evil.example:8000"}, 403),
        (proxied, 200),
        ({**proxied, "Origin": "http://evil.example"}, 403),
    ):
        answer = server.http.post("/mcp", json=HELLO, headers={**JSON_RPC, **headers})
        assert answer.status_code == status, headers


def test_a_request_has_a_limit(server: Server) -> None:
    hello = {**HELLO, "params": {**HELLO["params"], "note": "x" * 1024 * 1024}}
    assert server.http.post("/mcp", json=hello, headers=JSON_RPC).status_code == 413


@pytest.mark.parametrize("era", ERAS)
async def test_both_eras_list_and_call(server: Server, era: str) -> None:
    async with connected(server, era) as client:
        assert client.server_info.name == "recado"
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        result = await client.call_tool("calculate", {"expression": "6*7"})
        with pytest.raises(MCPError, match="Unknown tool: no_such_tool"):
            await client.call_tool("no_such_tool", {})
        wrong = await client.call_tool("calculate", {"expression": 7, "colour": "red"})
    assert result.structured_content["data"]["result"] == "42"
    assert wrong.structured_content["error"]["code"] == "BAD_REQUEST"
    assert tools["calculate"].input_schema["required"] == ["expression"]
    assert "show_health" in tools, "what is for owners is there"
    hints = {name: tool.annotations.model_dump(exclude_none=True) for name, tool in tools.items()}
    assert hints["search_tools"]["read_only_hint"]
    assert hints["write_file"]["destructive_hint"]
    assert not hints["save_note"]["read_only_hint"]
    assert not hints["save_note"]["idempotent_hint"], "no caller gives our key"
    assert sum(hint["read_only_hint"] for hint in hints.values()) >= 30
    assert tools["set_reminder"].title == "Set reminder"
    assert tools["calculate"].output_schema["required"] == ["ok"]


def test_sessions_are_bounded_until_they_are_ended(server: Server) -> None:
    answers = [server.http.post("/mcp", json=HELLO, headers=JSON_RPC) for _ in range(260)]
    opened = [answer for answer in answers if answer.status_code == 200]
    assert 240 <= len(opened) <= 256
    assert {answer.status_code for answer in answers[len(opened) :]} == {503}
    assert server.http.get("/health").status_code == 200
    for answer in opened:
        ended = {**JSON_RPC, "Mcp-Session-Id": answer.headers["mcp-session-id"]}
        assert server.http.delete("/mcp", headers=ended).status_code == 200
    assert server.http.post("/mcp", json=HELLO, headers=JSON_RPC).status_code == 200


def test_each_revision_with_a_handshake_is_spoken(server: Server) -> None:
    for version in ("2025-03-26", "2025-06-18", "2025-11-25"):
        hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": version}}
        answer = server.http.post("/mcp", json=hello, headers=JSON_RPC)
        told = json.loads(answer.text.partition("data: ")[2])["result"]
        assert (told["protocolVersion"], told["capabilities"]) == (version, {"tools": {"listChanged": False}})


async def test_what_needs_a_yes_is_refused_and_says_what_can_be_done(server: Server) -> None:
    refused = await call(server, "write_file", path="plan.txt", content="x")
    assert refused["error"]["code"] == "NO_TTY"
    assert "CONFIRMATION_MODE=yolo" in refused["error"]["message"]
    assert not [*server.folder.rglob("plan.txt")]


async def test_in_yolo_mode_installs_are_not_among_the_tools(make_world: World) -> None:
    server, _ = make_world(ADMIN_TOKEN=TOKEN, CONFIRMATION_MODE="yolo")
    assert (await call(server, "write_file", path="plan.txt", content="x"))["ok"]
    async with connected(server, "legacy") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        for tool, arguments in (
            ("install_skill_from_url", {"url": "https://site.example/skill"}),
            ("remove_skill", {"name": "notes"}),
        ):
            assert tool not in names
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(tool, arguments)


async def test_tools_of_other_servers_are_not_passed_on(tmp_path: Path) -> None:
    settings = Settings(
        _env_file=None, DATABASE_URL=f"sqlite:///{tmp_path}/recado.db", ADMIN_TOKEN=TOKEN, SKILLS_DIR=tmp_path
    )
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        theirs = Tool(
            "mcp_clock_now", "Tells the time.", {"type": "object"}, lambda: "noon", category="clock"
        )
        app.state.assistant.abilities.registry.register(theirs)
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            headers = {**JSON_RPC, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
            meta = {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
            told = (await http.post("/mcp", json=ask, headers=headers)).json()
    names = {tool["name"] for tool in told["result"]["tools"]}
    assert "calculate" in names
    assert not {"mcp_clock_now", "load_skill", "read_skill_file"} & names


async def test_calls_are_an_owners_before_and_after_the_owner_wrote(make_world: World) -> None:
    server, graph = make_world(ADMIN_TOKEN=TOKEN)
    assert (await call(server, "save_note", text="the boiler hums"))["ok"]
    await asyncio.to_thread(graph.say, "p0", "lista mis notas")
    assert "the boiler hums" in await asyncio.to_thread(graph.reply, "p0")
    await asyncio.to_thread(graph.say, "p1", "lista mis notas")
    assert "the boiler hums" not in await asyncio.to_thread(graph.reply, "p1")
    assert (await call(server, "save_note", "auto", text="the tap drips"))["ok"]
    notes = await call(server, "list_notes")
    assert "the boiler hums" in str(notes)
    assert "the tap drips" in str(notes)
    assert notes["meta"]["outside"], "a model elsewhere may have written them"
    soon = (datetime.now(UTC) + timedelta(seconds=3)).isoformat(timespec="seconds")
    told = await call(server, "set_reminder", text="the kettle", when=soon)
    assert told["ok"], told
    assert "kettle" in await asyncio.to_thread(graph.reply, "p0", 2)


async def test_without_any_owner_the_calls_have_a_person_of_their_own(make_world: World) -> None:
    server, _ = make_world(ADMIN_TOKEN=TOKEN, OWNER_PHONE_NUMBERS="")
    assert (await call(server, "save_note", text="the boiler hums"))["ok"]
    assert "the boiler hums" in str(await call(server, "list_notes"))
    (person,) = server.rows("SELECT realm, role FROM people")
    assert tuple(person) == ("terminal", "owner")
    server.post(text_body("wamid.1", "hola", phone="12125550001"))
    wait_for(lambda: server.rows("SELECT 1 FROM turns WHERE outcome = 'answered'"), "an answer")
    assert "the boiler hums" in str(await call(server, "list_notes")), "a member does not become the owner"


async def test_each_call_is_kept_with_what_it_came_to_and_counted(lamps: Server) -> None:
    assert (await call(lamps, "switch_lamp", room="hall"))["data"] == "lit: hall"
    await call(lamps, "switch_lamp", colour="red")
    rows = lamps.rows(
        "SELECT t.state, t.outcome, j.kind, j.payload FROM turns t JOIN journal j ON"
        " j.turn_id = t.id ORDER BY j.at, j.kind"
    )
    assert [(row["state"], row["outcome"], row["kind"]) for row in rows] == [
        ("done", "mcp", "intent"),
        ("done", "mcp", "tool"),
        ("done", "mcp", "tool"),
    ]
    intent, result, refused = (json.loads(row["payload"]) for row in rows)
    assert intent == {"tool": "switch_lamp", "arguments": {"room": "hall"}}
    assert json.loads(result["result"])["data"] == "lit: hall"
    assert refused["arguments"] == {"colour": "red"}
    counted = lamps.rows("SELECT code, calls FROM tool_statistics WHERE tool = 'switch_lamp' ORDER BY code")
    assert [tuple(row) for row in counted] == [("BAD_REQUEST", 1), ("ok", 1)]
    metrics = lamps.http.get("/metrics").text
    assert 'tool="switch_lamp"' in metrics
    assert not lamps.rows("SELECT 1 FROM uncertain_calls")


async def _begin(server: Server, era: str, room: str) -> None:
    """A call that does not end by itself, and is given up by its caller once it has begun."""
    before = len(server.rows("SELECT 1 FROM journal WHERE kind = 'intent'"))
    async with connected(server, era) as client:
        running = asyncio.create_task(client.call_tool("switch_lamp", {"room": room}))
        await until(
            lambda: len(server.rows("SELECT 1 FROM journal WHERE kind = 'intent'")) > before, "the intent"
        )
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_call_given_up_or_cut_off_by_a_crash_does_not_run_again_unasked_and_a_stop_ends_all(
    lamps: Server,
) -> None:
    await asyncio.wait_for(_begin(lamps, "auto", "cellar"), 20)
    again = await asyncio.wait_for(call(lamps, "switch_lamp", "auto", room="cellar"), 20)  # it runs for 30 s
    assert again["error"]["code"] == "NO_TTY"
    assert (await call(lamps, "switch_lamp", "auto", room="hall"))["ok"], "another call is not meant"

    begun = asyncio.create_task(_begin(lamps, "legacy", "attic"))
    await until(lambda: len(lamps.rows("SELECT 1 FROM uncertain_calls")) == 2, "the call")
    lamps.kill()
    await asyncio.gather(begun, return_exceptions=True)
    await asyncio.to_thread(lamps.start)
    assert (await call(lamps, "switch_lamp", room="attic"))["error"]["code"] == "NO_TTY"

    async with connected(lamps, "legacy") as client:
        running = asyncio.create_task(client.call_tool("switch_lamp", {"room": "loft"}))
        await until(lambda: len(lamps.rows("SELECT 1 FROM uncertain_calls")) == 3, "the third call")
        assert await asyncio.to_thread(lamps.stop) == 0
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert "stopping took too long" not in lamps.log
    assert "Traceback" not in lamps.log
