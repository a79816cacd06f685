"""The way to a server and back, as processes and addresses share it: its limits, and errors in our words."""

import asyncio
import time
from typing import Any

from app.errors import RecadoError

MESSAGE_BYTES = 8 * 1024 * 1024
MESSAGES_A_SECOND = 500  # taken of one server; each 16 KiB of a message count as another
_COUNTED_BYTES = 16 * 1024

# Error codes of our own: the request was never sent, the connection broke meanwhile, the answer is too long.
NOT_SENT, BROKEN, TOO_LONG = -32090, -32091, -32092


class Unreachable(RecadoError):
    """A server that could not be started or reached, or whose connection ended; the text says why."""


class Unstartable(Unreachable):
    """A server that cannot be started as it is configured: another try would fail the same way."""


class ConnectionLost(RecadoError):
    """A call whose connection ended. `sent`: it may have arrived."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Refused(RecadoError):
    """A request that the server answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class ServerLink:
    """The way of messages to a server and back: a process's input and output, or HTTP."""

    # The streams that the SDK reads from and writes to.
    streams: tuple[Any, Any]

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()  # the tools may be others now, or it has ended
        self.fault = ""  # what went wrong last

    def end(self) -> None:
        self.ended.set()
        self.changed.set()

    async def end_reason(self) -> str:
        """Return what is known of why it ended; "" for nothing."""
        return self.fault


class RateLimiter:
    """Slows the reading of a server that sends more than MESSAGES_A_SECOND."""

    def __init__(self) -> None:
        self._spent_until = 0.0

    def count(self, size: int, messages: int = 1) -> None:
        """Count messages of so many bytes in all."""
        spent = (messages + size / _COUNTED_BYTES) / MESSAGES_A_SECOND
        self._spent_until = max(self._spent_until, time.monotonic()) + spent

    async def wait(self) -> None:
        """Wait while the server is more than a second ahead of its rate."""
        if (ahead := self._spent_until - time.monotonic()) > 1:
            await asyncio.sleep(ahead - 1)
