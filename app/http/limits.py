"""Limits that keep slow, large and many clients from shutting Meta's webhooks out."""

import asyncio
import resource

from fastapi import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CONNECTIONS = 2000
REQUEST_SECONDS = 30.0  # from a request's first byte (of the first request: from the connection) to its last
ANSWER_SECONDS = 30.0  # until a client goes on reading an answer that fills the buffers
HEAD_BYTES = 64 * 1024


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
            raise HTTPException(413, f"a request here has at most {limit} bytes")
        return message

    return bounded


class BodyReader:
    """Reads request bodies, each of at most `body_bytes`, all that are on their way `held_bytes` together."""

    def __init__(self, body_bytes: int, held_bytes: int) -> None:
        self._body_bytes = body_bytes
        self._held_bytes = held_bytes
        self._held = 0

    async def read(self, request: Request) -> bytes:
        """Return the body. Raise HTTPException 413 or 503 over a limit, ClientDisconnect if it broke off."""
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._body_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            async for chunk in request.stream():
                if len(body) + len(chunk) > self._body_bytes:
                    raise self._too_large()
                if self._held + len(chunk) > self._held_bytes:
                    raise HTTPException(503, "too much at once, send it again")
                self._held += len(chunk)
                body += chunk
        finally:
            self._held -= len(body)
        return bytes(body)

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"a body has at most {self._body_bytes} bytes")


class ImpatientConnection(HttpToolsProtocol):
    """uvicorn's connection, aborted if a request is too slow, its head too large or its answer not read.

    uvicorn bounds none of these, so a few hundred connections that trickle would use all of them up.
    """

    _request_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0  # all of a request but its body: head, sizes of chunks, trailers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_request()

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

    def _expect_request(self) -> None:
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
