"""Our own tools at `/mcp`, for programs that hold the administrator's token.

The protocol is in a module of its own because that loads the SDK: 0.6 s and 45 MB that few need.
"""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.messages import JSON
from app.security import AdminToken, is_from_a_page
from app.tools import Tool, ToolResult

if TYPE_CHECKING:
    from app.mcp.server_protocol import ServerProtocol


class ToolProvider(Protocol):
    """Has the tools that are served, and runs them."""

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def refresh(self) -> None:
        """Find out whether the tools changed."""

    async def call(self, name: str, arguments: dict[str, JSON]) -> ToolResult: ...


class ToolServer:
    """Streamable HTTP as an ASGI application. The protocol is loaded at the first request with the token."""

    def __init__(self, token: AdminToken, provider: ToolProvider) -> None:
        self._token = token
        self._provider = provider
        self._protocol: ServerProtocol | None = None
        self._loading = asyncio.Lock()
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if not await self._token.opens(request):
            said = "send the administrator's token (recado token) as a bearer"
            answer: ASGIApp = JSONResponse({"error": said}, 401, {"WWW-Authenticate": "Bearer"})
        elif is_from_a_page(request):
            said = "pages of other sites, and names that are not this machine's, are refused"
            answer = JSONResponse({"error": said}, 403)
        elif protocol := await self._started():
            answer = protocol.handle
        else:
            answer = JSONResponse({"error": "the server is stopping"}, 503)
        await answer(scope, receive, send)

    async def close(self) -> None:
        """End every session and every stream; refuse new ones."""
        async with self._loading:
            self._closed = True
            if self._protocol is not None:
                await self._protocol.close()
                self._protocol = None

    async def _started(self) -> "ServerProtocol | None":
        async with self._loading:
            if self._protocol is None and not self._closed:
                module = await asyncio.to_thread(import_module, "app.mcp.server_protocol")  # half a second
                protocol: ServerProtocol = module.ServerProtocol(self._provider)
                await protocol.start()
                self._protocol = protocol
            return self._protocol
