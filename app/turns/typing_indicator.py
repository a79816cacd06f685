"""Show the typing sign while a turn runs, without delaying it."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager

import structlog

from app.messages import Channel

log = structlog.get_logger(__name__)

EVERY_SECONDS = 20.0  # WhatsApp takes the sign away after 25 s
LIMIT_SECONDS = 5.0


class TypingIndicator:
    """Owns the tasks that show the sign."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def shown(self, channel: Channel, message_id: str) -> Iterator[None]:
        """Mark the message read and show the sign until the block ends."""
        if not message_id:
            yield
            return
        task = self._own(self._repeat(channel, message_id))
        try:
            yield
        finally:
            task.cancel()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, channel: Channel, message_id: str) -> None:
        while True:
            self._own(self._show(channel, message_id))  # its own task: a quick turn does not cut it off
            await asyncio.sleep(EVERY_SECONDS)

    async def _show(self, channel: Channel, message_id: str) -> None:
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await channel.typing(message_id)
        except TimeoutError:
            log.debug("typing was not shown in time")

    def _own(self, work: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
