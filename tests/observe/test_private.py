"""A word of each person goes through everything that fails: no log and nobody else's prompt ever holds it."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from tests.standins import mcp_server
from tests.standins.model import calls, is_classifier, last_user_text
from tests.world import wait_for

SKILL = """---
name: leaky
description: Shouts, explodes and dies
---
"""
TOOLS = '''
import os
import sys


def shout(text: str) -> str:
    """Prints a text."""
    print(text, file=sys.stderr, flush=True)
    return "done"


def explode(text: str) -> str:
    """Raises an exception."""
    raise RuntimeError(f"no {text} here")


def die(text: str) -> str:
    """Ends its process."""
    print(f"error: last words {text}", flush=True)
    os._exit(3)
'''
STEPS = ("shout", "explode", "die", "mcp_mouth_mutter", "mcp_mouth_crash", "model")


def word(number: int) -> str:
    return f"canary{number}zq"


def play(body: dict[str, Any]) -> Any:
    """Does what the message names with its word; "model" fails and says the whole prompt again."""
    said = last_user_text(body)
    step, text = re.findall(r"(\S+) with (\S+)", said)[-1]
    if step == "model":
        return Response(json.dumps({"error": {"message": f"invalid: {said}"}}), status_code=400)
    if is_classifier(body):
        return json.dumps({"categories": ["leaky", "mouth"], "phrases": [step.replace("_", " ")]})
    if body["messages"][-1]["role"] == "tool":
        return "I did it"
    return calls((step, {"text": text}))


@pytest.mark.slow
def test_no_word_of_a_person_reaches_a_log_or_anothers_prompt(tmp_path: Path, make_world, model) -> None:
    skill = tmp_path / "own" / "leaky"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "scripts" / "tools.py").write_text(TOOLS)
    text = {"text": {"type": "string"}}
    first, *rest = mcp_server.command(
        tools=[mcp_server.tool("mutter", "says", text), mcp_server.tool("crash", "ends", text)]
    )
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"mouth": {"command": first, "args": rest}}}))
    model_server = model(play)
    server, graph = make_world(
        model=model_server,
        SKILLS_DIR=str(tmp_path / "own"),
        MCP_CONFIG_PATH=str(config),
        CONFIRMATION_MODE="yolo",
        LOG_LEVEL="DEBUG",
        SWEEP_SECONDS="0.3",
    )
    people = range(3)
    for count, step in enumerate(STEPS, 1):
        for number in people:
            graph.say(f"p{number}", f"please {step} with {word(number)}")
            graph.reply(f"p{number}", count)
    graph.faults(fail=[{"code": 131009, "details": f"bad parameter {word(0)}"}])
    graph.say("p0", f"please shout with {word(0)}")
    wait_for(lambda: server.rows("SELECT 1 FROM outbox WHERE state = 'failed'"), "the refused send")
    words = [word(number) for number in people]
    results = [
        json.loads(row["payload"])["result"]
        for row in server.rows("SELECT payload FROM journal WHERE kind = 'tool'")
    ]
    print(*results, sep="\n")
    print(server.log[-6000:])
    assert "a skill's worker failed" in server.log
    assert "send refused" in server.log
    assert [one for one in words if one in server.log] == []
    for body in model_server.requests:
        assert len({one for one in words if one in json.dumps(body)}) == 1
    folder = server.folder / "private"
    (kept,) = folder.glob("*.jsonl")
    assert kept.stat().st_mode & 0o077 == 0
    assert all(one in kept.read_text() for one in words)
    elsewhere = {path for path in server.folder.rglob("*") if path.is_file() and path != kept}
    elsewhere = {path for path in elsewhere if not path.name.startswith("recado.db")}
    assert [path for path in elsewhere if any(one.encode() in path.read_bytes() for one in words)] == []
    kept.rename(folder / f"{time.strftime('%Y-%m-%d', time.gmtime(time.time() - 9 * 86_400))}.jsonl")
    wait_for(lambda: not list(folder.iterdir()), "the end of what is a week old")
