"""The typing sign: shown while a turn runs, and never in its way."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

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
        task = self._own(self._repeat(channel, message_id)) if message_id else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def close(self) -> None:
        """Ends what still shows it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, channel: Channel, message_id: str) -> None:
        while True:
            self._own(self._show(channel, message_id))  # a task of its own: a quick turn does not cut it off
            await asyncio.sleep(EVERY_SECONDS)

    async def _show(self, channel: Channel, message_id: str) -> None:
        try:
            async with asyncio.timeout(LIMIT_SECONDS):
                await channel.typing(message_id)
        except TimeoutError:
            log.debug("typing was not shown in time")

    def _own(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
