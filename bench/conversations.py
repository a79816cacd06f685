"""People who write and wait for their answers, and loops that do the same job without them."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.client import SAID, Connection, new_message, phone
from bench.measure import cpu_seconds
from bench.postgres import PostgresServer
from bench.process import ROOT, STOP_SECONDS, Measured
from bench.standin import StandIn

TURN_SECONDS = 30.0
AFTERWARDS = 0.1
"""Seconds in which what follows a reply is written down, before the CPU is read."""


class Talk:
    """Conversations with a server."""

    def __init__(
        self,
        server: Measured,
        world: StandIn,
        said: str = SAID,
        database: PostgresServer | None = None,  # whose CPU counts too
    ) -> None:
        self.server = server
        self._database = database
        self._world = world
        self._said = said

    async def turns(self, people: Iterable[int], at_once: int = 1) -> list[float]:
        """One message from each, so many at a time; seconds from each message to its answer."""
        times: list[float] = []
        left = iter(people)
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(self._lane(left, times))
        return times

    async def cpu(self, people: Iterable[int], at_once: int = 1) -> float:
        """Milliseconds of CPU a turn."""
        before, calls = self._cpu, self._world.model_calls
        times = await self.turns(people, at_once)
        await asyncio.sleep(AFTERWARDS)
        self._world.expect_turns(len(times), since=calls)
        return (self._cpu - before) * 1000 / len(times)

    @property
    def _cpu(self) -> float:
        return self.server.cpu + (self._database.cpu if self._database else 0.0)

    async def _lane(self, people: Iterator[int], times: list[float]) -> None:
        connection = await Connection.open(self.server.url)
        for n in people:
            answered = self._world.sent_to(phone(n))
            _, request = new_message(phone(n), self._said)
            started = time.perf_counter()
            async with asyncio.timeout(TURN_SECONDS):
                await connection.send(request)
                await answered
            times.append(time.perf_counter() - started)
        connection.close()


class Loop:
    """One of the loops of bench/loops.py, in a process of its own."""

    def __init__(self, name: str, job: Path, world: StandIn, python: str = sys.executable) -> None:
        self._world = world
        self._command = [python, "-m", "bench.loops", name, str(job)]
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Loop":
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def turns(self, count: int, at_once: int = 1) -> list[float]:
        """Runs so many turns; the seconds of each."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count} {at_once}\n")
        self._process.stdin.flush()
        line = await asyncio.wait_for(asyncio.to_thread(self._process.stdout.readline), TURN_SECONDS + count)
        if not line:
            raise RuntimeError(f"{self._command} ended with {self._process.wait(STOP_SECONDS)}")
        return [float(seconds) for seconds in json.loads(line)]

    async def cpu(self, count: int, at_once: int = 1) -> float:
        """Milliseconds of CPU a turn."""
        assert self._process is not None
        before, calls = cpu_seconds(self._process.pid), self._world.model_calls
        times = await self.turns(count, at_once)
        self._world.expect_turns(count, since=calls)
        return (cpu_seconds(self._process.pid) - before) * 1000 / len(times)


async def record_job(talk: Talk, world: StandIn, person: int, latency_ms: int, path: Path) -> None:
    """Writes down what the server asked its model in one turn, so that the loops ask the same."""
    world.keep = True
    await talk.turns([person])
    world.keep = False
    classify, first, *_, last = world.kept
    world.kept = []
    if "21.5" not in last["messages"][-1]["content"]:
        raise RuntimeError(f"the gauges were not read: {last['messages'][-1]}")
    job: dict[str, Any] = {
        "model": f"{world.url}/{latency_ms}/v1",
        "graph": world.url,
        "classify": classify["messages"],
        "messages": first["messages"],
        "tools": first["tools"],
    }
    path.write_text(json.dumps(job), "utf-8")
