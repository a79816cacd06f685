"""Servers and commands that start at once: forked from a process that has imported what they need."""

import gc
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_STARTS_WITH = ["app.cli", "app.cli.server", "app.ops.logs", "app.server", __name__]
_NEEDS_SOON = [
    *("app.assistant", "app.llm.connection", "app.llm.offline.model", "app.main", "app.simulator.simulator"),
    *("aiohttp", "anyio._backends._asyncio", "griffe", "httpx2", "markdown_it", "phonenumbers", "uvloop"),
]
_FORKS.set_forkserver_preload([*_STARTS_WITH, *_NEEDS_SOON, "tests.warm"])


class ForkedServer:
    """`recado serve` in a process of its own, its imports done; what tests use of `subprocess.Popen`."""

    def __init__(self, folder: Path, env: dict[str, str], log: Path) -> None:
        self._process = _FORKS.Process(target=_serve, args=(folder, env, log), daemon=True)
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
        process = _FORKS.Process(target=_become, args=(list(arguments), folder, env, files), daemon=True)
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(["recado", *arguments], seconds)
        told, faults = (file.read_text() for file in files[1:])
        return subprocess.CompletedProcess(["recado", *arguments], process.exitcode, told, faults)


def _serve(folder: Path, env: dict[str, str], log: Path) -> None:
    _become(["serve"], folder, env, (Path(os.devnull), log, log))


def _become(arguments: list[str], folder: Path, env: dict[str, str], files: tuple[Path, Path, Path]) -> None:
    from app.cli import main

    gc.freeze()  # what was imported before: a collection would copy all of it
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    os.closerange(3, 1024)  # what the forking needed: a command has nothing open that it did not open
    for descriptor, path in enumerate(files):
        with path.open("ab" if descriptor else "rb") as file:
            os.dup2(file.fileno(), descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (multiprocessing put another there)
    sys.argv = ["recado", *arguments]
    main()
