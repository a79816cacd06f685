"""A server behind an address: over HTTP by the SDK, with a client that limits what it reaches and reads."""

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import cast

import anyio
import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from app import __version__
from app.http.address import is_public, unmapped
from app.http.errors import FetchError
from app.http.resolver import Resolve, system_resolve
from app.mcp.definitions import ServerDefinition
from app.mcp.wire import (
    BROKEN,
    MESSAGE_BYTES,
    NOT_SENT,
    TOO_LONG,
    Pace,
    Unreachable,
    Unstartable,
)

_TIMEOUT = httpx2.Timeout(None, connect=10.0, write=30.0)
"""How long an answer may take is limited by who waits for it; one stream stays open for news."""

_FAREWELL = httpx2.Timeout(2.0)
MOST_REQUESTS = 64
"""To one server at the same time: each of its questions is answered by one."""

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@asynccontextmanager
async def reached(
    definition: ServerDefinition,
    allowed: Collection[tuple[str, int]] = (),
    resolve: Resolve = system_resolve,
) -> AsyncIterator["RemoteServer"]:
    """The streams to a server while they are open. Raises Unstartable for what is no address.

    Whose address the operator did not write is asked only at public ones, or at a host and port in `allowed`.
    """
    try:
        url = httpx2.URL(definition.url)
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError("it is no http or https address")
    except (httpx2.InvalidURL, ValueError) as error:
        raise Unstartable(f"its address cannot be used: {error}") from error
    inner = await asyncio.to_thread(httpx2.AsyncHTTPTransport, trust_env=False)
    guard = Guard(inner, None if definition.origin == "operator" else frozenset(allowed), resolve)
    headers = {
        "User-Agent": f"recado/{__version__}",
        **dict(definition.headers),
        "Accept-Encoding": "identity",
    }
    try:
        async with (
            httpx2.AsyncClient(transport=guard, headers=headers, timeout=_TIMEOUT, trust_env=False) as client,
            streamable_http_client(
                definition.url, http_client=client, max_sse_event_size=MESSAGE_BYTES
            ) as streams,
        ):
            yield RemoteServer(streams, guard)
    except BaseExceptionGroup as group:  # of the SDK's tasks: what went wrong in one of them
        _, others = group.split((httpx2.HTTPError, OSError))
        if others is not None:
            raise
        raise Unreachable(guard.said or "its connection broke") from group


class RemoteServer:
    """What the SDK reads and writes; `expired` once the server has forgotten the session, `doubted` where it
    may have."""

    def __init__(self, streams: Streams, guard: "Guard") -> None:
        read, write = streams
        self.streams = (_Paced(read), write)
        self.grace = False
        self.expired, self.doubted = guard.expired, guard.doubted
        self._guard = guard

    @property
    def forgotten(self) -> bool:
        """Whether it ended because the session did."""
        return self._guard.forgotten

    async def why(self) -> str:
        """What went wrong last."""
        return self._guard.said


class _Paced:
    """What the SDK reads, no faster than it may come."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception]) -> None:
        self._inner = inner
        self._pace = Pace()

    async def receive(self) -> SessionMessage | Exception:
        await self._pace.rest()
        message = await self._inner.receive()
        self._pace.count(0)
        return message

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> "_Paced":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> "_Paced":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Slowed(httpx2.AsyncByteStream):
    """What a server streams, no faster than it may come."""

    def __init__(self, inner: httpx2.AsyncByteStream, pace: Pace) -> None:
        self._inner = inner
        self._pace = pace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._pace.count(len(piece))
            await self._pace.rest()
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class Guard(httpx2.AsyncBaseTransport):
    """Connects only to addresses that it looked at, reads so much, and puts faults in the protocol's words.

    `allowed`: hosts and ports beside the public ones; None: any address.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        allowed: Collection[tuple[str, int]] | None,
        resolve: Resolve,
    ) -> None:
        self._inner = inner
        self._allowed = allowed
        self._resolve = resolve
        self.said = ""
        """What went wrong last."""
        self.expired, self.doubted = asyncio.Event(), asyncio.Event()
        self.forgotten = False
        self._waiting = 0
        self._pace = Pace()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._waiting == MOST_REQUESTS:
            return self._fault(BROKEN, f"it leaves {MOST_REQUESTS} requests unanswered")
        self._waiting += 1
        try:
            return await self._answer(request)
        finally:
            self._waiting -= 1

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        had_session = MCP_SESSION_ID in request.headers
        if request.method == "DELETE":  # the farewell, which nobody waits for
            request.extensions = {**request.extensions, "timeout": _FAREWELL.as_dict()}
        try:
            await self._pin(request)
            response = await self._inner.handle_async_request(request)
        except FetchError as error:
            return self._lost(str(error))
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            return self._lost("nobody takes a connection at its address")
        except httpx2.TransportError as error:
            return self._fault(BROKEN, f"the connection broke: {error or type(error).__name__}")
        if response.status_code == 404 and request.method == "GET":
            self.doubted.set()  # or it has no such stream, and does not know the status for that
        elif response.status_code == 404 and had_session:
            await response.aclose()
            self.forgotten = True
            return self._lost("it has forgotten the session")
        if response.status_code >= 400 and request.method == "POST":
            self.said = f"it answers with status {response.status_code}"
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            return self._fault(BROKEN, "it compresses its answers although nobody asked for it")
        if response.is_redirect:  # the SDK would read all of its body
            await response.aclose()
            return httpx2.Response(response.status_code, headers=_headers(response))
        if response.headers.get("Content-Type", "").lower().startswith("application/json"):
            return await self._whole(response)
        response.stream = _Slowed(cast("httpx2.AsyncByteStream", response.stream), self._pace)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _pin(self, request: httpx2.Request) -> None:
        """Has the connection go to an address that was looked at just now. Raises FetchError."""
        host, port = request.url.host, request.url.port or {"http": 80, "https": 443}[request.url.scheme]
        if self._allowed is None or (host, port) in self._allowed:
            return
        try:
            found = [unmapped(ip_address(text)) for text in await self._resolve(host, port)]
        except OSError:
            found = []
        if not found:
            raise FetchError("NO_SUCH_HOST", "no machine of that name was found")
        if not all(is_public(ip) for ip in found):
            raise FetchError("NOT_PUBLIC", "its address is not on the public internet")
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=str(found[0]))  # the Host header was made before

    async def _whole(self, response: httpx2.Response) -> httpx2.Response:
        body = bytearray()
        try:
            async for piece in response.stream:  # type: ignore[union-attr]  # async, as its transport is
                body += piece
                if len(body) > MESSAGE_BYTES:
                    text = f"its answer has more than {MESSAGE_BYTES // 1024**2} MiB"
                    return self._fault(TOO_LONG, text)
        except httpx2.TransportError as error:
            return self._fault(BROKEN, f"the connection broke: {error or type(error).__name__}")
        finally:
            with suppress(httpx2.TransportError):
                await response.aclose()
        return httpx2.Response(response.status_code, headers=_headers(response), content=bytes(body))

    def _lost(self, text: str) -> httpx2.Response:
        """A request that certainly had no effect; a new connection has to be made."""
        self.expired.set()
        return self._fault(NOT_SENT, text)

    def _fault(self, code: int, text: str) -> httpx2.Response:
        """An answer that the SDK takes for an error of the server, so that only this request fails."""
        self.said = text
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}
        headers = {"Content-Type": "application/json"}
        return httpx2.Response(502, headers=headers, content=json.dumps(error).encode())


def _headers(response: httpx2.Response) -> list[tuple[bytes, bytes]]:
    """Those that do not speak of how its body came."""
    return [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_A_STREAM]


_OF_A_STREAM = (b"transfer-encoding", b"content-length", b"connection")
