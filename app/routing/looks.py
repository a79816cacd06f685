"""Looks at what is on the disk: one at a time, shared by all who ask meanwhile, waited for so long."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

FIRST_SECONDS = 30.0
"""That a message waits for its first look: without one there is nothing that could be done for anybody."""
_STEADY_SECONDS = 0.1
"""By how much the two clocks of a machine may differ that nobody has set."""


class Looks:
    """Has `look` done again and again; who waits does so for `patience` seconds of it at most."""

    def __init__(self, look: Callable[[], Awaitable[None]], patience: float) -> None:
        self._look = look
        self._patience = patience
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None
        self._began = 0.0
        self._seen_began = self._seen_at = 0.0
        """When the last look that succeeded began: monotonic, and in Unix seconds."""
        self._asked_at = 0.0

    async def wait(self, since: float | None = None, *, lacks: bool = False) -> None:
        """Returns after a look that sees all that the caller knows of. Beyond `patience` the look goes on by
        itself, and the caller with what there is; a message waits longer for a first look.

        One look at a time; whoever asks during one waits for the next, which sees all that they know of. Of
        who knows of nothing later than `since` (Unix seconds) a look that began after that is enough: so
        messages that come together share one. `lacks`: no look so far was for the likes of the caller.
        """
        if since is not None and not lacks and self._has_looked_since(max(since, self._asked_at)):
            return
        if since is None:
            self._asked_at = time.time()  # whoever asks so may have changed something
        coming = self._coming()
        began = time.monotonic() if self._running is None else self._began
        patience = FIRST_SECONDS if since is not None and lacks else self._patience
        left = began + patience - time.monotonic()
        done, _ = await asyncio.wait({coming}, timeout=max(left, 0.0))
        if not done:
            log.warning("the skill folders answer slowly: going on with what was loaded before")

    @property
    def is_idle(self) -> bool:
        """Whether no look is under way or wanted."""
        return self._running is None and self._next is None

    def begin(self) -> None:
        """Looks in the background at what has just changed."""
        self._asked_at = time.time()
        self._coming()

    async def close(self) -> None:
        """Waits for no look any more."""
        looks = {look for look in (self._running, self._next) if look is not None}
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)

    def _coming(self) -> "asyncio.Task[None]":
        """The next look that begins, which sees all that is known of now."""
        if self._next is None:
            self._next = asyncio.create_task(self._follow(self._running), name="look at the skills")
        return self._next

    def _has_looked_since(self, moment: float) -> bool:
        """Whether a look began after that; no, where the clock was set since: it cannot tell."""
        went = (time.time() - self._seen_at) - (time.monotonic() - self._seen_began)
        return moment < self._seen_at and abs(went) < _STEADY_SECONDS

    async def _follow(self, earlier: "asyncio.Task[None] | None") -> None:
        """One look, once the earlier one has ended."""
        if earlier is not None:
            await asyncio.wait({earlier})
        began = time.time()
        self._running, self._next, self._began = self._next, None, time.monotonic()
        try:
            await self._look()
            self._seen_began, self._seen_at = self._began, began
        except Exception:
            log.exception("the skill folders could not be read: going on with what was loaded before")
        finally:
            self._running = None
