"""The typing sign: shown while a turn runs, and never in its way."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from app.messages import Channel

log = structlog.get_logger(__name__)

EVERY_SECONDS = 20.0
"""WhatsApp takes the sign away after 25 s."""
LIMIT_SECONDS = 5.0


class Typing:
    """Owns the tasks that show it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def shown(self, channel: Channel, message_id: str) -> Iterator[None]:
        """Marks the message read and shows the sign, again every 20 s, until the block ends."""
        if not message_id:
            yield
            return
        loop = asyncio.get_running_loop()
        again: asyncio.TimerHandle

        def show() -> None:
            nonlocal again
            self._show(channel, message_id)
            again = loop.call_later(EVERY_SECONDS, show)

        show()
        try:
            yield
        finally:
            again.cancel()

    async def close(self) -> None:
        """Ends what still shows it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _show(self, channel: Channel, message_id: str) -> None:
        """Shows it in a task of its own: a quick turn does not cut it off."""
        task = asyncio.create_task(channel.typing(message_id))
        limit = asyncio.get_running_loop().call_later(LIMIT_SECONDS, _give_up, task)

        def ended(task: asyncio.Task[None]) -> None:
            limit.cancel()
            self._tasks.discard(task)

        self._tasks.add(task)
        task.add_done_callback(ended)


def _give_up(task: "asyncio.Task[None]") -> None:
    log.debug("typing was not shown in time")
    task.cancel()
