"""Webhooks before turns: what is taken in waits for one step of one turn at most."""

import asyncio
import time
from collections import deque
from types import TracebackType

LONGEST_SECONDS = 0.006
_LOOK_SECONDS = 0.0005


class RightOfWay:
    """Entered (`with`) by who takes in a webhook; turns `give` way wherever they have waited anyway.

    While a webhook is inside no turn goes on, at most `longest_seconds` in a row: neither a slow disk nor
    webhooks that come one upon the other stop them. Else one goes on in each pass of the loop, in the order
    in which they came, so that a hundred answers which arrive together do not stand before the webhook that
    comes next.
    """

    def __init__(self, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._longest_seconds = longest_seconds
        self._inside = 0
        self._since = 0.0
        self._keeps_waiting = False
        """A turn was held up, and none went on since: the next webhook may not do so from the start."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_pass: asyncio.Handle | None = None

    def __enter__(self) -> None:
        if not self._inside and not self._keeps_waiting:
            self._since = time.monotonic()
        self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside -= 1

    async def give(self) -> None:
        """Returns when it is the caller's turn to go on."""
        loop = asyncio.get_running_loop()
        if self._next_pass is None:
            self._next_pass = loop.call_soon(self._pass)
            if not self._taken:
                return
        waiter = loop.create_future()
        self._waiting.append(waiter)
        await waiter

    @property
    def _taken(self) -> bool:
        return self._inside > 0 and time.monotonic() - self._since < self._longest_seconds

    def _pass(self) -> None:
        """Lets the first that still waits go on, and looks again in the next pass."""
        loop = asyncio.get_running_loop()
        self._next_pass = None
        if self._taken:
            self._keeps_waiting = True
            self._next_pass = loop.call_later(_LOOK_SECONDS, self._pass)
            return
        self._keeps_waiting = False
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():  # cancelled meanwhile
                waiter.set_result(None)
                self._next_pass = loop.call_soon(self._pass)
                return
