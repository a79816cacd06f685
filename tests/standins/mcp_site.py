"""An MCP server behind an address, by the SDK; or one that misbehaves as HTTP does."""

import json
from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from starlette.types import Receive, Scope, Send

from tests.standins.listener import Listener

Spoil = Callable[[str, dict[str, Any], Scope], tuple[int, dict[str, str], bytes] | None]
"""Given a method of HTTP, the message and the request: what is answered in place of the server."""


class McpSite:
    """`legacy`: without 2026-07-28. `spoil` may be set at any time. `asked`: the messages that came."""

    def __init__(self, *, legacy: bool = False, as_json: bool = False) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.spoil: Spoil | None = None
        self._legacy = legacy
        self._app = _server().streamable_http_app(json_response=as_json, stateless_http=False)
        self._listener = Listener(self)
        self.port = self._listener.port
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def stop(self) -> None:
        self._listener.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        message = json.loads(body) if body else {}
        self.asked.append(message)
        self.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        answer = self.spoil(scope["method"], message, scope) if self.spoil else None
        if self._legacy and message.get("method") == "server/discover":
            answer = 400, {"content-type": "text/plain"}, b"what is that?"
        if answer is not None:
            await _send(send, *answer)
            return
        given = [body]

        async def again() -> Any:
            if given:
                return {"type": "http.request", "body": given.pop(), "more_body": False}
            return await receive()

        await self._app(scope, again, send)


async def _send(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _server() -> MCPServer:
    server = MCPServer("stand-in", log_level="ERROR")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Adds two numbers."""
        return a + b

    @server.tool()
    async def steps(count: int, seconds: float, ctx: Context) -> str:
        """Takes steps and tells of each."""
        import anyio

        for step in range(count):
            await anyio.sleep(seconds)
            await ctx.report_progress(step + 1)
        return "done"

    @server.tool()
    def big(megabytes: int) -> str:
        """Says much."""
        return "x" * (megabytes * 2**20)

    @server.tool()
    async def grow(name: str, ctx: Context) -> str:
        """Adds a tool."""
        server.add_tool(lambda: "new", name=name, description="was not there before")
        await ctx.notify_tools_changed()
        await ctx.session.send_tool_list_changed()
        return "grown"

    return server
