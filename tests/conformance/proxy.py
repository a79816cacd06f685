"""Stands between the suite, which takes no token, and the server: adds it, and changes nothing else."""

import asyncio

import httpx
from starlette.types import Receive, Scope, Send

from tests.standins.listener import Listener

_OF_A_CONNECTION = (b"connection", b"keep-alive", b"transfer-encoding", b"content-length")


class TokenProxy:
    """An ASGI application that hands every request on to `server`, and lets go of it when its caller does."""

    def __init__(self, server: str, token: str) -> None:
        self._server = server
        self._token = token
        self._listener = Listener(self)
        self.url = f"http://127.0.0.1:{self._listener.port}"

    def stop(self) -> None:
        self._listener.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        forwarding = asyncio.create_task(self._forward(scope, body, send))
        leaving = asyncio.create_task(_left(receive))
        await asyncio.wait({forwarding, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (forwarding, leaving):
            task.cancel()
        await asyncio.gather(forwarding, leaving, return_exceptions=True)

    async def _forward(self, scope: Scope, body: bytes, send: Send) -> None:
        headers = [(name, value.strip()) for name, value in scope["headers"] if name not in _OF_A_CONNECTION]
        headers.append((b"authorization", f"Bearer {self._token}".encode()))
        url = self._server + scope["path"]
        async with (
            httpx.AsyncClient(timeout=None, trust_env=False, verify=False) as http,
            http.stream(scope["method"], url, headers=headers, content=body) as answer,
        ):
            kept = [pair for pair in answer.headers.raw if pair[0].lower() not in _OF_A_CONNECTION]
            await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
            async for chunk in answer.aiter_raw():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
