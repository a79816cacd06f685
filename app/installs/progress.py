"""What a person is told while an install takes long."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType

FIRST_SECONDS = 8.0
"""Nobody minds waiting so long without a word."""
BETWEEN_SECONDS = 20.0
MOST_TOLD = 3

Tell = Callable[[int, str], Awaitable[None]]
"""Sends the notice of that number; one sent before a crash is not sent again."""


class Progress:
    """Tells of the stage that a work has come to, each stage once: at most three notices, none of a short
    work."""

    def __init__(
        self, tell: Tell, stage: str, *, first: float = FIRST_SECONDS, between: float = BETWEEN_SECONDS
    ) -> None:
        self._tell = tell
        self._stage = stage
        self._first = first
        self._between = between
        self._changed = asyncio.Event()
        self._changed.set()
        self._telling: asyncio.Task[None] | None = None

    def reach(self, stage: str) -> None:
        """The work has come to a stage, in a sentence for the person."""
        if stage != self._stage:
            self._stage = stage
            self._changed.set()

    async def __aenter__(self) -> "Progress":
        self._telling = asyncio.create_task(self._follow(), name="progress of an install")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _follow(self) -> None:
        await asyncio.sleep(self._first)
        for number in range(MOST_TOLD):
            await self._changed.wait()
            self._changed.clear()
            await self._tell(number, self._stage)
            await asyncio.sleep(self._between)
