"""Show the typing sign while a turn runs, without delaying it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import structlog

from app.messages import Channel
from app.tasks import end_tasks

log = structlog.get_logger(__name__)

TYPING_SECONDS = 20.0  # WhatsApp takes the sign away after 25 s
TYPING_LIMIT_SECONDS = 5.0  # of the request that shows it


class TypingIndicator:
    """Shows that an answer is being written: owns the tasks of that sign."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def shown(self, channel: Channel, message_id: str) -> Iterator[None]:
        """Mark the message read and show the sign until the block ends; a quick turn does not cut it off."""
        ended = asyncio.Event()
        if message_id:
            task = asyncio.create_task(_show(channel, message_id, ended))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            yield
        finally:
            ended.set()

    async def close(self) -> None:
        await end_tasks(*self._tasks)


async def _show(channel: Channel, message_id: str, ended: asyncio.Event) -> None:
    while not ended.is_set():
        try:
            async with asyncio.timeout(TYPING_LIMIT_SECONDS):
                await channel.typing(message_id)
        except TimeoutError:
            log.debug("typing was not shown in time")
        with suppress(TimeoutError):
            async with asyncio.timeout(TYPING_SECONDS):
                await ended.wait()
