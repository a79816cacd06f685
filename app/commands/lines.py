"""Lines of standard input, read without blocking the event loop."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

CHUNK = 65536
LONGEST_LINE = 1024 * 1024


class Lines:
    """An async reader of lines from a terminal, a pipe or a file."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = -1 if descriptor is None else descriptor
        self._rest = b""
        self._ended = descriptor is None
        self._wake = asyncio.Event()
        self._ours = asyncio.Event()
        self._ours.set()

    async def next(self) -> str | None:
        """Return the next line without its end; None once the input has ended."""
        while b"\n" not in self._rest and not self._ended and len(self._rest) < LONGEST_LINE:
            await self._readable()
            chunk = _read(self._descriptor)
            self._rest += chunk
            self._ended = not chunk
        if self._ended and not self._rest:
            return None
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r")

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let other code read the terminal for a while, for a question that must be answered first."""
        self._ours.clear()
        self._wake.set()
        try:
            yield
        finally:
            self._ours.set()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._ours.wait()
            self._wake.clear()
            try:
                loop.add_reader(self._descriptor, self._wake.set)
            except OSError:  # a regular file: always readable, and epoll does not take it
                return
            try:
                await self._wake.wait()
            finally:
                if self._ours.is_set():  # else it was taken over with the loan
                    loop.remove_reader(self._descriptor)
            if self._ours.is_set():
                return


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:  # the terminal went away
        return b""
