"""A server as a process: the pair of streams that the SDK talks through, bounded in what they take."""

import asyncio
import json
import os
import re
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import orjson
import structlog
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter

from app.mcp.definitions import ServerDefinition
from app.mcp.wire import (
    MESSAGE_BYTES,
    TOO_LONG,
    RateLimiter,
    ServerLink,
    Unreachable,
    Unstartable,
)
from app.messages import JSON
from app.processes.host import PIECE_BYTES, Command, HostedProcess, kept_environment
from app.processes.sandbox import Sandbox
from app.rmtree import remove
from app.text import Private
from app.tools.plain import sendable

log = structlog.get_logger(__name__)

GRACE_SECONDS = 2.0
# Messages that may wait until the server reads them: mostly answers to what it asks.
MAX_UNREAD = 500
# Of lines that are no messages, before a server is given up; the shortest count as MIN_LINE_BYTES.
RUBBISH_BYTES = 64 * 1024 * 1024
MIN_LINE_BYTES = 64
# Where npx keeps a program: the cache, and a hash of the program's name.
_NPX_PROGRAM = re.compile(r"(/[^\s'\":]+)/_npx/([0-9a-f]{16})/")

END_SECONDS = 0.5  # in which the output of a program that died ends
# Kept of both ends of a line that is too long: the id of its request is there.
_KEPT_BYTES = 512
_ID_FIRST = re.compile(rb'\A\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_ID_LAST = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
_TELLING = re.compile(
    r"error|exception|missing|required|denied|not found|no such|cannot|could not|invalid|must|fail|unable",
    re.IGNORECASE,
)
_TRACE = re.compile(r"\s+at |\s*\^+\s*$|  File |Node\.js v")
_CAUSE_CHARACTERS = 300


@asynccontextmanager
async def run_program(definition: ServerDefinition, sandbox: Sandbox) -> AsyncIterator["StdioLink"]:
    """Run a server's program; afterwards it and all that it started is gone, within 6 s.

    Raises Unstartable if this machine does not allow it, Unreachable if it cannot be started.
    """
    try:
        process = await HostedProcess.start(await _command(definition, sandbox))
    except (OSError, ValueError) as error:
        raise Unreachable(f"its process could not be started: {error}") from error
    link = StdioLink(definition, process)
    try:
        yield link
    finally:
        await process.end(GRACE_SECONDS if link.grace else 0.0)
        if definition.downloads:
            await asyncio.to_thread(_remove_half_install, definition, str(process.printed))


async def _command(definition: ServerDefinition, sandbox: Sandbox) -> Command:
    folder = definition.home or definition.folder or None
    if not definition.sandboxed:
        args = [definition.command, *definition.args]
        return Command(args, kept_environment("HOME") | dict(definition.env), folder, piped=True)
    try:
        args, environment = await asyncio.to_thread(sandbox.server_command, definition)
    except ValueError as error:
        raise Unstartable(str(error)) from error
    return Command(args, environment, folder, "reaper" if sandbox.off else "sandbox", piped=True)


def _remove_half_install(definition: ServerDefinition, printed: str) -> None:
    """Remove a program that `npx` left half installed, as what it printed says: the next start fetches it."""
    if "MODULE_NOT_FOUND" not in printed:
        return
    environment = {**os.environ, **dict(definition.env)}
    homes = (definition.home, environment.get("HOME", ""))
    caches = {environment.get("npm_config_cache", ""), *(f"{home}/.npm" for home in homes if home)}
    for cache, program in set(_NPX_PROGRAM.findall(printed)):
        if cache in caches:
            log.warning("a half installed program is removed", server=definition.name, program=program)
            remove(f"{cache}/_npx/{program}")


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line over the limit; only the id of the request that it answers was kept."""

    request: int | None


class StdioLink(ServerLink, ObjectReceiveStream[SessionMessage], ObjectSendStream[SessionMessage]):
    """Reads and writes messages over the input and output of a server's process."""

    def __init__(self, definition: ServerDefinition, process: HostedProcess) -> None:
        super().__init__()
        self.streams = (self, self)
        self._definition = definition
        self._process = process
        self._lines = LineSplitter()
        # Each with its size in bytes.
        self._received: deque[tuple[SessionMessage, int]] = deque()
        self._rate = RateLimiter()
        self._unread = 0
        self._rubbish = 0
        self._fault = ""
        self._was_called = False

    async def end_reason(self) -> str:
        if self._fault:
            return self._fault
        with suppress(TimeoutError):  # a write may fail before the end of the output is read
            async with asyncio.timeout(END_SECONDS):
                await self.ended.wait()
        if not self.ended.is_set():
            return ""
        await self._process.wait()
        exited, cause = self._process.exit_reason, find_cause(self._printed())
        if cause and self._was_called:  # what it printed may be of any person's call
            log.info("a server's last words", server=self._definition.name, said=Private(cause))
            cause = ""
        return ": ".join(part for part in (exited and f"it {exited}", cause) if part)

    def _printed(self) -> str:
        text = str(self._process.printed)
        if self._process.printed.is_cut:  # half a secret on a half line would not be recognised
            text = text.partition("\n")[2]
        return self._definition.mask(text)

    async def receive(self) -> SessionMessage:
        """Return the next message. Raises EndOfStream once the output has ended."""
        await self._rate.wait()
        while not (self._received or self._fault):
            data = await self._process.output.read(PIECE_BYTES)
            if not data:
                break
            for line in self._lines.feed(data):
                self._take(line)
        if self._fault or not self._received:
            self.ended.set()
            raise anyio.EndOfStream
        message, size = self._received.popleft()
        self._rate.count(size)
        return message

    def _take(self, line: bytes | TooLong) -> None:
        if isinstance(line, TooLong):
            self._answer_too_long(line)
            return
        try:
            message = jsonrpc_message_adapter.validate_python(parse_message(line))
        except ValueError:
            self._count_rubbish(len(line))
            return
        self._received.append((SessionMessage(message), len(line)))

    def _answer_too_long(self, line: TooLong) -> None:
        """Answer the request with an error; the connection goes on."""
        log.warning("a server's message was too long", server=self._definition.name)
        if line.request is None:
            self._count_rubbish(MESSAGE_BYTES)
            return
        text = f"its answer has more than {MESSAGE_BYTES // 1024**2} MiB"
        error = ErrorData(code=TOO_LONG, message=text)
        answer = JSONRPCError(jsonrpc="2.0", id=line.request, error=error)
        self._received.append((SessionMessage(answer), 0))

    def _count_rubbish(self, size: int) -> None:
        """Tolerate a greeting on stdout; give up a server that writes nothing else."""
        if not self._rubbish:
            log.info("a server writes what is no message", server=self._definition.name)
        self._rubbish += max(size, MIN_LINE_BYTES)
        if self._rubbish > RUBBISH_BYTES:
            self._give_up(f"it wrote over {RUBBISH_BYTES // 1024**2} MiB that are no messages")

    def _give_up(self, fault: str) -> None:
        self.grace = False
        self._fault = fault

    async def send(self, item: SessionMessage) -> None:
        """Write a message. Raises BrokenResourceError if the server does not read any more."""
        if self._unread == MAX_UNREAD:
            self._give_up("it does not read what it is sent")
            raise anyio.BrokenResourceError
        message = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        self._was_called = self._was_called or message.get("method") == "tools/call"
        self._unread += 1
        try:
            self._process.input.write(orjson.dumps(message) + b"\n")
            await self._process.input.drain()
        except (ConnectionError, RuntimeError) as error:
            raise anyio.BrokenResourceError from error
        finally:
            self._unread -= 1

    async def aclose(self) -> None:
        """Do nothing: `run_program` ends the process."""


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


def parse_message(line: bytes) -> JSON:
    """Return the message of a line. Raises ValueError for anything else."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:  # half of an emoji, or NaN: JavaScript and Python write them
        try:
            return sendable(json.loads(line))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def find_cause(printed: str) -> str:
    """Return the last printed line that tells best why a server ended; "" if it printed nothing."""
    lines = [line for line in printed.splitlines() if line.strip() and not _TRACE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)]
    found = (telling or lines or [""])[-1].strip()
    return found if len(found) <= _CAUSE_CHARACTERS else f"{found[:_CAUSE_CHARACTERS]}…"
