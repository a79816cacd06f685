"""The processes that are measured: a release with the benchmark's skill, and what stands beside it."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from bench.client import NUMBER, SECRET, Connection
from bench.gauges import SKILL, write_skill
from bench.measure import cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
START_SECONDS = 30.0
STOP_SECONDS = 15.0


class Measured:
    """A process of its own with a port; stopped at the end of its `with` block."""

    def __init__(self, folder: Path, arguments: list[str], env: dict[str, str], *, cwd: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = [argument.replace("{port}", str(self.port)) for argument in arguments]
        self._env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(cwd), "PORT": str(self.port), **env}
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None
        self.launcher: Sequence[str] = ()
        """What it runs under."""
        self.start_seconds = START_SECONDS

    def __enter__(self) -> "Measured":
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "process.log").open("ab") as log:
            self._process = self._popen(log)
        return self

    def _popen(self, log: IO[bytes]) -> "subprocess.Popen[bytes]":
        command = [*self.launcher, sys.executable, *self._arguments]
        return subprocess.Popen(command, cwd=self._cwd, env=self._env, stdout=log, stderr=log)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def cpu(self) -> float:
        """CPU seconds so far."""
        return cpu_seconds(self.pid)

    async def answers(self, path: str = "/health") -> None:
        """Waits until a GET is answered with 200. Raises where the process ended or took too long."""
        assert self._process is not None
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        until = time.monotonic() + self.start_seconds
        while time.monotonic() < until and self._process.poll() is None:
            try:
                connection = await Connection.open(self.url)
            except OSError:
                await asyncio.sleep(0.005)
                continue
            await connection.send(request)
            connection.close()
            return
        log = (self.folder / "process.log").read_text("utf-8", "replace")
        raise RuntimeError(f"{self._arguments} did not start:\n{log[-3000:]}")

    async def settled(self) -> None:
        """Waits until it does nothing any more: what it loads in the background would count otherwise."""
        until = time.monotonic() + self.start_seconds
        while time.monotonic() < until:
            before = self.cpu
            await asyncio.sleep(0.5)
            if self.cpu - before < 0.005:
                return
        raise RuntimeError(f"{self._arguments} does not come to rest")


class Release:
    """A copy of the program with the benchmark's skill among those shipped with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept_out = shutil.ignore_patterns(".*")
        shutil.copytree(ROOT / "app", folder / "app", ignore=kept_out)
        shutil.copytree(ROOT / "skills", folder / "skills", ignore=kept_out)
        write_skill(folder / "skills" / SKILL)
        with (folder / "skills" / "bundled.txt").open("a") as file:
            file.write(f"{SKILL}\n")

    def server(self, data: Path, graph: str, *, model: str = "", **env: str) -> Measured:
        """`recado serve` over a data folder, with everybody's messages answered at once."""
        model_env = {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none", "LLM_MODEL": "stand-in"}
        settings = {
            "DATABASE_URL": f"sqlite:///{data}/recado.db",
            "SKILLS_DIR": str(data / "skills"),
            "WHATSAPP_ACCESS_TOKEN": "access-token-of-the-benchmark",
            "WHATSAPP_PHONE_NUMBER_ID": NUMBER,
            "WHATSAPP_VERIFY_TOKEN": "verify-token-of-the-benchmark",
            "WHATSAPP_APP_SECRET": SECRET,
            "WHATSAPP_API_URL": f"{graph}/v25.0",
            "BURST_QUIET_SECONDS": "0",
            "RATE_LIMIT_MAX": "0",
            "TIMEZONE": "UTC",
            **(model_env if model else {}),
            **env,
        }
        return Measured(data, ["-m", "app", "serve"], settings, cwd=self.folder)


def bare(folder: Path, app: str = "plain") -> Measured:
    """A FastAPI application in uvicorn, one worker, as its documentation starts it: see bench/bare.py."""
    arguments = ["-m", "uvicorn", f"bench.bare:{app}", "--port", "{port}"]
    quiet = ["--log-level", "warning", "--no-access-log"]
    return Measured(folder, [*arguments, *quiet], {"BARE_FOLDER": str(folder)}, cwd=ROOT)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
