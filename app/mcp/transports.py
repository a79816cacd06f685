"""The way to a server and back: the input and output of its process, or HTTP, bounded in what they take.

It loads the SDK.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import httpx2
import orjson
import structlog
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, jsonrpc_message_adapter

from app import __version__
from app.http.address import PORTS, FetchError
from app.http.transport import Resolve, addresses_of, system_resolve
from app.i18n import lazy
from app.mcp.definitions import NEEDS_SIGN_IN, ServerDefinition, Unreachable
from app.messages import JSON
from app.processes.host import PIECE_BYTES, Command, HostedProcess, kept_environment
from app.processes.sandbox import Sandbox
from app.rmtree import remove
from app.text import Private, shortened
from app.tools.plain import sendable

log = structlog.get_logger(__name__)

MESSAGE_BYTES = 8 * 1024 * 1024
MESSAGES_A_SECOND = 500  # taken of one server; each 16 KiB of a message count as another
_COUNTED_BYTES = 16 * 1024
NOT_SENT = -32090  # an error code of our own, among those of JSON-RPC: the request was never sent

GRACE_SECONDS = 2.0
END_SECONDS = 0.5  # in which the output of a program that died ends
MAX_UNREAD = 500  # messages that may wait until the server reads them: mostly answers to what it asks
# Where npx keeps a program: the cache, and a hash of the program's name.
_NPX_PROGRAM = re.compile(r"(/[^\s'\":]+)/_npx/([0-9a-f]{16})/")
_TELLING = re.compile(
    r"error|exception|missing|required|denied|not found|no such|cannot|could not|invalid|must|fail|unable",
    re.IGNORECASE,
)
_TRACE = re.compile(r"\s+at |\s*\^+\s*$|  File |Node\.js v")
_CAUSE_CHARACTERS = 300

# Whoever waits for an answer limits how long it may take; one stream stays open for news.
_TIMEOUT = httpx2.Timeout(None, connect=10.0, write=30.0)
_GOODBYE_TIMEOUT = httpx2.Timeout(2.0)


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

    async def take(self, size: int, messages: int = 1) -> None:
        """Count messages of `size` bytes in all; wait while the server is over a second ahead of its rate."""
        spent = (messages + size / _COUNTED_BYTES) / MESSAGES_A_SECOND
        self._spent_until = max(self._spent_until, time.monotonic()) + spent
        if (ahead := self._spent_until - time.monotonic()) > 1:
            await asyncio.sleep(ahead - 1)


@asynccontextmanager
async def run_program(definition: ServerDefinition, sandbox: Sandbox) -> AsyncIterator["StdioLink"]:
    """Run a server's program; afterwards it and all that it started is gone, within 6 s.

    Raises Unreachable if it cannot be started, or this machine does not allow it.
    """
    try:
        process = await HostedProcess.start(await _command(definition, sandbox))
    except (OSError, ValueError) as error:
        raise Unreachable(lazy("its process could not be started: {error}", error=str(error))) from error
    link = StdioLink(definition, process)
    try:
        yield link
    finally:
        await process.end(GRACE_SECONDS)
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
        raise Unreachable(str(error)) from error
    return Command(args, environment, folder, confined=not sandbox.off, piped=True)


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


class StdioLink(ServerLink, ObjectReceiveStream[SessionMessage], ObjectSendStream[SessionMessage]):
    """Reads and writes messages over the input and output of a server's process."""

    def __init__(self, definition: ServerDefinition, process: HostedProcess) -> None:
        super().__init__()
        self.streams = (self, self)
        self._definition = definition
        self._process = process
        self._begun = bytearray()  # read, and not ended by a line feed yet
        self._rate = RateLimiter()
        self._unread = 0
        self._was_called = False

    async def end_reason(self) -> str:
        if self.fault:
            return self.fault
        with suppress(TimeoutError):  # a write may fail before the end of the output is read
            async with asyncio.timeout(END_SECONDS):
                await self.ended.wait()
        if not self.ended.is_set():
            return ""
        await self._process.wait()
        text = str(self._process.printed)
        if self._process.printed.is_cut:  # half a secret on a half line would not be recognised
            text = text.partition("\n")[2]
        exited, cause = self._process.exit_reason, find_cause(self._definition.mask(text))
        if cause and self._was_called:  # what it printed may be of any person's call
            log.info("a server's last words", server=self._definition.name, said=Private(cause))
            cause = ""
        return lazy("{fact}: {reason}", fact=exited, reason=cause) if exited and cause else exited or cause

    async def receive(self) -> SessionMessage:
        """Return the next message. Raises EndOfStream once the output has ended."""
        while (line := await self._line()) is not None:
            await self._rate.take(len(line))
            try:
                return SessionMessage(jsonrpc_message_adapter.validate_python(parse_message(line)))
            except ValueError:  # a greeting, or a log line
                log.debug("a server writes what is no message", server=self._definition.name)
        self.end()
        raise anyio.EndOfStream

    async def _line(self) -> bytes | None:
        """Return the next line, None at the end of the output and for a line that is too long."""
        while not self.fault and (end := self._begun.find(b"\n")) < 0:
            data = await self._process.output.read(PIECE_BYTES)
            if not data:
                return None
            self._begun += data
            if len(self._begun) > MESSAGE_BYTES:
                self.fault = lazy("it wrote a message of more than {n} MiB", n=MESSAGE_BYTES // 1024**2)
        if self.fault:
            return None
        line = bytes(self._begun[:end])
        del self._begun[: end + 1]
        return line

    async def send(self, item: SessionMessage) -> None:
        """Write a message. Raises BrokenResourceError if the server does not read any more."""
        if self._unread == MAX_UNREAD:
            self.fault = lazy("it does not read what it is sent")
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
    return shortened((telling or lines or [""])[-1].strip(), _CAUSE_CHARACTERS)


@asynccontextmanager
async def open_remote(definition: ServerDefinition) -> AsyncIterator[ServerLink]:
    """Open the streams to a server. An address that the operator did not write must be public."""
    inner = await asyncio.to_thread(httpx2.AsyncHTTPTransport, trust_env=False)
    transport = GuardedTransport(inner, is_guarded=definition.origin != "operator")
    headers = {
        "User-Agent": f"recado/{__version__}",
        **dict(definition.headers),
        "Accept-Encoding": "identity",
    }
    try:
        async with (
            httpx2.AsyncClient(
                transport=transport, headers=headers, timeout=_TIMEOUT, trust_env=False
            ) as client,
            streamable_http_client(
                definition.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
            ) as streams,
        ):
            transport.link.streams = streams
            yield transport.link
    except BaseExceptionGroup as group:  # of the SDK's tasks: what went wrong in one of them
        _, others = group.split((httpx2.HTTPError, OSError))
        if others is not None:
            raise
        raise Unreachable(transport.link.fault or lazy("its connection broke")) from group


class _LimitedBody(httpx2.AsyncByteStream):
    """A body no faster than a server may send it, and of `most` bytes unless it streams events."""

    def __init__(self, inner: httpx2.AsyncByteStream, rate: RateLimiter, most: int | None) -> None:
        self._inner = inner
        self._rate = rate
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if self._most is not None and size > self._most:
                raise httpx2.StreamError(f"its answer has more than {self._most // 1024**2} MiB")
            await self._rate.take(len(piece), piece.count(b"\n\n"))  # which ends an event
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Limits what is read and turns faults into JSON-RPC errors; `is_guarded`: public addresses only."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, *, is_guarded: bool, resolve: Resolve = system_resolve
    ) -> None:
        self.link = ServerLink()
        self._inner = inner
        self._is_guarded = is_guarded
        self._resolve = resolve
        self._rate = RateLimiter()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._send(request)
        except FetchError as error:
            return self._not_sent(error.told)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return self._not_sent(lazy("nobody takes a connection at its address"))
        except httpx2.TransportError as error:
            why = str(error) or type(error).__name__
            return self._error(lazy("the connection broke: {error}", error=why))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        had_session = MCP_SESSION_ID in request.headers
        if request.method == "DELETE":
            request.extensions = {**request.extensions, "timeout": _GOODBYE_TIMEOUT.as_dict()}
        if self._is_guarded:  # it goes to an address that was just checked
            host, port = request.url.host, request.url.port or PORTS[request.url.scheme]
            found = await addresses_of(self._resolve, host, port)
            request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = request.url.copy_with(host=found[0])  # the Host header was made before
        response = await self._inner.handle_async_request(request)
        if response.status_code == 404 and had_session and request.method != "GET":
            await response.aclose()
            return self._not_sent(lazy("it has forgotten the session"))
        if response.status_code >= 400 and request.method == "POST":
            self.link.fault = lazy("it answers with status {status}", status=response.status_code)
            if response.status_code == 401 and "authorization" not in request.headers:
                self.link.fault = lazy("{fact}: {reason}", fact=NEEDS_SIGN_IN, reason=self.link.fault)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            return self._error(lazy("it compresses its answers although nobody asked for it"))
        is_endless = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        body = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = _LimitedBody(body, self._rate, None if is_endless else MESSAGE_BYTES)
        return response

    def _not_sent(self, text: str) -> httpx2.Response:
        """Answer a request that certainly had no effect; a new connection has to be made."""
        self.link.end()
        return self._error(text, NOT_SENT)

    def _error(self, text: str, code: int = CONNECTION_CLOSED) -> httpx2.Response:
        """Answer as a server with an error would, so that the SDK fails this request alone."""
        self.link.fault = text
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}
        headers = {"Content-Type": "application/json"}
        return httpx2.Response(502, headers=headers, content=json.dumps(error).encode())
