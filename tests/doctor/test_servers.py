"""The MCP servers: tried side by side, or as the running server has them; no secret in any line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.doctor.abilities import check_servers
from app.mcp.approved import Pins
from app.mcp.configuration import Secrets
from app.settings import Settings
from tests.doctor.house import found
from tests.standins.mcp_server import command, tool

PART = "MCP servers"
KEY = "hunter2-is-not-to-be-seen"


@pytest.fixture
def written(settings: Callable[..., Settings], tmp_path: Path) -> Callable[[Any], Settings]:
    """Settings whose file of servers holds this."""

    def write(content: Any) -> Settings:
        path = tmp_path / "data" / "mcp_servers.json"
        path.parent.mkdir(exist_ok=True)
        text = content if isinstance(content, str) else json.dumps({"mcpServers": content})
        path.write_text(text)
        return settings(mcp_config_path=path)

    return write


def entry(scenario: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    program, *args = command(**(scenario or {}))
    return {"command": program, "args": args, **more}


def test_each_server_is_really_tried_and_has_a_line(
    written: Callable[[Any], Settings], tmp_path: Path
) -> None:
    dead = {"dies": [1, 2, 3], "starts": str(tmp_path / "starts"), "stderr": f"API_KEY {KEY} is wrong\n"}
    chosen = written(
        {
            "good": entry(),
            "one": entry({"tools": [tool("echo")]}, env={"A": "${B:-c}"}, description="says"),
            "bad": entry({"tools": [tool("echo"), {"name": "no schema"}]}),
            "off": entry(enabled=False),
            "needs": entry(env={"K": "${TOKEN}"}),
            "dead": entry(dead, env={"API_KEY": "${API_KEY}"}),
            "literal": entry(env={"API_KEY": KEY}),
            "gone": {"command": "no-such-program"},
            "far": {"url": "http://127.0.0.1:1/mcp"},
            "faulty": {"command": "x", "type": "sse"},
        }
    )
    Secrets(chosen.data_dir).put("dead", "API_KEY", KEY)
    findings = list(check_servers(chosen))
    assert KEY not in repr(findings)
    lines = {(one.level, one.fact.split()[0].rstrip(":")): one for one in findings}
    assert "answers: 2 tools, protocol 2025-11-25, without a sandbox, for members" in lines["OK", "good"].fact
    assert "answers: 1 tools," in lines["OK", "one"].fact
    assert "tools that cannot be used: no schema: " in lines["WARN", "bad"].fact
    assert lines["OK", "off"].fact == "off is turned off"
    assert lines["WARN", "needs"].cure == "recado mcp secret needs TOKEN"
    assert "is wrong" in lines["FAIL", "dead"].fact
    assert "holds a secret as it is" in lines["WARN", "literal"].fact
    assert "recado mcp secret literal NAME" in lines["WARN", "literal"].cure
    assert "no-such-program is not found" in lines["FAIL", "gone"].cure
    assert "address" in lines["WARN", "far"].cure
    assert "does not work: the transport SSE" in lines["FAIL", "faulty"].fact
    assert not (chosen.data_dir / "mcp").exists(), "looking approves nothing"


def test_tools_that_are_held_back_are_named(written: Callable[[Any], Settings]) -> None:
    chosen = written({"good": entry({"tools": [tool("echo"), tool("erase")]})})
    Pins(chosen.data_dir, "good").compare([tool("echo")])
    good, held = check_servers(chosen)
    assert "1 tools," in good.fact
    assert (held.level, held.fact) == ("WARN", "good: new or changed, and held back: erase")
    assert "Decisions of the console" in held.cure


def test_a_broken_file_is_one_line_with_its_place(written: Callable[[Any], Settings]) -> None:
    (fault,) = found(written('{"mcpServers": {"one": {}, /* mine */}}'), PART)
    assert fault.level == "FAIL"
    assert "is not JSON: Expecting property name enclosed in double quotes: line 1 column 28" in fault.fact


def test_no_server_is_one_line(written: Callable[[Any], Settings]) -> None:
    (none,) = found(written({}), PART)
    assert (none.level, none.fact) == ("OK", "none")
