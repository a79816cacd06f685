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
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

CLOSE_SECONDS = 1.0


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
        self._sessions: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if not await self._token.opens(request):
            said = "send the administrator's token (recado token) as a bearer"
            answer: ASGIApp = JSONResponse({"error": said}, 401, {"WWW-Authenticate": "Bearer"})
        elif is_from_a_page(request):
            said = "pages of other sites, and names that are not this machine's, are refused"
            answer = JSONResponse({"error": said}, 403)
        elif self._closing.is_set():
            answer = JSONResponse({"error": "the server is stopping"}, 503)
        else:
            answer = (await self._started()).handle_request
        await answer(scope, receive, send)

    async def close(self) -> None:
        """End every session and every stream; refuse new ones."""
        self._closing.set()
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=CLOSE_SECONDS)
            self._running.cancel()

    async def _started(self) -> "StreamableHTTPSessionManager":
        async with self._starting:
            if self._sessions is None:
                module = await asyncio.to_thread(import_module, "app.mcp.server_protocol")  # half a second
                sessions: StreamableHTTPSessionManager = module.session_manager(self._provider)
                ready = asyncio.Event()
                self._running = asyncio.create_task(self._run(sessions, ready), name="mcp sessions")
                await ready.wait()
                self._sessions = sessions
            return self._sessions

    async def _run(self, sessions: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
        async with sessions.run():  # the SDK's task group belongs to one task
            ready.set()
            await self._closing.wait()
