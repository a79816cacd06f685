"""What hostile code can do in the sandbox, tried with bubblewrap itself; skipped where it does not work."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.doctor.abilities import check_sandbox
from app.processes import confine
from app.processes.sandbox import Grants, Sandbox
from app.settings import Settings
from tests.world import ROOT, wait_for

TRIED = """
import ctypes, os, socket, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
for code in sys.argv[1:]:
    try:
        exec(code, dict(globals()))
    except BaseException as error:
        print(type(error).__name__, getattr(error, "strerror", None) or error)
    else:
        print("done")
"""
FORBIDDEN = "PermissionError Operation not permitted"
NOT_THERE = "FileNotFoundError No such file or directory"
READ_ONLY = "OSError Read-only file system"
# What hostile code does, and the error that it gets; {names} are of the fixture `house`.
# What uses something up is last.
ATTEMPTS = {
    "reads the server's environment": ("open('/proc/{pid}/environ').read()", NOT_THERE),
    "reads .env": ("open('{env}').read()", NOT_THERE),
    "reads the database": ("open('{database}').read()", NOT_THERE),
    "reads another's skill": ("os.listdir('{other}')", NOT_THERE),
    "lists the data folder": (
        "if os.listdir('{data}') == ['skills']: raise LookupError('no more')",
        "LookupError no more",
    ),
    "reads the users of the machine": ("open('/etc/passwd').read()", NOT_THERE),
    "rewrites its own folder": ("open('SKILL.md', 'w')", READ_ONLY),
    "writes outside": ("open('/written', 'w')", READ_ONLY),
    "writes to the packages of the release": ("open('{venv}/pyvenv.cfg', 'r+')", READ_ONLY),
    "writes to the kernel's settings": ("open('/proc/sys/kernel/core_pattern', 'w')", READ_ONLY),
    "outlives the server where memory runs out": (
        "raise LookupError(open('/proc/self/oom_score_adj').read().strip())",
        "LookupError 500",
    ),
    "makes a device": ("os.mknod('/tmp/sda', 0o060600, os.makedev(8, 0))", FORBIDDEN),
    "forks": ("os.fork()", FORBIDDEN),
    "starts a program": ("subprocess.run(['/bin/true'])", FORBIDDEN),
    "fills the memory": ("bytearray(2 << 30)", "MemoryError"),
    "fills memory that is a file": ("os.memfd_create('m')", FORBIDDEN),
    "connects by tcp": ("socket.create_connection(('127.0.0.1', {port}))", FORBIDDEN),
    "asks for a name": (
        "socket.getaddrinfo('example.com', 80)",
        "gaierror Temporary failure in name resolution",
    ),
    "talks to the kernel's network": ("socket.socket(16, socket.SOCK_RAW)", FORBIDDEN),
    "connects to a unix socket": ("socket.socket(socket.AF_UNIX).connect('{socket}')", NOT_THERE),
    "connects to an abstract socket": (
        "socket.socket(socket.AF_UNIX).connect('\\0{abstract}')",
        "ConnectionRefusedError Connection refused",
    ),
    "traces": ("call('ptrace', 16, {pid}, 0, 0)", FORBIDDEN),
    "kills the server": ("os.kill({pid}, 9)", "ProcessLookupError No such process"),
    "mounts": ("call('mount', b'none', b'/tmp', b'tmpfs', 0, None)", FORBIDDEN),
    "makes a user namespace": ("call('unshare', 0x10000000)", FORBIDDEN),
    "changes its root": ("os.chroot('/tmp')", FORBIDDEN),
    "becomes root": ("os.setuid(0)", "OSError Invalid argument"),
    "raises its limits": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "ValueError not allowed to raise maximum limit",
    ),
    "computes without end": (
        "import resource; raise LookupError(resource.getrlimit(resource.RLIMIT_CPU))",
        "LookupError (900, 900)",
    ),
    "types into the terminal": ("open('/dev/tty')", "OSError No such device or address"),
    "opens files without end": (
        "kept = [open('SKILL.md') for _ in range(1000)]",
        "OSError Too many open files",
    ),
    "starts threads without end": (
        "for _ in range(1000): threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "RuntimeError can't start new thread",
    ),
    "fills the disk with one file": (
        "file = open('/tmp/f', 'wb')\nwhile True: file.write(bytes(1 << 20))",
        "OSError File too large",
    ),
    "fills the disk with many files": (
        "for n in range(200): open(f'/tmp/{{n}}', 'wb').write(bytes(1 << 20))",
        "OSError No space left on device",
    ),
}


@pytest.fixture
def settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Settings:
    folder = tmp_path_factory.mktemp("house")
    monkeypatch.chdir(folder)
    (folder / ".env").write_text("OPENAI_API_KEY=secret")
    (folder / "data").mkdir()
    (folder / "data/recado.db").write_bytes(b"messages")
    return Settings(
        _env_file=None, DATA_DIR=folder / "data", DATABASE_URL=f"sqlite:///{folder}/data/recado.db"
    )


@pytest.fixture
def sandbox(settings: Settings) -> Sandbox:
    sandbox = Sandbox(settings)
    fault = sandbox.probe()
    if fault:
        pytest.skip(fault)
    return sandbox


@pytest.fixture
def folder(settings: Settings) -> Path:
    """Where an installed skill lies."""
    folder = settings.data_dir / "skills/tides/0123"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tides\n---\n")
    return folder


@pytest.fixture
def house(settings: Settings) -> Iterator[dict[str, Any]]:
    """What there is to be reached outside."""
    other = settings.data_dir / "skills/other"
    other.mkdir(parents=True)
    path = settings.data_dir / "socket"
    with (
        socket.create_server(("127.0.0.1", 0)) as network,
        socket.socket(socket.AF_UNIX) as local,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        local.bind(str(path))
        local.listen()
        name = f"recado-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield {
            "pid": os.getpid(),
            "env": Path(".env").absolute(),
            "data": settings.data_dir,
            "other": other,
            "database": settings.database,
            "venv": sys.prefix,
            "port": network.getsockname()[1],
            "socket": path,
            "abstract": name,
        }


def run(prefix: list[str], *codes: str, **options: Any) -> str:
    """Return what one program says of each code, a line each: "done", or the error."""
    done = subprocess.run(
        [*prefix, sys.executable, "-I", "-S", "-c", TRIED, *codes],
        capture_output=True,
        text=True,
        timeout=30,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_hostile_code_reaches_nothing_outside(sandbox: Sandbox, folder: Path, house: dict[str, Any]) -> None:
    said = run(sandbox.command(folder), *(code.format(**house) for code, _ in ATTEMPTS.values()))
    got = dict(zip(ATTEMPTS, map(str.strip, said.splitlines()), strict=True))
    assert got == {name: error for name, (_, error) in ATTEMPTS.items()}
    assert [file.name for file in folder.iterdir()] == ["SKILL.md"]


def test_nothing_of_the_environment_is_seen_inside(sandbox: Sandbox, folder: Path) -> None:
    code = (
        "import glob; seen = b''.join(open(f, 'rb').read() for f in glob.glob('/proc/[0-9]*/environ'))\n"
        "raise LookupError(b'SECRET' in seen, sorted(os.environ))"
    )
    said = run(sandbox.command(folder), code, env={"SECRET": "of the server", "HOME": "/root"})
    names = ["HOME", "LANG", "MALLOC_ARENA_MAX", "PATH", "PWD", "TMPDIR"]
    assert said == f"LookupError (False, {names})"


def test_what_was_granted_works_and_no_more(
    sandbox: Sandbox, folder: Path, house: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "read").mkdir()
    (tmp_path / "read/file").write_text("x")
    (tmp_path / "write").mkdir()
    grants = Grants(True, True, (tmp_path / "read",), (tmp_path / "write",))
    expected = {
        f"open('{tmp_path}/read/file').read()": "done",
        f"open('{tmp_path}/read/file', 'w')": READ_ONLY,
        f"open('{tmp_path}/write/file', 'w').write('y')": "done",
        f"socket.create_connection(('127.0.0.1', {house['port']}))": "done",
        "socket.socket(40, socket.SOCK_STREAM)": FORBIDDEN,
        f"socket.socket(socket.AF_UNIX).connect('\\0{house['abstract']}')": FORBIDDEN,
        "socket.socketpair()": "done",
        "assert subprocess.run(['/bin/true']).returncode == 0": "done",
        "call('unshare', 0x10000000)": FORBIDDEN,
        "call('syscall', 56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0)": FORBIDDEN,
        f"open('{house['env']}').read()": NOT_THERE,
    }
    said = run(sandbox.command(folder, grants), *expected).splitlines()
    assert dict(zip(expected, said, strict=True)) == expected
    assert (tmp_path / "write/file").read_text() == "y"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (".", "holds"),
        ("data", "holds"),
        ("data/secrets", "of which only"),
        ("/", "holds"),
        (str(ROOT / "app/skills"), "of which only"),
    ],
)
def test_what_is_the_operators_cannot_be_granted(place: str, reason: str, settings: Settings) -> None:
    sandbox = Sandbox(settings)
    for grants in (Grants(folders_read=(Path(place),)), Grants(folders_write=(Path(place),))):
        with pytest.raises(ValueError, match=reason):
            sandbox.command(settings.data_dir / "skills/tides", grants)
    sandbox.command(Path("data/skills/tides"), Grants(folders_write=(settings.workspace_dir / "people/1",)))


KEPT = "import os, time; os.fork() or os.setsid(); os.fork(); print(1, flush=True); time.sleep(600)"


def processes(mark: str) -> list[int]:
    """Those whose command line has the mark."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in file.read_bytes():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("from_a_server", [False, True])
def test_it_is_killed_whole_and_ends_with_a_server_that_was_killed(
    sandbox: Sandbox, folder: Path, from_a_server: bool
) -> None:
    mark = f"whole-{from_a_server}-{os.getpid()}"
    command = [*sandbox.command(folder, Grants(programs=True)), sys.executable, "-c", KEPT, mark]
    server = [sys.executable, "-c", f"import subprocess; subprocess.run({command!r})"]
    with subprocess.Popen(server if from_a_server else command, stdout=subprocess.PIPE) as process:
        wait_for(lambda: len(processes(mark)) >= 5 + from_a_server, "all of its processes")
        process.kill()
    wait_for(lambda: not processes(mark), "the end of all")


def stand_in(folder: Path, script: str) -> None:
    """A bwrap that is none."""
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def findings(settings: Settings) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.fact, finding.cure) for finding in check_sandbox(settings)]


def test_the_doctor_says_how_to_get_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [(level, fact, cure)] = findings(settings)
    assert level == "WARN"
    assert "is not installed" in fact
    assert "apt install bubblewrap" in cure
    stand_in(tmp_path, "echo 'bwrap: No permissions to create new namespace' >&2; exit 1")
    assert Sandbox(settings).refusal().endswith("No permissions to create new namespace")


def test_a_bubblewrap_that_confines_nothing_is_found_out(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    reason = Sandbox(settings).refusal()
    assert "a trial reached the environment of another process" in reason
    assert str(settings.database) in reason


def test_the_operators_word_turns_it_off(settings: Settings) -> None:
    settings = settings.model_copy(update={"sandbox": "off"})
    sandbox = Sandbox(settings)
    assert sandbox.command(Path("anywhere")) == []
    assert sandbox.refusal() == ""
    assert sandbox.probe()
    [(level, fact, _)] = findings(settings)
    assert level == "WARN"
    assert "SANDBOX=off" in fact


def judged(
    machine: str, granted: tuple[str, ...], number: int, arguments: tuple[int, ...] = (), arch: int = 0
) -> str:
    """What the kernel's packet filter makes of a system call."""
    program = list(confine.filter_of(confine.MACHINES[machine], granted))
    given = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number, arch or confine.MACHINES[machine].arch, 0, *given)
    at = loaded = 0
    while True:
        code, yes, no, value = program[at]
        if code == 0x06:
            return {0x7FFF0000: "allowed", 0x80000000: "killed"}.get(value, os.strerror(value & 0xFFFF))
        if code == 0x20:
            [loaded] = struct.unpack_from("=I", data, value)
        tests = {0x15: loaded == value, 0x35: loaded >= value, 0x45: loaded & value}
        at += 1 + ((yes if tests[code] else no) if code in tests else 0)


FORK, THREAD, NEW_USER = 17, 0x3D0F00, 0x10000011
JUDGED: list[tuple[tuple[str, ...], tuple[int, int], int | tuple[int, ...], str]] = [
    ((), (56, 220), FORK, "Operation not permitted"),
    ((), (56, 220), THREAD, "allowed"),
    (("programs",), (56, 220), FORK, "allowed"),
    (("programs",), (56, 220), NEW_USER, "Operation not permitted"),
    ((), (435, 435), 0, "Function not implemented"),
    ((), (101, 117), 0, "Operation not permitted"),
    (("programs", "network"), (425, 425), 0, "Operation not permitted"),
    ((), (41, 198), socket.AF_UNIX, "allowed"),
    ((), (41, 198), socket.AF_INET, "Operation not permitted"),
    (("network",), (41, 198), socket.AF_INET6, "allowed"),
    (("network",), (41, 198), 40, "Operation not permitted"),
    (("network",), (41, 198), socket.AF_UNIX, "Operation not permitted"),
    (("network",), (53, 199), (socket.AF_UNIX, 0o2000001), "allowed"),
    (("network",), (53, 199), (socket.AF_UNIX, 2), "Operation not permitted"),
    ((), (0, 63), 0, "allowed"),
    ((), (0x40000038, 0x40000038), 0, "Operation not permitted"),
]


def test_the_filter_is_the_same_on_both_machines() -> None:
    for granted, numbers, argument, verdict in JUDGED:
        for machine, number in zip(("x86_64", "aarch64"), numbers, strict=True):
            arguments = argument if isinstance(argument, tuple) else (argument,)
            assert judged(machine, granted, number, arguments) == verdict
