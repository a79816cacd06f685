"""Background tasks, and threads for plain functions, one of which may hang."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any


async def end_tasks(*tasks: "asyncio.Task[Any] | None") -> None:
    """Cancel what still runs, and wait for its end."""
    left = [task for task in tasks if task is not None and not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.gather(*left, return_exceptions=True)


def start_task(
    tasks: "set[asyncio.Task[None]]", work: Coroutine[Any, Any, None], name: str | None = None
) -> "asyncio.Task[None]":
    """Start a task that stays in `tasks` until it ends: the loop itself does not keep hold of it."""
    task = asyncio.create_task(work, name=name)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    return task


class DaemonThreads:
    """Runs plain functions off the loop, `limit` at once; one that hangs keeps its place."""

    def __init__(self, limit: int = 64) -> None:
        self._free = asyncio.Semaphore(limit)

    async def run(self, function: Callable[[], Any]) -> Any:
        """Return or raise what `function` does; SystemExit and KeyboardInterrupt become RuntimeError.

        If the wait is cancelled, the function goes on, unless it had not started.
        """
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        ended.add_done_callback(lambda _: self._free.release())
        context = contextvars.copy_context()

        def work() -> None:
            outcome = context.run(_outcome, function)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(ended.set_result, outcome)

        try:
            threading.Thread(target=work, name="tool", daemon=True).start()
        except RuntimeError:  # the machine gives no more threads
            ended.cancel()
            raise
        value, error = await asyncio.shield(ended)
        if error is not None:
            raise error
        return value


def _outcome(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return function(), None
    except Exception as error:
        return None, error
    except BaseException as error:  # exit() in a tool ends the tool, not the server
        return None, RuntimeError(f"the tool raised {type(error).__name__}")
