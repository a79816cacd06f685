import json
import os
import pty
import re
import select
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli import app
from tests.doctor.house import kept_environment
from tests.forks import SERVE, ForkedServer, run_recado, start_at_terminal
from tests.test_dropped_skills import drop
from tests.world import free_port, wait_for

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 60
SECRET = "EAAG-a-secret-that-nobody-may-see"


@dataclass
class House:
    """A folder with a Recado of its own, and the command run in it."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return {**kept, "PYTHONPATH": str(ROOT), "SKILLS_DIR": str(ROOT / "skills"), **self.variables}

    def run(
        self, *arguments: str, typed: str = "", status: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **variables}
        done = run_recado(arguments, self.folder, environment, typed=typed, seconds=SECONDS)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done

    def call(self, *arguments: str, status: int = 0, **variables: str) -> Result:
        """The command in this process, where nothing of a process matters: its start would be most of it."""
        with kept_environment(self.folder, {**self.environment, **variables}):
            done = CliRunner().invoke(app, arguments)
        assert done.exit_code == status, done.output
        assert isinstance(done.exception, SystemExit | None)
        return done

    def start(self, port: int) -> ForkedServer:
        """Start a server; wait until it runs."""
        log = self.folder / "server.log"
        process = ForkedServer(self.folder, self.environment, log, (*SERVE, "--port", str(port)))
        wait_for(lambda: log.exists() and "is running" in log.read_text(), "the server")
        return process


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house whose server runs."""
    port = free_port()
    house = House(tmp_path_factory.mktemp("served"), {"PORT": str(port), "BURST_QUIET_SECONDS": "0"})
    process = house.start(port)
    yield house
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0


def test_the_command_is_named_without_loading_what_its_commands_need() -> None:
    heavy = "{'fastapi', 'pydantic', 'structlog', 'uvicorn', 'openai', 'httpx2', 'app.main'}"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, app.cli; print({heavy} & set(sys.modules))"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.strip() == "set()"


def test_hints_name_the_command_as_make_run_starts_it(tmp_path: Path) -> None:
    started = tmp_path / ".venv" / "bin" / "recado"
    started.parent.mkdir(parents=True)
    started.write_text(f"#!{sys.executable}\nfrom app.cli import main\nmain()\n")
    started.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run([started, "mcp", "list"], capture_output=True, text=True, cwd=tmp_path, env=env)
    assert "Find one with: .venv/bin/recado mcp search WORDS" in done.stdout


def test_help_names_every_command_and_the_version_is_told(house: House) -> None:
    listed = set(re.findall(r"^  (\w+) ", house.call("--help").stdout, re.MULTILINE))
    assert {"serve", "chat", "doctor", "people", "token", "catalog", "route", "trace"} <= listed
    assert {"skills", "mcp", "eval", "export", "erase", "usage", "knowledge", "templates"} <= listed
    assert re.fullmatch(r"recado \d+\.\d+\.\d+\n", house.call("--version").stdout)
    assert "'--mode': 'foo' is not one of 'yolo'" in house.call("chat", "--mode", "foo", status=2).stderr


def test_each_faulty_variable_has_one_line_and_no_secret_is_in_any(house: House) -> None:
    faulty = {
        "PORT": "eighty",
        "DRY_RUN": "perhaps",
        "TIMEZONE": "Mars/Olympus",
        "CONFIRMATION_MODE": "never",
    }
    done = house.call("token", status=2, WHATSAPP_ACCESS_TOKEN=SECRET, **faulty)
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    for variable in ("PORT='eighty'", "DRY_RUN='perhaps'", "TIMEZONE='Mars/Olympus'", "CONFIRMATION_MODE"):
        assert any(variable in line and "mend it" in line for line in lines)
    assert SECRET not in done.stderr


@pytest.mark.parametrize("command", ["serve --port 0", "chat", "people list"])
def test_what_cannot_be_used_ends_with_one_clear_line(command: str, house: House) -> None:
    (house.folder / "notes.txt").write_text("no database, only a text of some length. " * 50)
    postgres = "postgresql://me:word@127.0.0.1:1/recado"
    cases = [
        ({"DATABASE_URL": "sqlite:///notes.txt"}, 1, "notes.txt cannot be"),
        ({"DATABASE_URL": postgres}, 1, "PostgreSQL does not answer"),
        ({"DATABASE_URL": "mysql://me:word@host/recado"}, 2, "DATABASE_URL"),
        ({"DATABASE_URL": "postgresql://me:w@ord@host/recado"}, 2, "of its login as %40"),
        ({"DATABASE_URL": "sqlite:///:memory:"}, 2, "write sqlite:///data/recado.db"),
    ]
    if command != "people list":
        cases += [
            ({"DATA_DIR": "notes.txt"}, 1, "notes.txt cannot hold the data"),
            ({"OPENAI_BASE_URL": "localhost:1/v1", "LLM_MODEL": "small"}, 2, "write it like http://"),
        ]
    if command == "serve --port 0":
        cases += [
            (
                {"WHATSAPP_API_URL": "graph.facebook.com/v25.0"},
                2,
                "not of the form http://host or https://host; write it like https://graph.",
            ),
            ({"ALLOWED_PHONE_NUMBERS": "+52 55 1234 5678, hola"}, 2, "'hola' is no phone number"),
            ({"ROLE": "worker"}, 2, "several processes need PostgreSQL"),
            ({"ROLE": "worker", "DATABASE_URL": postgres}, 2, "simulator works in one process only"),
            ({"HOST": "no.such.host.invalid"}, 1, "cannot listen at no.such.host.invalid"),
            ({"GUEST_LIMIT": "ten"}, 2, "GUEST_LIMIT"),
        ]
    for variables, status, told in cases:
        shown = house.call(*command.split(), status=status, TIMEZONE="America/Lima", **variables)
        (line,) = shown.stderr.splitlines()
        assert told in line
        assert "word" not in line


def test_people_are_let_in_shut_out_and_made_owners_without_a_server(house: House) -> None:
    connected = {"WHATSAPP_ACCESS_TOKEN": SECRET, "OWNER_PHONE_NUMBERS": "+34 600 111 222"}
    assert "no database" in house.call("erase", "525512345678", "--yes", status=1, **connected).stderr
    house.call("people", "owner", "+34 600 111 222")  # in the simulator
    house.call("people", "allow", "+52 1 55 1234 5678", **connected)
    told = house.call("people", "block", "5491155550000", **connected).stdout
    assert told == "5491155550000 is blocked\n"
    house.call("people", "owner", "5511999990000", **connected)
    rows = {row.split()[0]: row for row in house.call("people", "list", **connected).stdout.splitlines()}
    assert re.search(r"whatsapp +member +yes", rows["525512345678"])
    assert "blocked" in rows["541155550000"]
    assert re.search(r"owner +yes", rows["5511999990000"])
    assert re.search(r"owner +yes +in the configuration", rows["34600111222"])

    listed = {**connected, "ALLOWED_PHONE_NUMBERS": "525512345678"}
    with sqlite3.connect(house.folder / "data" / "recado.db") as database:
        database.execute("INSERT INTO outsiders VALUES ('whatsapp', '5215587654321', 'Eva', 2, 0, 0)")
        database.execute("INSERT INTO outsiders VALUES ('whatsapp', '5215512345678', 'Ana', 2, 0, 0)")
    assert house.call("people", "list", **listed).stdout.count("turned away") == 1
    listed["ALLOWED_PHONE_NUMBERS"] = "525587654321"
    assert "turned away" not in house.call("people", "list", **listed).stdout
    wrong = house.call("people", "allow", "Ana", status=1, **connected)
    assert "neither a phone number" in wrong.stderr
    mexican = {"WHATSAPP_ACCESS_TOKEN": SECRET, "TIMEZONE": "America/Mexico_City"}
    for action in ("owner", "allow"):
        refused = house.call("people", action, "55 1234 5678", status=1, **mexican)
        assert "no phone number with its country code; put +52 before it: +52 55 1234 5678" in refused.stderr
    assert "is blocked" in house.call("people", "block", "55 1234 5678", **mexican).stdout
    assert "is an owner now" in house.call("people", "owner", "55 1234 5678", **mexican).stdout
    assert "may talk now" in house.call("people", "allow", "MX.10955501234", **mexican).stdout


def test_the_token_is_made_once_kept_private_and_renewed(house: House) -> None:
    first = house.call("token").stdout
    assert house.call("token").stdout == first
    kept = house.folder / "data" / "admin_token"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    second = house.call("token", "--renew").stdout
    assert second not in ("", first)
    assert house.call("token").stdout == second
    assert house.call("token", ADMIN_TOKEN="of-my-own-alone-").stdout == "of-my-own-alone-\n"
    refused = house.call("token", "--renew", status=1, ADMIN_TOKEN="of-my-own-alone-")
    assert "change it there" in refused.stderr


LAMPS = '''
open("was-run", "w").close()

def switch_lamp(room: str, on: bool = True) -> str:
    """Switches a lamp."""

def undocumented(room):
    pass

def _private():
    """Not for others."""
'''


def test_the_catalogue_and_the_check_never_run_a_tools_file(house: House) -> None:
    mine = drop(house.folder / "mine", "lamps", LAMPS).parent
    catalogue = json.loads(house.call("catalog", "--json", SKILLS_DIR=str(mine)).stdout)
    names = [schema["name"] for schema in catalogue["functionSchema"]]
    assert {"calculate", "current_time", "switch_lamp"} <= set(names)
    assert catalogue["count"] == len(names)
    assert "- switch_lamp: Switches a lamp" in house.call("catalog", SKILLS_DIR=str(mine)).stdout

    report = house.call("skills", "check", str(mine / "lamps")).stdout
    assert "tool: switch_lamp" in report
    assert "left out: undocumented has no docstring" in report
    assert "_private" not in report
    assert "switch_lamp" in house.call("skills", "list", SKILLS_DIR=str(mine)).stdout
    assert not (house.folder / "was-run").exists()


def test_the_check_fails_for_a_faulty_skill_and_goes_on(house: House) -> None:
    drop(house.folder / "mine", "broken", "def oops(:\n")
    drop(house.folder / "mine", "lamps", LAMPS)
    report = house.call("skills", "check", "mine", status=1).stdout
    assert "FAULT: scripts/tools.py line 1: " in report
    assert "tool: switch_lamp" in report
    assert "2 checked, 1 with faults" in report
    assert "no SKILL.md" in house.call("skills", "check", "nowhere", status=1).stderr
    house.call("skills", "check")


def test_a_route_shows_the_tools_and_their_ranks(house: House) -> None:
    shown = house.call("route", "calculate 15% of 2300", MAX_TOOLS_PER_CALL="3").stdout
    assert re.search(r"^Offered: \d of \d+ tools", shown)
    assert re.search(r"^calculate +calculator +0\.\d\d +\d+%", shown, re.MULTILINE)
    assert re.search(r"^TOOL.* BEST FOR\ncalculate +calculator +0\.\d\d", shown, re.MULTILINE)
    assert "needs a message" in house.call("route", "  ", status=2).stderr
    nothing = house.call("route", "zzz", MAX_TOOLS_PER_CALL="3").stdout
    assert "no tool knows the words" in nothing
    assert "SCORE" not in nothing


def test_the_doctor_names_misspelt_variables_a_broken_file_and_a_machine_without_a_zone(house: House) -> None:
    (house.folder / ".env").write_text("PORT=eighty\nWHATSAPP_TOKEN=x\n")
    told = house.call("doctor", status=1).stdout
    assert "FAIL configuration: PORT='eighty'" in told
    assert "WHATSAPP_TOKEN is set, which nothing reads -> did you mean" in told
    assert "WHATSAPP_ACCESS_TOKEN?" in told
    (house.folder / ".env").write_bytes(b"PORT=\xff\xfe\n")
    (line,) = house.call("doctor", status=1).stdout.splitlines()
    assert ".env is not UTF-8 text" in line
    (house.folder / ".env").unlink()
    on_utc = "WARN time zone: TIMEZONE is not set and this machine is on UTC"
    assert on_utc in house.run("doctor", TZ="Etc/UTC").stdout


_STARTS_SLOWLY = """
import pathlib, sys, time

def hook(event, details):
    if event == "import" and details[0] == "app.server":
        pathlib.Path("here").touch()
        time.sleep(60)

sys.addaudithook(hook)
"""


@pytest.mark.slow
def test_a_server_that_is_stopped_while_it_starts_ends_well(house: House) -> None:
    (house.folder / "sitecustomize.py").write_text(_STARTS_SLOWLY)
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "serve", "--port", str(free_port())],
        cwd=house.folder,
        env={**house.environment, "PYTHONPATH": f"{house.folder}:{ROOT}"},
    )
    wait_for((house.folder / "here").exists, "the start")
    process.send_signal(signal.SIGTERM)
    assert process.wait(15) == 0


@pytest.mark.slow
def test_a_closed_terminal_stops_the_server_in_order_and_nohup_keeps_it(house: House) -> None:
    def start(*launcher: str) -> "subprocess.Popen[str]":
        """Start a server that a hang-up reaches, though the tests may ignore it; wait until it runs."""
        process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "app", "serve", "--port", str(free_port())],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=house.folder,
            env=house.environment,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
        assert process.stdout is not None
        assert "is running" in process.stdout.readline()
        return process

    process = start()
    process.send_signal(signal.SIGHUP)
    assert process.wait(15) == 0
    assert not list((house.folder / "data").glob("*-wal"))
    kept = start("nohup")
    kept.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        kept.wait(1)
    kept.send_signal(signal.SIGTERM)
    assert kept.wait(15) == 0


def test_a_piped_chat_answers_each_line_in_turn(house: House) -> None:
    typed = "how much is 17*23?\n\nhow much is 100-1?\nexit\nhow much is 2+2?\n"
    answers = house.run("chat", typed=typed).stdout
    assert re.search(r"391.*99", answers, re.DOTALL)
    assert "> " not in answers
    assert "= 4" not in answers

    assert re.search(r"terminal +owner +yes", house.call("people", "list").stdout)
    turns = house.call("trace").stdout.splitlines()
    assert turns[0].startswith("TURN")
    assert len(turns) == 3
    shown = house.call("trace", turns[1].split()[0]).stdout
    assert "Model call llm:0" in shown
    assert "how much is 100-1?" in shown
    assert "no turn" in house.call("trace", "turn_unknown", status=1).stderr


@pytest.mark.slow
def test_a_piped_chat_runs_only_what_needs_no_yes(house: House) -> None:
    for options, expected in ((["--dry-run"], "DRY-RUN"), (["--mode", "confirm-all"], "[y/n/a]")):
        answers = house.run("chat", *options, typed="how much is 17*23?").stdout
        assert expected in answers
        assert "391" not in answers
    assert "391" in house.run("chat", typed="y\n").stdout


def talk_at_a_terminal(house: House, *options: str) -> None:
    """Answer y, n and a to questions; the talk goes on after each."""
    with Terminal(house, "chat", *options) as terminal:
        terminal.expect("> ")
        terminal.type("how much is 17*23?\n", "[y/n/a]")
        terminal.type("y\n", "391")
        terminal.type("how much is 18*23?\n", "[y/n/a]")
        assert "414" not in terminal.type("n\n", "> ")
        terminal.type("how much is 19*23?\n", "[y/n/a]")
        assert "437" not in terminal.type("a\n", "Stopped")
        terminal.type("how much is 20*23?\n", "[y/n/a]")
        terminal.type("y\n", "460")
        terminal.type("\x04")
        assert terminal.status() == 0


@pytest.mark.slow
def test_questions_come_to_the_terminal_with_and_without_a_server_and_after_one_was_killed(house):
    talk_at_a_terminal(house, "--mode", "confirm-all")
    house.variables |= {"BURST_QUIET_SECONDS": "0", "CONFIRMATION_MODE": "confirm-all"}
    process = house.start(free_port())
    talk_at_a_terminal(house)
    shown = house.run("chat", typed="how much is 17*23?\na\nhow much is 2*2?\n", status=130).stdout
    assert "Shall I work this out?" in shown
    assert "391" not in shown
    process.kill()
    process.wait(10)
    assert (house.folder / "data" / "server.json").exists()
    assert "391" in house.run("chat", typed="how much is 17*23?\ny\n").stdout
    house.call("people", "allow", "+34600111222")


def test_ctrl_c_leaves_the_terminal_cleanly(house: House) -> None:
    with Terminal(house, "chat") as terminal:
        terminal.expect("> ")
        terminal.type("\x03")
        assert terminal.status() == 0
        assert "Traceback" not in terminal.seen


def test_a_second_server_on_a_database_or_a_port_ends_with_one_clear_line(served, house):
    record = (served.folder / "data" / "server.json").read_text()
    done = served.run("serve", "--port", str(free_port()), status=1)
    (line,) = done.stderr.splitlines()
    assert f"process {json.loads(record)['pid']}" in line
    assert "in use by another Recado server" in line
    assert (served.folder / "data" / "server.json").read_text() == record
    done = house.run("serve", status=1, PORT=served.variables["PORT"])
    (line,) = done.stderr.splitlines()
    assert f"port {served.variables['PORT']}" in line
    assert "--port" in line


@pytest.mark.slow
def test_beside_a_server_commands_go_through_it(served: House) -> None:
    first = served.run("chat", typed="how much is 17*23?\nhow much is 18*23?\n").stdout
    assert re.search(r"391.*414", first, re.DOTALL)
    assert "414" in served.run("chat", typed="how much is 18*23?\n").stdout
    assert "leave out --mode" in served.run("chat", "--mode", "yolo", status=1).stderr

    served.run("people", "allow", "+34 600 111 222")
    assert "34600111222" in served.run("people", "list").stdout
    renewed = served.run("token", "--renew").stdout.strip()
    assert (served.folder / "data" / "admin_token").read_text().strip() == renewed
    turn = served.run("trace").stdout.splitlines()[1].split()[0]
    assert "Model call llm:0" in served.run("trace", turn).stdout

    report = served.run("doctor").stdout
    assert re.search(r"^OK   server: runs at http://127\.0\.0\.1", report, re.MULTILINE)
    assert re.search(r"^OK   database: .* is sound", report, re.MULTILINE)
    assert renewed not in report


class Terminal:
    """The command at a real terminal."""

    def __init__(self, house: House, *arguments: str) -> None:
        self.seen = ""
        self._read = 0
        self._descriptor, terminal = pty.openpty()
        path = Path(os.ttyname(terminal))
        self._process = start_at_terminal(arguments, house.folder, house.environment, path)
        self._terminal = terminal

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._descriptor)
        os.close(self._terminal)
        self._process.kill()
        self._process.join()

    def type(self, text: str, expected: str = "") -> str:
        """Types, and gives what came up to and with what is expected."""
        os.write(self._descriptor, text.encode())
        return self.expect(expected)

    def expect(self, text: str) -> str:
        self._until(lambda: text in self.seen[self._read :])
        end = self.seen.index(text, self._read) + len(text)
        shown, self._read = self.seen[self._read : end], end
        return shown

    def status(self) -> int | None:
        """The exit status, once it has ended."""
        self._until(lambda: self._process.exitcode is not None)
        return self._process.exitcode

    def _until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + SECONDS
        while not done():
            assert time.monotonic() < until, self.seen
            if not select.select([self._descriptor], [], [], 0.2)[0]:
                continue
            try:
                chunk = os.read(self._descriptor, 4096)
            except OSError:  # Linux says so when the other end has closed
                return
            if not chunk:
                return
            self.seen += chunk.decode("utf-8", "replace")
