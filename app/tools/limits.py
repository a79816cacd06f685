"""Limits of calls: how often a person may call a tool, and how many threads run plain functions."""

import asyncio
import contextvars
import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

WINDOW = 60.0
MOST_PER_MINUTE = 6000
_MOST_KEPT = 100_000


class Rates:
    """The times of the last minute's calls by tool and person.

    `clock` gives seconds that never go back. Where more than 100,000 times would have to be kept, those of
    whoever called longest ago are forgotten.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starts: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._kept = 0

    def wait(self, tool: str, person: str, per_minute: int) -> float:
        """Return the seconds until a call could start; take no place."""
        return _wait(self._starts.get((tool, person), ()), self._clock(), per_minute)

    def reserve(self, tool: str, person: str, per_minute: int, within: float = 0.0) -> float:
        """Return the seconds until this call may start; take its place only if they are fewer than `within`.

        A call that may start now always gets its place.
        """
        now = self._clock()
        starts = self._starts.setdefault((tool, person), deque())
        self._starts.move_to_end((tool, person))
        while starts and starts[0] <= now - WINDOW:
            starts.popleft()
            self._kept -= 1
        wait = _wait(starts, now, per_minute)
        if wait == 0 or wait < within:
            starts.append(now + wait)
            self._kept += 1
            self._forget()
        return wait

    def _forget(self) -> None:
        """Drop the times that are over, and beyond the bound those of whoever called longest ago."""
        long_ago = self._clock() - WINDOW
        while len(self._starts) > 1:
            key, starts = next(iter(self._starts.items()))
            if self._kept <= _MOST_KEPT and starts and starts[-1] > long_ago:
                return
            self._kept -= len(starts)
            del self._starts[key]


def _wait(starts: Sequence[float], now: float, per_minute: int) -> float:
    return 0.0 if len(starts) < per_minute else max(0.0, starts[-per_minute] + WINDOW - now)


@dataclass(slots=True)
class _Job:
    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[tuple[Any, BaseException | None]]
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    state: str = "waiting"  # then "running", and "left" once nobody waits for it


class DaemonThreads:
    """Runs plain functions off the loop, `limit` at once, besides at most `lost_limit` that hang."""

    def __init__(self, limit: int = 32, lost_limit: int = 64, idle_seconds: float = 30.0) -> None:
        self._limit = limit
        self._lost_limit = lost_limit
        self._idle_seconds = idle_seconds
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._alive = 0
        self._idle = 0
        self._lost = 0
        self._queued = 0

    @property
    def lost(self) -> int:
        """Return the number of threads whose call nobody waits for any more."""
        return self._lost

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return or raise what `function` does; SystemExit and KeyboardInterrupt become RuntimeError.

        If the wait is cancelled, the function goes on, unless it had not started.
        """
        loop = asyncio.get_running_loop()
        job = _Job(function, loop, loop.create_future())
        with self._lock:
            self._queued += 1
            if self._queued > self._idle and self._alive - self._lost < self._limit:
                self._start_thread()
        self._jobs.put(job)
        try:
            value, error = await job.future
        except asyncio.CancelledError:
            self._leave(job)
            raise
        if error is not None:
            raise error
        return value

    def _start_thread(self) -> None:
        self._alive += 1
        try:
            threading.Thread(target=self._work, name="tool", daemon=True).start()
        except RuntimeError:  # the machine gives no more threads; the living ones will take the job
            self._alive -= 1
            if self._alive == 0:
                self._queued -= 1
                raise

    def _leave(self, job: _Job) -> None:
        with self._lock:
            if job.state == "running" and self._lost < self._lost_limit:
                self._lost += 1
                job.state = "left"
                if self._queued > self._idle and self._alive - self._lost < self._limit:
                    self._start_thread()
            elif job.state == "waiting":
                job.state = "left"

    def _work(self) -> None:
        while True:
            job = self._next()
            if job is None:
                return
            outcome = _outcome(job)
            with self._lock:
                if job.state == "left":
                    self._lost -= 1
                job.state = "done"
                surplus = self._alive - self._lost > self._limit
                if surplus:
                    self._alive -= 1
            _hand_back(job, outcome)
            if surplus:
                return

    def _next(self) -> _Job | None:
        """Return the next job that somebody waits for; `None` when this thread should end."""
        while True:
            with self._lock:
                self._idle += 1
            try:
                job = (
                    self._jobs.get(timeout=self._idle_seconds)
                    if self._idle_seconds
                    else self._jobs.get(False)
                )
            except queue.Empty:
                with self._lock:
                    self._idle -= 1
                    if self._queued:  # a job was announced just now
                        continue
                    self._alive -= 1
                    return None
            with self._lock:
                self._idle -= 1
                self._queued -= 1
                if job.state == "waiting":
                    job.state = "running"
                    return job


def _outcome(job: _Job) -> tuple[Any, BaseException | None]:
    try:
        return job.context.run(job.function), None
    except Exception as error:
        return None, error
    except BaseException as error:  # exit() in a tool ends the tool, not the server
        return None, RuntimeError(f"the tool raised {type(error).__name__}")


def _hand_back(job: _Job, outcome: tuple[Any, BaseException | None]) -> None:
    def settle() -> None:
        if not job.future.done():
            job.future.set_result(outcome)

    try:
        job.loop.call_soon_threadsafe(settle)
    except RuntimeError:  # the loop is closed: nobody waits any more
        return
