"""The reading of a server before it is believed: lines with limits, a rate limit, errors in our words."""

import asyncio
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from app.errors import RecadoError
from app.messages import JSON
from app.tools.plain import sendable

MESSAGE_BYTES = 8 * 1024 * 1024
# Taken of one server; each 16 KiB of a message count as another.
MESSAGES_A_SECOND = 500
_COUNTED_BYTES = 16 * 1024
_MAX_BATCH = 100
# Kept of both ends of a line that is too long: the id of its request is there.
_KEPT_BYTES = 512

# Error codes of our own: the request was never sent, the connection broke meanwhile, the answer is too long.
NOT_SENT, BROKEN, TOO_LONG = -32090, -32091, -32092

_ID_FIRST = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class Unreachable(RecadoError):
    """A server that could not be started or reached, or whose connection ended; the text says why."""


class Unstartable(Unreachable):
    """A server that cannot be started as it is configured: another try would fail the same way."""


class SessionExpired(Unreachable):
    """A session that its server has ended, as many do with an idle one: a new one is opened."""


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


class ServerLink(ABC):
    """The way of messages to a server and back: a process's input and output, or HTTP."""

    # The streams that the SDK reads from and writes to.
    streams: tuple[Any, Any]

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        # Set where the server may have forgotten the session: a request would show it.
        self.doubted = asyncio.Event()
        # It ended because the server's session did, and nothing is wrong with the server.
        self.expired = False
        # The server may take a moment to end by itself.
        self.grace = False

    @abstractmethod
    async def end_reason(self) -> str:
        """Return what is known of why it ended; "" for nothing."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line over the limit; only the id of the request that it answers was kept."""

    request: int | None


class LineSplitter:
    """Cuts bytes into lines. Holds one line of at most `limit` bytes, whatever comes."""

    def __init__(self, limit: int = MESSAGE_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        # Both ends of a line that is too long; b"" for any other.
        self._head = self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """Yield the lines that these bytes complete."""
        *ended, begun = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield self._end()
        self._add(begun)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head:
            self._tail = (self._tail + piece)[-_KEPT_BYTES:]
        elif self._size <= self._limit:
            self._parts.append(piece)
        else:
            whole = b"".join((*self._parts, piece))
            self._parts.clear()
            self._head, self._tail = whole[:_KEPT_BYTES], whole[-_KEPT_BYTES:]

    def _end(self) -> bytes | TooLong:
        line: bytes | TooLong = b"".join(self._parts)
        if self._head:
            found = _ID_FIRST.search(self._head) or _ID_LAST.search(self._tail)
            line = TooLong(int(found[1]) if found else None)
        self._parts.clear()
        self._size, self._head, self._tail = 0, b"", b""
        return line


class RateLimiter:
    """Slows the reading of a server that sends more than MESSAGES_A_SECOND."""

    def __init__(self) -> None:
        self._spent_until = 0.0

    def count(self, size: int) -> None:
        """Count a message of that many bytes."""
        spent = (1 + size / _COUNTED_BYTES) / MESSAGES_A_SECOND
        self._spent_until = max(self._spent_until, time.monotonic()) + spent

    async def wait(self) -> None:
        """Wait while the server is more than a second ahead of its rate."""
        if (ahead := self._spent_until - time.monotonic()) > 1:
            await asyncio.sleep(ahead - 1)


def parse_messages(line: bytes) -> list[dict[str, JSON]]:
    """Return the messages of a line: one, or a batch (2025-03-26). Raises ValueError for anything else."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:  # half of an emoji, or NaN: JavaScript and Python write them
        try:
            value = sendable(json.loads(line))
        except RecursionError:
            raise ValueError("nested too deeply") from None
    found = value if isinstance(value, list) else [value]
    if not 0 < len(found) <= _MAX_BATCH or not all(isinstance(message, dict) for message in found):
        raise ValueError("no message")
    return found


_TELLING = re.compile(
    r"error|exception|missing|required|denied|not found|no such|cannot|could not|invalid|must|fail|unable",
    re.IGNORECASE,
)
_TRACE = re.compile(r"\s+at |\s*\^+\s*$|  File |Node\.js v")
_CAUSE_CHARACTERS = 300


def find_cause(printed: str) -> str:
    """Return the last printed line that tells best why a server ended; "" if it printed nothing."""
    lines = [line for line in printed.splitlines() if line.strip() and not _TRACE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)]
    found = (telling or lines or [""])[-1].strip()
    return found if len(found) <= _CAUSE_CHARACTERS else f"{found[:_CAUSE_CHARACTERS]}…"
