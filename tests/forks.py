"""Servers that start at once: forked from a process that has already imported what a server needs."""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_STARTS_WITH = ["app.cli", "app.commands.serving", "app.observe.logs", "app.server", __name__]
_NEEDS_SOON = ["app.llm.client", "aiohttp", "griffe", "markdown_it", "phonenumbers", "uvloop"]
_FORKS.set_forkserver_preload([*_STARTS_WITH, *_NEEDS_SOON])


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


def _serve(folder: Path, env: dict[str, str], log: Path) -> None:
    from app.cli import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    os.closerange(3, 1024)  # what the forking needed: a server has nothing open that it did not open
    with log.open("ab") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.argv = ["recado", "serve"]
    main()
