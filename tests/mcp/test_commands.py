"""`recado mcp` in the shell: without a server, and beside one that runs."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.mcp.configuration import Secrets
from tests.doctor.house import kept_environment
from tests.standins.mcp_server import command, tool
from tests.standins.registry import RegistryServer, entry
from tests.test_cli import House, Terminal
from tests.world import Server, wait_for

pytestmark = pytest.mark.slow

SECRET = "hunter2-is-not-to-be-seen"


class Shell(House):
    """The command in a folder of its own, and the files it writes."""

    @property
    def file(self) -> Path:
        return self.folder / "data" / "mcp_servers.json"

    @property
    def entries(self) -> Any:
        return json.loads(self.file.read_text())["mcpServers"]

    def mcp(self, *arguments: str, typed: str = "", status: int = 0, **variables: str) -> str:
        """Run the command and return what it says; a fault is one clear line."""
        with kept_environment(self.folder, {**self.environment, **variables}):
            done = CliRunner().invoke(app, ["mcp", *arguments], input=typed)
        assert done.exit_code == status, done.output
        assert isinstance(done.exception, SystemExit | None)
        if status == 1:
            assert len(done.stderr.splitlines()) == 1, done.stderr
            assert done.stderr.startswith("recado: ")
        return done.output

    def add(self, name: str, **scenario: Any) -> None:
        self.mcp("add", name, "--", *command(**scenario))

    def listed(self) -> list[dict[str, Any]]:
        found = json.loads(self.mcp("list", "--json"))["servers"]
        assert isinstance(found, list)
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    remote = {"type": "streamable-http", "url": "https://mcp.example.com/mcp"}
    keyed = {**remote, "headers": [{"name": "X-Api-Key", "isRequired": True, "isSecret": True}]}
    served = RegistryServer(
        [
            entry("com.example/tides", "Tide tables of every harbour"),
            entry("com.example/weather", "Weather of every harbour", remotes=[keyed]),
            entry("com.example/old", "Tide tables over SSE", remotes=[{**remote, "type": "sse"}]),
        ]
    )
    yield served
    served.stop()


def test_from_nothing_to_a_server_that_has_what_it_needs(shell: Shell) -> None:
    assert "There are no MCP servers" in shell.mcp("list")
    added = shell.mcp("add", "files", "-e", "KEY=${TOKEN}", "-e", "A=b=c", "--", *command())
    assert "recado mcp secret files TOKEN" in added
    program, *args = command()
    assert shell.entries == {
        "files": {"command": program, "args": args, "env": {"KEY": "${TOKEN}", "A": "b=c"}}
    }
    assert shell.file.stat().st_mode & 0o777 == 0o600
    assert re.search(
        r"^files +needs TOKEN: recado mcp secret files TOKEN +- +you +- +owners$", shell.mcp("list"), re.M
    )
    said = shell.mcp("secret", "files", "TOKEN", typed=f"{SECRET}\n")
    assert SECRET not in said + shell.file.read_text() + shell.mcp("list", "--json")
    assert Secrets(shell.folder / "data").get("files") == {"TOKEN": SECRET}
    (one,) = shell.listed()
    assert (one["phase"], one["missing"], one["audience"]) == ("stopped", [], "owners")
    assert "Removed files" in shell.mcp("remove", "files")
    assert shell.entries == {}
    assert Secrets(shell.folder / "data").get("files") == {}
    assert "there is no server 'files'; there is none yet" in shell.mcp("remove", "files", status=1)


def test_what_makes_no_sense_is_a_usage_error(shell: Shell) -> None:
    for arguments in (
        "add files",
        "add files --url https://example.org --registry com.example/x",
        "add files --url https://example.org -e A=b",
        "add files --yes -- npx server",
        "secret files",
        "nothing",
    ):
        shell.mcp(*arguments.split(), status=2)
    assert not shell.file.exists()


def test_addresses_that_are_not_public_https_are_refused(shell: Shell) -> None:
    for address in (
        *("http://127.0.0.1:9/mcp", "https://[::1]/mcp", "https://169.254.169.254/latest"),
        *("https://nas.local/mcp", "https://2130706433/mcp", "https://me:hunter2@example.org/mcp"),
        *("http://8.8.8.8/mcp", "file:///etc/passwd", "example.org"),
    ):
        assert "hunter2" not in shell.mcp("add", "near", "--url", address, status=1)
    assert not shell.file.exists()
    said = shell.mcp("add", "far", "--url", "https://8.8.8.8/mcp", "-H", "Authorization=Bearer ${TOKEN}")
    assert "recado mcp secret far TOKEN" in said
    assert shell.entries == {
        "far": {"url": "https://8.8.8.8/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    }


@pytest.mark.parametrize("content", [
    {"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"]}, "other": {"command": "y"}}},
    {"servers": {"theirs": {"command": "npx", "args": ["-y", "x"]}}},
])  # fmt: skip
def test_an_entry_of_another_host_is_taken_as_it_is(content: Any, shell: Shell) -> None:
    (shell.folder / "entry.json").write_text(json.dumps(content))
    shell.mcp("add", "files", "--json", "entry.json")
    shell.mcp("add", "piped", "--json", "-", typed=json.dumps({"url": "http://10.0.0.1/mcp"}))
    assert shell.entries["files"] == {"command": "npx", "args": ["-y", "x"]}
    assert list(shell.entries) == ["files", "piped"]
    assert "already" in shell.mcp("add", "files", "--json", "entry.json", status=1)


@pytest.mark.parametrize(("content", "word"), [
    ("{", "as JSON"),
    ('{"command": "x", "url": "https://example.org"}', "one of"),
    ('{"command": "x", "env": {"A": "${OPENAI_API_KEY}"}}', "setting of this assistant"),
])  # fmt: skip
def test_an_entry_that_cannot_be_used_is_not_written(content: str, word: str, shell: Shell) -> None:
    assert word in shell.mcp("add", "files", "--json", "-", typed=content, status=1)
    assert "cannot be used" in shell.mcp("add", "../x", "--", "npx", status=1)
    assert "-e 'KEY': write" in shell.mcp("add", "files", "-e", "KEY", "--", "npx", status=1)
    assert not shell.file.exists()


def test_a_broken_file_is_named_and_not_written_over(shell: Shell) -> None:
    shell.file.parent.mkdir()
    shell.file.write_text('{"mcpServers": {"one": {"command": "x"},}}')
    assert "is not JSON: " in shell.mcp("list")
    assert "not JSON" in shell.mcp("add", "two", "--", "npx", status=1)
    assert shell.file.read_text() == '{"mcpServers": {"one": {"command": "x"},}}'


def test_a_secret_is_asked_at_the_terminal_without_being_shown(shell: Shell) -> None:
    shell.mcp("add", "files", "-e", "KEY=${TOKEN}", "--", *command())
    with Terminal(shell, "mcp", "secret", "files", "TOKEN") as terminal:
        terminal.expect("is not shown")
        terminal.type(f"{SECRET}\n")
        assert terminal.status() == 0, terminal.seen
        assert SECRET not in terminal.seen
    assert Secrets(shell.folder / "data").get("files") == {"TOKEN": SECRET}


def test_the_registry_is_searched_also_when_it_is_away(shell: Shell, registry: RegistryServer) -> None:
    found = shell.mcp("search", "tide", "tables", **registry.settings)
    assert "com.example/tides  1.0.0" in found
    assert "com.example/old" in found
    assert "not here: it comes in a form that I do not install (“sse”)" in found
    registry.stop()
    assert shell.mcp("search", "tides", **registry.settings).startswith("com.example/tides ")
    said = shell.mcp("search", "xylophone", status=1, **registry.settings)
    assert "no server of the registry fits 'xylophone'; there are some for: " in said


def test_a_server_of_the_registry_is_shown_whole_and_installed_after_a_yes(
    shell: Shell, registry: RegistryServer
) -> None:
    asked = ["add", "harbour", "--registry", "com.example/weather"]
    assert "--yes" in shell.mcp(*asked, status=1, **registry.settings)
    shell.variables |= registry.settings
    with Terminal(shell, "mcp", *asked) as terminal:
        assert "com.example/weather" in terminal.expect("[y/N]")
        terminal.type("n\n", "nothing was installed")
        assert terminal.status() == 1
    assert not shell.file.exists()
    with Terminal(shell, "mcp", *asked) as terminal:
        terminal.expect("[y/N]")
        said = terminal.type("y\n", "recado mcp secret harbour X_Api_Key")
        assert terminal.status() == 0, terminal.seen
    assert "Installed harbour 1.0.0" in said
    (one,) = shell.listed()
    assert (one["name"], one["origin"], one["version"]) == ("harbour", "installed", "1.0.0")
    assert one["missing"] == ["X_Api_Key"]
    shell.mcp("secret", "harbour", "X_Api_Key", typed=SECRET)
    assert "came from the registry" in shell.mcp("remove", "harbour")
    assert shell.entries == {}
    assert Secrets(shell.folder / "data").get("harbour") == {}


def test_beside_a_running_server_its_word_counts(shell: Shell, running: "Callable[[], None]") -> None:
    tools = shell.folder / "tools.json"
    tools.write_text(json.dumps([tool("echo", "says it")]))
    shell.add("files", tools_file=str(tools))
    shell.mcp("add", "broken", "--", "no-such-program")
    pin(shell, tools)
    tools.write_text(json.dumps([tool("echo", "says it"), tool("erase", "erases it")]))
    running()
    held = "ready; 1 held back until it is approved in the console"
    assert re.search(rf"^files +{held} +1 +you", shell.mcp("list"), re.M)
    assert re.search(r"^broken +(starting|broken)", shell.mcp("list"), re.M)
    (files, _) = shell.listed()
    assert files["tools"] == ["mcp_files_echo"]
    assert [one["tool"] for one in files["held_back"]] == ["erase"]
    assert files["revision"] == "2025-11-25"
    shell.mcp("remove", "broken")
    assert [one["name"] for one in shell.listed()] == ["files"]


@pytest.fixture
def running(shell: Shell) -> Iterator[Callable[[], None]]:
    """Start a server on the shell's data folder, and wait until its MCP servers came up or failed."""
    started: list[Server] = []

    def start() -> None:
        settings = {"DATA_DIR": f"{shell.folder}/data", "MCP_CONFIG_PATH": str(shell.file)}
        started.append(Server(shell.folder, **{**shell.environment, **settings}).start())
        wait_for(lambda: shell.listed()[0]["phase"] == "ready", "the MCP server files")

    yield start
    for server in started:
        server.stop()


def pin(shell: Shell, tools: Path) -> None:
    """Approve the tools as the first start of a server does."""
    from app.mcp.approved import Pins

    pins = Pins(shell.folder / "data", "files")
    pins.compare(json.loads(tools.read_text()))
