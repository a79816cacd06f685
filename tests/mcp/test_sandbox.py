"""Servers in the sandbox, tried with bubblewrap itself; skipped where it does not work."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.mcp.definitions import ServerDefinition
from app.processes.sandbox import Grants, Sandbox
from app.settings import Settings

SECRET = "s3cret-of-the-server"
NONE = Grants()
FORBIDDEN = "PermissionError Operation not permitted"
NOT_THERE = "FileNotFoundError No such file or directory"
READ_ONLY = "OSError Read-only file system"
SERVER = """
import ctypes, mmap, os, socket, subprocess, sys
for code in sys.argv[1:]:
    try:
        exec(code)
    except BaseException as error:
        print(type(error).__name__, getattr(error, "strerror", None) or error)
    else:
        print("done")
"""
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


class Place:
    """A data folder with one installed server `x`, and another one's."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.home = self.data / "mcp/x/data"
        self.package = self.data / "mcp/x/package-1"
        for made in (self.package, self.data / "mcp/y/data", self.data / "secrets", folder / "granted"):
            made.mkdir(parents=True)
        (self.package / "server.py").write_text(SERVER)
        (self.data / "secrets/x").write_text(SECRET)
        (self.data / "mcp/y/data/kept").write_text("of y")
        (self.data / "recado.db").write_bytes(b"messages")
        self.granted = folder / "granted"
        self.settings = Settings(
            _env_file=None, DATA_DIR=self.data, DATABASE_URL=f"sqlite:///{self.data}/recado.db"
        )
        self.sandbox = Sandbox(self.settings)

    def definition(
        self, program: str, *args: str, grants: Grants = NONE, env: Mapping[str, str] | None = None
    ) -> ServerDefinition:
        return ServerDefinition(
            "x",
            command=program,
            args=args,
            env=tuple((env or {}).items()),
            folder=str(self.package),
            home=str(self.home),
            sandboxed=True,
            grants=grants,
        )

    def run(self, definition: ServerDefinition) -> str:
        command, environment = self.sandbox.server_command(definition)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
        return done.stdout.strip() or done.stderr.strip()

    def attempt(self, code: str, grants: Grants = NONE, env: Mapping[str, str] | None = None) -> str:
        """Run this code as a server and return what it says: "done", or the error."""
        return self.run(self.python(code, grants=grants, env=env))

    def attempts(self, codes: Iterable[str], grants: Grants = NONE) -> list[str]:
        """Run several pieces of code in one server; return what it says of each."""
        return [line.strip() for line in self.run(self.python(*codes, grants=grants)).splitlines()]

    def python(self, *codes: str, **more: Any) -> ServerDefinition:
        return self.definition(sys.executable, str(self.package / "server.py"), *codes, **more)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    fault = made.sandbox.probe()
    if fault:
        pytest.skip(fault)
    return made


# What is true of servers alone; what every program in the sandbox is denied: tests/skills/test_sandbox.py.
ATTEMPTS = {
    "reads the database": ("open('{data}/recado.db')", NOT_THERE),
    "reads its secrets' file": ("open('{data}/secrets/x')", NOT_THERE),
    "reads another server's data": ("open('{data}/mcp/y/data/kept')", NOT_THERE),
    "lists the data folder": (
        "raise LookupError(os.listdir('{data}'), os.listdir('{data}/mcp'))", "LookupError (['mcp'], ['x'])"
    ),
    "rewrites its own package": ("open('{package}/server.py', 'w')", READ_ONLY),
    "starts a program": ("subprocess.run(['/bin/true'])", FORBIDDEN),
    "connects": ("socket.create_connection(('127.0.0.1', {port}))", FORBIDDEN),
    "fills memory that a device gives": (
        "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)", "PermissionError Permission denied"
    ),
    "fills the disk with one file": (
        "file = open('f', 'wb')\nfor _ in range(100): file.write(bytes(1 << 20))", "OSError File too large"
    ),
}  # fmt: skip


def test_a_server_reaches_nothing_outside_of_its_own(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        known = {"data": place.data, "package": place.package, "port": listening.getsockname()[1]}
        said = place.attempts(code.format(**known) for code, _ in ATTEMPTS.values())
    assert dict(zip(ATTEMPTS, said, strict=True)) == {name: error for name, (_, error) in ATTEMPTS.items()}
    assert (place.package / "server.py").read_text() == SERVER


def test_a_folder_that_became_another_before_it_was_mounted_is_not_shown(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server that may write beside it can do that at any moment."""
    granted = place.settings.workspace_dir / "shared/notes"
    granted.mkdir(parents=True)
    bubblewrap = shutil.which("bwrap")
    swap = tmp_path / "bin/bwrap"
    swap.parent.mkdir()
    swap.write_text(f'#!/bin/sh\nrmdir {granted} && ln -s {place.data} {granted}\nexec {bubblewrap} "$@"\n')
    swap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{swap.parent}:{os.environ['PATH']}")
    said = place.attempt(f"open('{granted}/recado.db', 'w')", Grants(folders_write=(granted,)))
    assert "is not the folder that was granted" in said
    assert (place.data / "recado.db").read_bytes() == b"messages"


def test_what_was_granted_works_and_the_workspace_without_what_members_keep_in_it(place: Place) -> None:
    workspace = place.settings.workspace_dir
    workspace.mkdir()
    grants = Grants(network=True, programs=True, folders_write=(workspace, place.granted))
    assert place.attempt(f"assert os.listdir('{workspace}') == ['people']", grants) == "done"
    (workspace / "people/p1").mkdir()
    (workspace / "people/p1/letter").write_text("of a member")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        expected = {
            f"socket.create_connection(('127.0.0.1', {listening.getsockname()[1]}))": "done",
            "assert subprocess.run(['/bin/true']).returncode == 0": "done",
            f"open('{place.granted}/f', 'w').write('x')": "done",
            f"open('{workspace}/people/p1/letter')": NOT_THERE,
            f"open('{workspace}/people/new', 'w')": READ_ONLY,
            f"open('{workspace}/new', 'w')": "done",
            f"open('{place.data}/recado.db')": NOT_THERE,
        }
        assert dict(zip(expected, place.attempts(expected, grants), strict=True)) == expected
    assert (place.granted / "f").read_text() == "x"


def test_our_own_folders_cannot_be_granted_even_inside_the_workspace(place: Place, tmp_path: Path) -> None:
    """Code written into the folder of skills would run outside of the sandbox at the next message."""
    skills = tmp_path / "skills"
    (skills / "tides").mkdir(parents=True)
    settings = {"workspace_dir_setting": tmp_path, "skills_dir": skills}
    place.sandbox = Sandbox(place.settings.model_copy(update=settings))
    for folder in (tmp_path, place.data / "secrets", place.data / "mcp/y", skills, skills / "tides"):
        with pytest.raises(ValueError, match="which"):
            place.attempt("0", Grants(folders_write=(folder,)))
    assert place.attempt("0", Grants(folders_write=(place.granted,))) == "done"


def test_a_granted_folder_that_became_a_link_out_of_the_workspace_is_refused(
    place: Place, tmp_path: Path
) -> None:
    workspace = place.settings.workspace_dir
    (workspace / "real").mkdir(parents=True)
    (workspace / "inside").symlink_to("real")
    (workspace / "outside").symlink_to(tmp_path)
    assert place.attempt("0", Grants(folders_write=(workspace / "inside",))) == "done"
    with pytest.raises(ValueError, match="link out of the workspace"):
        place.attempt("0", Grants(folders_write=(workspace / "outside",)))


def test_its_environment_is_its_own_and_what_it_was_given(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of ours")
    code = "raise LookupError(sorted(os.environ), os.environ['X_TOKEN'])"
    names = ["HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "TMPDIR", "X_TOKEN"]
    assert place.attempt(code, env={"X_TOKEN": SECRET}) == f"LookupError ({names}, '{SECRET}')"
    monkeypatch.setenv("TZ", "UTC")
    assert "TZ" in place.attempt(code, env={"X_TOKEN": SECRET})


def test_a_variable_for_the_loader_reaches_the_server_alone(place: Place, tmp_path: Path) -> None:
    """bubblewrap and what sets the limits run before them: there it would be code without limits."""
    source, library = tmp_path / "x.c", place.package / "x.so"
    marks = '{int f = open("/proc/self/cmdline", 0); char b[99]; read(f, b, 99); write(2, b, strlen(b));}'
    source.write_text(
        "#include <fcntl.h>\n#include <string.h>\n#include <unistd.h>\n"
        f"__attribute__((constructor)) static void run(void) {marks}\n"
    )
    if shutil.which("cc") is None:
        pytest.skip("there is no compiler")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-o", library, source], check=True, capture_output=True, timeout=60
    )
    command, environment = place.sandbox.server_command(
        place.definition("/bin/true", env={"LD_PRELOAD": str(library)})
    )
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30)
    assert done.stderr == "/bin/true"


@pytest.mark.slow
@NODE
def test_javascript_runs_and_its_memory_has_an_end(place: Place) -> None:
    run = "console.log([WebAssembly.validate(new Uint8Array([0,97,115,109,1,0,0,0])), process.cwd()].join())"
    assert place.run(place.definition("node", "-e", run)) == f"true,{place.home}"
    code = "const kept = []; while (true) kept.push(Buffer.alloc(100 << 20, 1))"
    assert "Array buffer allocation failed" in place.run(place.definition("node", "-e", code))
    spawned = "try { require('child_process').execSync('true') } catch (error) { console.log(error.code) }"
    assert place.run(place.definition("node", "-e", spawned)) == "EPERM"


def test_a_program_is_seen_wherever_it_lies(place: Place, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy("/bin/echo", programs / "say")
    (programs / "link").symlink_to("say")
    (place.package / "inside").symlink_to(programs / "say")
    for program in (
        "/bin/echo",
        str(programs / "say"),
        str(programs / "link"),
        str(place.package / "inside"),
    ):
        assert place.run(place.definition(program, "x")) == "x"
    assert place.attempt(f"open('{programs}/say')") == NOT_THERE


def test_without_a_sandbox_that_works_it_is_not_started(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    with pytest.raises(ValueError, match="bwrap"):
        Sandbox(place.settings).server_command(place.definition("/bin/true"))


def test_with_the_sandbox_off_a_server_still_gets_nothing_of_ours(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of ours")
    off = Sandbox(place.settings.model_copy(update={"sandbox": "off"}))
    command, environment = off.server_command(place.definition("true", "a", env={"X": "y"}))
    assert command == [shutil.which("true"), "a"]
    assert (environment["X"], environment["HOME"]) == ("y", str(place.home))
    assert "of ours" not in environment.values()
