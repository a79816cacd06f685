"""Requests that come in: limits on slow, large and many ones, and the guard of those that need a token."""

import asyncio
import math
import resource
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import orjson
from fastapi import Depends, HTTPException, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.types import Message, Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.i18n import lazy
from app.security import AdminToken, is_local

CONNECTIONS = 2000
PEER_CONNECTIONS = 256  # of one address that is not this machine: behind a proxy all of them may be its own
SMALL_BODY = 64 * 1024  # there is always room for one of this size
REQUEST_SECONDS = 30.0  # from a request's first byte (of the first request: from the connection) to its last
ANSWER_SECONDS = 30.0  # until a client goes on reading an answer that fills the buffers
HEAD_BYTES = 64 * 1024
ADMIN_BODY_BYTES = 256 * 1024
_THIS_MACHINE = frozenset(("127.0.0.1", "::1", ""))
_BEARER = HTTPBearer(auto_error=False, description="The administrator's token (`recado token`)")


def allow_open_files(wanted: int) -> None:
    """Raise the limit of open files towards `wanted`, as far as the system allows: connections are files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        top = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, top), hard))


def bounded_receive(receive: Receive, limit: int) -> Receive:
    """Wrap an ASGI `receive` so that a body of more than `limit` bytes is answered with 413."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, lazy("a request here has at most {limit} bytes", limit=limit))
        return message

    return bounded


class BodyReader:
    """Reads request bodies, each of at most `body_bytes`, large ones of `held_bytes` together.

    When these are full, the large body that has been coming for longest is given up for the newcomer: nobody
    can keep others out by sending slowly.
    """

    def __init__(self, body_bytes: int, held_bytes: int) -> None:
        self._body_bytes = body_bytes
        self._held_bytes = held_bytes
        self._large: dict[asyncio.Timeout, int] = {}  # bytes of each that is coming, the oldest first

    async def read(self, request: Request) -> bytes:
        """Return the body. Raise HTTPException 413 or 503 over a limit, ClientDisconnect if it broke off."""
        body = bytearray()
        given_up = asyncio.timeout(None)
        try:
            async with given_up:
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self._body_bytes:
                        raise HTTPException(413, f"a body has at most {self._body_bytes} bytes")
                    if len(body) > SMALL_BODY:
                        self._large[given_up] = len(body)
                        self._make_room(given_up)
        except TimeoutError:
            raise HTTPException(503, "too much at once, send it again") from None
        finally:
            self._large.pop(given_up, None)
        return bytes(body)

    def _make_room(self, newcomer: asyncio.Timeout) -> None:
        while sum(self._large.values()) > self._held_bytes:
            oldest = next(one for one in self._large if one is not newcomer or len(self._large) == 1)
            del self._large[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())


class ImpatientConnection(HttpToolsProtocol):
    """uvicorn's connection, aborted if a request is too slow, its head too large or its answer not read.

    uvicorn bounds none of these, so a few hundred connections that trickle would use all of them up. Where
    there are too many connections, the one that has waited for its request for longest makes room.
    """

    connections: set["ImpatientConnection"]  # type: ignore[assignment]
    _request_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0  # all of a request but its body: head, sizes of chunks, trailers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) > PEER_CONNECTIONS:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._request_timer)
        _cancel(self._answer_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > HEAD_BYTES:
            self.transport.abort()
        elif self.cycle is None or self.cycle.response_complete:  # an empty line ends uvicorn's own limit
            self._expect_request()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._expect_request()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        _cancel(self._request_timer)
        self._request_timer = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._answer_timer = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        _cancel(self._answer_timer)
        super().resume_writing()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer as if plain HTTP had been asked for; strangers write no lines into the log."""

    def _make_room(self) -> None:
        open_ = [one for one in self.connections if not one.transport.is_closing()]
        peers = [one for one in open_ if one._peer == self._peer]
        is_crowd = self._peer not in _THIS_MACHINE and len(peers) > PEER_CONNECTIONS
        if is_crowd or len(open_) > CONNECTIONS:
            oldest = min(peers if is_crowd else open_, key=lambda one: one._waits_until)
            oldest.transport.abort()

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def _waits_until(self) -> float:
        return self._request_timer.when() if self._request_timer is not None else math.inf

    def _expect_request(self) -> None:
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Guard:
    """Lets in who holds the administrator's token, or the token that server.json gives to commands."""

    def __init__(self, admin_token: AdminToken) -> None:
        self.admin_token = admin_token
        self.server_token = ""  # set once the server listens

    async def token(
        self, request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
    ) -> None:
        """Answer 401 unless the request carries a token."""
        await self._check(request)

    async def local_or_token(self, request: Request) -> None:
        """Answer 401 unless the request comes from this machine or carries a token."""
        if not is_local(request):
            await self._check(request)

    def route_class(self) -> type[APIRoute]:
        """Return a route that checks the token before the body, which FastAPI reads before any dependency."""
        guard = self

        class GuardedRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
                handle = super().get_route_handler()

                async def guarded(request: Request) -> Response:
                    await guard._check(request)
                    bounded = bounded_receive(request.receive, ADMIN_BODY_BYTES)
                    return await handle(_StrictRequest(request.scope, bounded))

                return guarded

        return GuardedRoute

    async def _check(self, request: Request) -> None:
        if not await self.admin_token.opens(request, self.server_token):
            words = "send the administrator's token (recado token) as a bearer"
            raise HTTPException(401, words, {"WWW-Authenticate": "Bearer"})


class _StrictRequest(Request):
    """A request whose JSON is refused if it holds half a surrogate pair, which cannot be kept."""

    async def json(self) -> Any:
        return orjson.loads(await self.body())
