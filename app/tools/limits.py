"""Limits of calls: how often a person may call a tool, and how many threads run plain functions."""

import asyncio
import contextvars
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

WINDOW = 60.0
MOST_PER_MINUTE = 6000


class Rates:
    """The times of the last minute's calls by tool and person; `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._starts: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def wait(self, tool: str, person: str, per_minute: int) -> float:
        """Return the seconds until a call could start; take no place."""
        return _wait(self._starts.get((tool, person), ()), self._clock(), per_minute)

    def reserve(self, tool: str, person: str, per_minute: int, within: float = 0.0) -> float:
        """Return the seconds until this call may start; take its place only if they are fewer than `within`.

        A call that may start now always gets its place.
        """
        now = self._clock()
        while self._starts and next(iter(self._starts.values()))[-1] <= now - WINDOW:
            self._starts.popitem(last=False)
        starts = self._starts.get((tool, person), deque())
        while starts and starts[0] <= now - WINDOW:
            starts.popleft()
        wait = _wait(starts, now, per_minute)
        if wait == 0 or wait < within:
            starts.append(now + wait)
            self._starts[tool, person] = starts
            self._starts.move_to_end((tool, person))
        return wait


def _wait(starts: Sequence[float], now: float, per_minute: int) -> float:
    return 0.0 if len(starts) < per_minute else max(0.0, starts[-per_minute] + WINDOW - now)


class DaemonThreads:
    """Runs plain functions off the loop, `limit` at once, besides at most `lost_limit` that hang."""

    def __init__(self, limit: int = 32, lost_limit: int = 64) -> None:
        self._free = asyncio.Semaphore(limit)
        self._lost_limit = lost_limit
        self.lost = 0
        """The number of threads whose call nobody waits for any more."""

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return or raise what `function` does; SystemExit and KeyboardInterrupt become RuntimeError.

        If the wait is cancelled, the function goes on, unless it had not started.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def work() -> None:
            outcome = context.run(_outcome, function)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(ended.set_result, outcome)

        try:
            threading.Thread(target=work, name="tool", daemon=True).start()
            value, error = await asyncio.shield(ended)
        except asyncio.CancelledError:
            self._leave(ended)
            raise
        except BaseException:  # the machine gives no more threads
            self._free.release()
            raise
        self._free.release()
        if error is not None:
            raise error
        return value

    def _leave(self, ended: "asyncio.Future[Any]") -> None:
        """Let others have the place of a call that goes on, while not too many do."""
        if self.lost >= self._lost_limit:
            ended.add_done_callback(lambda _: self._free.release())
            return

        def found(_: object) -> None:
            self.lost -= 1

        self.lost += 1
        self._free.release()
        ended.add_done_callback(found)


def _outcome(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error
    except BaseException as error:  # exit() in a tool ends the tool, not the server
        return None, RuntimeError(f"the tool raised {type(error).__name__}")
