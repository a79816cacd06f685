"""What goes over a connection to a server before anybody believes it: lines with limits, faults as ours."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from app.errors import RecadoError
from app.messages import JSON
from app.tools.plain import sendable

MESSAGE_BYTES = 8 * 1024 * 1024
MESSAGES_A_SECOND = 500
"""That are taken of one server; each 16 KiB of one count as another."""
_COUNTED_BYTES = 16 * 1024
_MOST_AT_ONCE = 100
"""Messages on one line."""
_KEPT = 512
"""Bytes at both ends of a line that is too long: the number of its request stands there."""

NOT_SENT, BROKEN, TOO_LONG = -32090, -32091, -32092
"""Codes of errors that are ours and not a server's: it never came to a request, a connection that broke in
between, an answer of more than MESSAGE_BYTES."""

_ID_FIRST = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


class Unreachable(RecadoError):
    """A server that could not be started or reached, or whose connection ended; the text says why."""


class Unstartable(Unreachable):
    """A server that cannot be started as things are: another try would come to the same."""


class Forgotten(Unreachable):
    """A session that its server has ended, as many do with one that nobody used: another one is opened."""


class Lost(RecadoError):
    """A call whose connection ended. `sent`: it may have arrived."""

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Refused(RecadoError):
    """A request that the server answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line of more than the limit; nothing of it was kept but the number of the request that it answers."""

    request: int | None


class Lines:
    """Bytes as they come, cut into lines. Holds one line of at most `limit` bytes, whatever comes."""

    def __init__(self, limit: int = MESSAGE_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        """Of a line that is too long, b"" where none is."""
        self._tail = b""

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """The lines that these bytes end."""
        *ended, begun = data.split(b"\n")
        for piece in ended:
            self._add(piece)
            yield self._end()
        self._add(begun)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._head:
            self._tail = (self._tail + piece)[-_KEPT:]
        elif self._size <= self._limit:
            self._parts.append(piece)
        else:
            whole = b"".join((*self._parts, piece))
            self._parts.clear()
            self._head, self._tail = whole[:_KEPT], whole[-_KEPT:]

    def _end(self) -> bytes | TooLong:
        line: bytes | TooLong = b"".join(self._parts)
        if self._head:
            found = _ID_FIRST.search(self._head) or _ID_LAST.search(self._tail)
            line = TooLong(int(found[1]) if found else None)
        self._parts.clear()
        self._size, self._head, self._tail = 0, b"", b""
        return line


class Pace:
    """Who sends more than we may spend on it is read more slowly, until it has to wait."""

    def __init__(self) -> None:
        self._spent_until = 0.0

    def count(self, size: int) -> None:
        """A message of that many bytes was taken."""
        spent = (1 + size / _COUNTED_BYTES) / MESSAGES_A_SECOND
        self._spent_until = max(self._spent_until, time.monotonic()) + spent

    async def rest(self) -> None:
        """Waits where more than a second's messages came in a row."""
        if (ahead := self._spent_until - time.monotonic()) > 1:
            await asyncio.sleep(ahead - 1)


def messages(line: bytes) -> list[dict[str, JSON]]:
    """The messages of a line: one, or a batch (2025-03-26). Raises ValueError for anything else."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:  # half of an emoji, or NaN: JavaScript and Python write them
        try:
            value = sendable(json.loads(line))
        except RecursionError:
            raise ValueError("nested too deeply") from None
    found = value if isinstance(value, list) else [value]
    if not 0 < len(found) <= _MOST_AT_ONCE or not all(isinstance(message, dict) for message in found):
        raise ValueError("no message")
    return found


_TELLING = re.compile(
    r"error|exception|missing|required|denied|not found|no such|cannot|could not|invalid|must|fail|unable",
    re.IGNORECASE,
)
_TRACE = re.compile(r"\s+at |\s*\^+\s*$|  File |Node\.js v")
_LONGEST_CAUSE = 300


def cause(said: str) -> str:
    """The line of what a server said last that tells best why it ended; "" where it said nothing."""
    lines = [line for line in said.splitlines() if line.strip() and not _TRACE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)]
    found = (telling or lines or [""])[-1].strip()
    return found if len(found) <= _LONGEST_CAUSE else f"{found[:_LONGEST_CAUSE]}…"
