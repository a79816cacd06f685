"""A wire between the server and another service, which can be cut, or lie about what it carried."""

import asyncio
import re
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.world import free_port

T = TypeVar("T")
LIMIT = 64 * 1024 * 1024
_CONNECTION = re.compile(rb"(?i)connection:[^\r\n]*\r\n")


@dataclass(frozen=True)
class Fault:
    """What becomes of one request: whether it arrives, what comes back (b"": the wire is cut), and when."""

    arrives: bool
    answer: bytes = b""
    seconds: float = 0.0


def answer(status: int, body: bytes, *headers: str) -> bytes:
    """A whole HTTP answer."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Wire:
    """Carries HTTP requests to `port`.

    One that holds the bytes `marked` meets the next of `faults`, or of those in `of` for other bytes that it
    holds; one that holds a key of `always` meets that fault every time.
    """

    def __init__(self, port: int, marked: bytes = b"") -> None:
        self.port = free_port()
        self.faults: list[Fault] = []
        self.met = b""  # the requests that met one of them
        self.of: dict[bytes, list[Fault]] = {}
        self.always: dict[bytes, Fault] = {}
        self._far = port
        self._marked = marked
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.up()

    def up(self) -> None:
        self._server = self._run(asyncio.start_server(self._carry, "127.0.0.1", self.port, limit=LIMIT))

    def down(self) -> None:
        """From here on connections are refused."""
        if self._server is not None:
            self._loop.call_soon_threadsafe(self._server.close)
            self._server = None

    def stop(self) -> None:
        self.down()
        self._run(self._hang_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(5)

    async def _hang_up(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read(reader)
            fault = self._fault(request)
            far = b"" if fault and not fault.arrives else await self._ask(request)
            if fault:
                await asyncio.sleep(fault.seconds)
            writer.write(fault.answer if fault else far)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # one of the two sides went away, and so do we
        finally:
            writer.close()

    def _fault(self, request: bytes) -> Fault | None:
        for mark, fault in self.always.items():
            if mark in request:
                return fault
        if self._marked not in request:
            return None
        left = next((faults for held, faults in self.of.items() if held in request), self.faults)
        if not left:
            return None
        self.met += request
        return left.pop(0)

    async def _ask(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._far, limit=LIMIT)
        try:
            writer.write(request)
            return await reader.read()
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """One request that asks for the connection to be closed after it."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    body = await reader.readexactly(int(length[1])) if length else b""
    return _CONNECTION.sub(b"", head).replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body
