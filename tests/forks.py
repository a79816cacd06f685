"""Servers and commands that start at once: forked from a process that has imported what they need."""

import gc
import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FORKS = multiprocessing.get_context("forkserver")
_STARTS_WITH = ["tests.chaos.faults", "app.cli", "app.cli.server", "app.ops.logs", "app.server", __name__]
_NEEDS_SOON = [
    *("app.assistant", "app.llm.connection", "app.llm.offline.model", "app.main", "app.simulator.simulator"),
    *("aiohttp", "anyio._backends._asyncio", "griffe", "httpx2", "markdown_it", "phonenumbers"),
]
_LAUNCHERS = ["tests.standins.reaching_server", "tests.chaos.deaf"]
_FORKS.set_forkserver_preload([*_STARTS_WITH, *_NEEDS_SOON, *_LAUNCHERS, "tests.warm"])
SERVE = ("app.cli", "serve")


class ForkedServer:
    """A server in a process of its own, its imports done; what tests use of `subprocess.Popen`."""

    def __init__(
        self, folder: Path, env: dict[str, str], log: Path, command: tuple[str, ...] = SERVE
    ) -> None:
        files = (Path(os.devnull), log, log)
        self._process = _FORKS.Process(target=_become, args=(command, folder, env, files), daemon=True)
        self._process.start()
        self.pid = int(self._process.pid or 0)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired("recado serve", timeout)
        return status


def run_recado(
    arguments: Sequence[str], folder: Path, env: dict[str, str], *, typed: str = "", seconds: float = 60
) -> "subprocess.CompletedProcess[str]":
    """`recado` with these arguments in a process of its own, its imports done. Raises TimeoutExpired."""
    with tempfile.TemporaryDirectory() as name:
        files = tuple(Path(name, stream) for stream in ("in", "out", "err"))
        os.mkfifo(files[0])  # a pipe, as in a shell
        threading.Thread(target=files[0].write_text, args=(typed,), daemon=True).start()
        command = ("app.cli", *arguments)
        process = _FORKS.Process(target=_become, args=(command, folder, env, files), daemon=True)
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["recado", *arguments], seconds)
        told, faults = (file.read_text() for file in files[1:])
        return subprocess.CompletedProcess(["recado", *arguments], process.exitcode, told, faults)


def start_at_terminal(
    arguments: Sequence[str], folder: Path, env: dict[str, str], terminal: Path
) -> multiprocessing.process.BaseProcess:
    """Start `recado` with these arguments at a terminal, which it has to itself."""
    command, files = ("app.cli", *arguments), (terminal, terminal, terminal)
    process = _FORKS.Process(target=_become, args=(command, folder, env, files), daemon=True)
    process.start()
    return process


def _become(
    command: tuple[str, ...], folder: Path, env: dict[str, str], files: tuple[Path, Path, Path]
) -> None:
    """Run the `main` of a module with arguments, as a program of its own."""
    from tests.chaos import faults

    module, *arguments = command
    gc.freeze()  # what was imported before: a collection would copy all of it
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    os.closerange(3, 1024)  # what the forking needed: a command has nothing open that it did not open
    if files[0] == files[1]:
        os.setsid()  # the first terminal that is opened now is the session's
    for descriptor, path in enumerate(files):
        with path.open("ab" if descriptor else "rb") as file:
            os.dup2(file.fileno(), descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (multiprocessing put another there)
    if os.isatty(1):
        sys.stdout, sys.stderr = (open(fd, "w", encoding="utf-8", closefd=False) for fd in (1, 2))  # noqa: SIM115
    sys.argv = ["recado", *arguments]
    _import_from(Path(entry) for entry in env.get("PYTHONPATH", "").split(":"))
    faults.switch_on()
    importlib.import_module(module).main()


def _import_from(paths: Iterable[Path]) -> None:
    """Import from these paths first; another copy of ours on one of them replaces what is warm."""
    new = [path for path in paths if path not in (ROOT, Path())]
    sys.path[:0] = map(str, new)
    if any((path / "app").is_dir() for path in new):
        for name in [name for name in sys.modules if name.partition(".")[0] == "app"]:
            del sys.modules[name]
