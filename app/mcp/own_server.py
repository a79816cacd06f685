"""Our own tools at `/mcp`, for programs that hold the administrator's token."""

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.messages import JSON
from app.security import AdminToken, is_from_a_page
from app.tools import Tool, ToolResult

if TYPE_CHECKING:
    from app.mcp.own_protocol import ToolProtocol


class ToolHouse(Protocol):
    """Has the tools that are served, and runs them."""

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def refresh(self) -> None:
        """Finds out whether there are others now."""

    async def call(self, name: str, arguments: dict[str, JSON]) -> ToolResult: ...


class ToolServer:
    """Streamable HTTP, as an ASGI application. What speaks the protocol is loaded for the first who may."""

    def __init__(self, token: AdminToken, house: ToolHouse) -> None:
        self._token = token
        self._house = house
        self._protocol: ToolProtocol | None = None
        self._loading = asyncio.Lock()
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Request(scope))
        protocol = None if refusal is not None else await self._started()
        if protocol is not None:
            await protocol.handle(scope, receive, send)
        else:
            await (refusal or _error("the server is stopping", 503))(scope, receive, send)

    async def close(self) -> None:
        """Ends every session and every stream; none begins any more."""
        async with self._loading:
            self._closed = True
            if self._protocol is not None:
                await self._protocol.close()
                self._protocol = None

    def _refusal(self, request: Request) -> Response | None:
        if not self._token.opens(request):
            said = "send the administrator's token (recado token) as a bearer"
            return _error(said, 401, {"WWW-Authenticate": "Bearer"})
        if is_from_a_page(request):
            return _error("pages of other sites, and names that are not this machine's, are refused", 403)
        return None

    async def _started(self) -> "ToolProtocol | None":
        """None once it is closed."""
        async with self._loading:
            if self._protocol is None and not self._closed:
                module = await asyncio.to_thread(import_module, "app.mcp.own_protocol")  # half a second
                protocol: ToolProtocol = module.ToolProtocol(self._house)
                await protocol.start()
                self._protocol = protocol
            return self._protocol


def _error(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"error": text}, status, headers)
