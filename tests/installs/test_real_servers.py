"""Public servers of npm and PyPI, each asked for in a chat, approved by a button, and then used."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mailer import asked, press, questions
from tests.mcp.manager import descendants, lives
from tests.standins.model import calls, is_classifier, last_user_text
from tests.standins.registry import RegistryServer, own_entries
from tests.tides import say
from tests.world import Graph, Server, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]

INSTALL_SECONDS = 200.0
# How this machine reaches npm and PyPI.
NETWORK = re.compile(
    "NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|PIP_CERT|PIP_INDEX_URL|npm_config_registry"
    "|https?_proxy|no_proxy",
    re.IGNORECASE,
)
PROJECT = "io.github.modelcontextprotocol"
ANA = {"name": "Ana", "entityType": "person", "observations": ["x"]}
THOUGHT = {"thought": "x", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
# By name here (a skill is named memory): name in the registry, folder, tool, its arguments, its answer.
SERVERS: dict[str, tuple[str, str, str, dict[str, Any], str]] = {
    "everything": ("server-everything", "", "echo", {"message": "heard"}, "heard"),
    "filesystem": (
        "server-filesystem", "papers", "read_text_file",
        {"path": "{workspace}/papers/note.txt"}, "of the folder"
    ),
    "memory-2": ("server-memory", "", "create_entities", {"entities": [ANA]}, "Ana"),
    "sequential-thinking": ("server-sequential-thinking", "", "sequentialthinking", THOUGHT, "thoughtNumber"),
    "time": ("mcp-server-time", "", "convert_time", NOON, "21:00"),
    "git": ("mcp-server-git", "repository", "git_log", {"repo_path": "{workspace}/repository"}, "Begin"),
    "sqlite": (
        "mcp-server-sqlite", "", "create_table", {"query": "CREATE TABLE kept (word TEXT)"}, "created"
    ),
}  # fmt: skip


def play(body: dict[str, Any]) -> Any:
    """A model that makes the one call that a message asks for."""
    said = last_user_text(body).splitlines()[-1]
    wanted = re.search(r"please ([\w-]+) (\{.*\})", said)
    if is_classifier(body):
        named = [name for name in SERVERS if f"mcp_{name}_" in said]
        return json.dumps({"categories": named or ["expand"], "phrases": [said]})
    newest = max(n for n, message in enumerate(body["messages"]) if message["role"] == "user")
    results = [one["content"] for one in body["messages"][newest:] if one["role"] == "tool"]
    if results or not wanted:
        return f"result: {results[-1] if results else said}"
    return calls((wanted[1], json.loads(wanted[2])))


@pytest.fixture
def chat(make_world: Any, model: Any) -> Iterator[tuple[Server, Graph]]:
    """A server with empty caches of npm and pip, whose registry has entries of the real form."""
    registry = RegistryServer(own_entries())
    network = {name: text for name, text in os.environ.items() if NETWORK.fullmatch(name)}
    server, graph = make_world(start=False, model=model(play), **registry.settings, **network)
    workspace = server.folder / "workspace"
    (workspace / "papers").mkdir(parents=True)
    (workspace / "papers" / "note.txt").write_text("of the folder")
    (workspace / "repository").mkdir()
    ana = ("-c", "user.name=Ana", "-c", "user.email=ana@example.com")
    for command in (("init", "-q"), (*ana, "commit", "-q", "--allow-empty", "-m", "Begin")):
        subprocess.run(["git", *command], cwd=workspace / "repository", check=True, timeout=30)
    server.start()
    yield server, graph
    registry.stop()


@pytest.mark.parametrize("name", SERVERS)
def test_a_public_server_is_installed_by_asking_used_at_the_next_message_and_dies_with_ours(
    name: str, chat: tuple[Server, Graph]
) -> None:
    server, graph = chat
    package, folder, tool, arguments, answer = SERVERS[name]
    say(graph, "p0", "install_mcp_server", name=f"{PROJECT}/{package}", folder=folder)
    assert not list((server.folder / "mcp").glob("*/package-*"))
    press(graph, "p0", asked(graph, "p0"), "Install+trust")
    wait_for(lambda: f"✓ Installed: {name} " in "".join(graph.texts("p0")), "the install", INSTALL_SECONDS)
    written = json.dumps(arguments).replace("{workspace}", str(server.folder / "workspace"))
    assert answer in _result(graph, f"mcp_{name}_{tool}", json.loads(written))
    if name == "everything":
        _result(graph, "mcp_everything_get-tiny-image", {})
        wait_for(lambda: any("image" in one["body"] for one in graph.sends("p0")), "the picture")
    assert server.process is not None
    running = descendants(server.process.pid)
    assert running
    server.kill()
    wait_for(lambda: not any(map(lives, running)), "a server outlived its host")


def _result(graph: Graph, tool: str, arguments: dict[str, Any]) -> str:
    """Have a tool called, with a yes if it asks: trust is for tools that say they only read."""
    count = len(questions(graph, "p0"))

    def results() -> list[str]:
        return [text for text in graph.texts("p0") if text.startswith("result: {")]

    before = len(results())
    say(graph, "p0", tool, **arguments)
    wait_for(lambda: len(results()) > before or len(questions(graph, "p0")) > count, f"something of {tool}")
    if len(questions(graph, "p0")) > count:
        press(graph, "p0", asked(graph, "p0", count + 1), "Yes")
    return str(wait_for(lambda: results()[before:], f"the result of {tool}")[0])
