"""Futures that are waited for so long each, with one timer for all: one for each is a good part of what a
webhook costs."""

import asyncio
from collections import deque
from typing import Any


class Deadlines:
    """Gives each future `seconds` from when it was added; then it ends with TimeoutError."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, future: "asyncio.Future[Any]") -> None:
        """Must be called on the loop."""
        loop = asyncio.get_running_loop()
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()
        self._waiting.append((loop.time() + self._seconds, future))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        while self._waiting:
            due, future = self._waiting[0]
            if not future.done() and due > loop.time():
                self._timer = loop.call_at(due, self._look)
                return
            self._waiting.popleft()
            if not future.done():
                future.set_exception(TimeoutError())
                future.exception()  # seen: who gave up meanwhile leaves nobody else to do so
