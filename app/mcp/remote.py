"""A server behind an address: the SDK's HTTP transport over a client with limits and an address guard."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import cast

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from app import __version__
from app.http.address import PORTS, FetchError
from app.http.transport import Resolve, addresses_of, system_resolve
from app.i18n import lazy
from app.mcp.definitions import NEEDS_SIGN_IN, ServerDefinition
from app.mcp.wire import BROKEN, MESSAGE_BYTES, NOT_SENT, TOO_LONG, RateLimiter, ServerLink, Unreachable

# Whoever waits for an answer limits how long it may take; one stream stays open for news.
_TIMEOUT = httpx2.Timeout(None, connect=10.0, write=30.0)
_GOODBYE_TIMEOUT = httpx2.Timeout(2.0)


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
    """A streamed body, no faster than a server may send it."""

    def __init__(self, inner: httpx2.AsyncByteStream, rate: RateLimiter) -> None:
        self._inner = inner
        self._rate = rate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._rate.count(len(piece), piece.count(b"\n\n"))  # which ends an event
            await self._rate.wait()
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
            return self._error(
                BROKEN, lazy("the connection broke: {error}", error=str(error) or type(error).__name__)
            )

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        had_session = MCP_SESSION_ID in request.headers
        if request.method == "DELETE":
            request.extensions = {**request.extensions, "timeout": _GOODBYE_TIMEOUT.as_dict()}
        await self._pin(request)
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
            return self._error(BROKEN, lazy("it compresses its answers although nobody asked for it"))
        if response.is_redirect:  # the SDK would read all of its body
            await response.aclose()
            return httpx2.Response(response.status_code, headers=_headers(response))
        if response.headers.get("Content-Type", "").lower().startswith("application/json"):
            return await self._read_whole(response)
        response.stream = _LimitedBody(cast("httpx2.AsyncByteStream", response.stream), self._rate)
        return response

    async def _pin(self, request: httpx2.Request) -> None:
        """Direct the request to an address that was just checked. Raises FetchError."""
        if not self._is_guarded:
            return
        host, port = request.url.host, request.url.port or PORTS[request.url.scheme]
        found = await addresses_of(self._resolve, host, port)
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=found[0])  # the Host header was made before

    async def _read_whole(self, response: httpx2.Response) -> httpx2.Response:
        body = bytearray()
        try:
            async for piece in cast("httpx2.AsyncByteStream", response.stream):
                body += piece
                if len(body) > MESSAGE_BYTES:
                    return self._error(
                        TOO_LONG, lazy("its answer has more than {n} MiB", n=MESSAGE_BYTES // 1024**2)
                    )
        finally:
            with suppress(httpx2.TransportError):
                await response.aclose()
        return httpx2.Response(response.status_code, headers=_headers(response), content=bytes(body))

    def _not_sent(self, text: str) -> httpx2.Response:
        """Answer a request that certainly had no effect; a new connection has to be made."""
        self.link.end()
        return self._error(NOT_SENT, text)

    def _error(self, code: int, text: str) -> httpx2.Response:
        """Answer as a server with an error would, so that the SDK fails this request alone."""
        self.link.fault = text
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}
        headers = {"Content-Type": "application/json"}
        return httpx2.Response(502, headers=headers, content=json.dumps(error).encode())


def _headers(response: httpx2.Response) -> list[tuple[bytes, bytes]]:
    """Return the headers that do not describe how the body was transferred."""
    transfer = (b"transfer-encoding", b"content-length", b"connection")
    return [(name, value) for name, value in response.headers.raw if name.lower() not in transfer]
