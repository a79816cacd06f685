"""Webhooks and the writer before turns: neither what is taken in nor what is written down waits for many."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from types import TracebackType

LONGEST_SECONDS = 0.006
MOST_AT_ONCE = 4
"""Turns that go on in one pass of the loop, as long as they come to its end quickly."""
_QUICK_SECONDS = 0.0005


class RightOfWay:
    """Held by who takes in a webhook (`with`), and by the writer while it runs functions (`writing`); turns
    `give` way wherever they have waited anyway.

    While it is held no turn goes on. Webhooks and the writer each have `longest_seconds` in a row at most:
    neither a slow disk nor webhooks that come one upon the other stop turns. Else they go on in the order in
    which they came, one in each pass of the loop, or a few where the last went on just before: so a hundred
    answers that arrive together do not stand before the next webhook.
    """

    def __init__(self, longest_seconds: float = LONGEST_SECONDS) -> None:
        self._webhooks = _Holders(longest_seconds)
        self._writer = _Holders(longest_seconds)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._next_pass: asyncio.Handle | None = None
        self._is_held = False
        """The next pass waits for one who holds it."""
        self._last_went_on = 0.0
        self._at_once = 1

    def __enter__(self) -> None:
        self._webhooks.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._webhooks.leave()
        self._look_again()

    def writing(self, loop: asyncio.AbstractEventLoop) -> AbstractContextManager[None]:
        """For the writer's thread, to be entered for each batch. After each statement it waits for the
        interpreter, which the turns of this loop would keep from it."""

        def left() -> None:
            if self._is_held:
                with suppress(RuntimeError):  # the loop closed first: nobody waits
                    loop.call_soon_threadsafe(self._look_again)

        return _Inside(self._writer, left)

    async def give(self) -> None:
        """Returns when it is the caller's turn to go on."""
        loop = asyncio.get_running_loop()
        if self._next_pass is None:
            self._next_pass = loop.call_soon(self._pass)
            if not (self._webhooks.inside or self._writer.inside):
                return
        waiter = loop.create_future()
        self._waiting.append(waiter)
        await waiter

    def _look_again(self) -> None:
        """Before its time, for one who held it left."""
        if self._is_held and self._next_pass is not None:
            self._next_pass.cancel()
            self._pass()

    def _pass(self) -> None:
        """Lets those go on that have waited longest, and looks again in the next pass."""
        if not self._waiting:
            self._next_pass = None
            return
        loop = asyncio.get_running_loop()
        if self._webhooks.inside or self._writer.inside:
            self._is_held = True  # before the look: the writer may leave right after it
            held = max(self._webhooks.hold_up(), self._writer.hold_up())
            if held > 0:
                self._next_pass = loop.call_later(held, self._pass)
                return
        self._is_held = self._webhooks.keeps_waiting = self._writer.keeps_waiting = False
        now = time.monotonic()
        were_quick = now - self._last_went_on < _QUICK_SECONDS
        self._at_once = min(2 * self._at_once, MOST_AT_ONCE) if were_quick else 1
        self._last_went_on = now
        going = 0
        while self._waiting and going < self._at_once:
            waiter = self._waiting.popleft()
            if not waiter.done():  # cancelled meanwhile
                waiter.set_result(None)
                going += 1
        self._next_pass = loop.call_soon(self._pass) if going else None


class _Holders:
    """Those of one kind that hold it, together at most `longest_seconds` until turns went on again."""

    def __init__(self, longest_seconds: float) -> None:
        self._longest_seconds = longest_seconds
        self.inside = 0
        """How many hold it now."""
        self._since = 0.0
        self.keeps_waiting = False
        """Turns were held up, and none went on since: who comes next may not do so from the start."""

    def enter(self) -> None:
        if not (self.inside or self.keeps_waiting):
            self._since = time.monotonic()
        self.inside += 1

    def leave(self) -> None:
        self.inside -= 1

    def hold_up(self) -> float:
        """For how many seconds turns that wait now are to wait at most."""
        if not self.inside:
            return 0.0
        left = max(self._since + self._longest_seconds - time.monotonic(), 0.0)
        self.keeps_waiting = self.keeps_waiting or left > 0
        return left


class _Inside(AbstractContextManager[None]):
    """Those of one kind hold it; `left` is told of the end."""

    def __init__(self, holders: _Holders, left: Callable[[], None]) -> None:
        self._holders = holders
        self._left = left

    def __enter__(self) -> None:
        self._holders.enter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._holders.leave()
        self._left()
