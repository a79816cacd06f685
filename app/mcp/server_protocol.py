"""The protocol of `/mcp` on the SDK's server: sessions of the handshake revisions, and single requests."""

import asyncio
import json
from base64 import b64encode
from typing import Any
from urllib.parse import quote

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import Receive, Scope, Send

from app import __version__
from app.mcp.server import ToolProvider
from app.messages import JSON
from app.tools import Tool
from app.tools.result import ReturnedFile

MAX_SESSIONS = 256
IDLE_SECONDS = 600.0  # without a request and an open stream, before a session is forgotten
REQUEST_BYTES = 1024 * 1024
CLOSE_SECONDS = 1.0

_INSTRUCTIONS = (
    "The tools of a personal assistant. They act for its owner: notes, lists and reminders are the owner's, "
    "and reminders are told in the owner's chat. A tool that needs a person's yes is refused with NO_TTY."
)
_UNKNOWN_TOOL_CODES = frozenset({"UNKNOWN_TOOL", "NOT_OFFERED"})

_Context = ServerRequestContext[Any, Any]


class ServerProtocol:
    """Serves the tools of a provider; the requests it gets are allowed already."""

    def __init__(self, provider: ToolProvider) -> None:
        self._provider = provider
        self._sessions = StreamableHTTPSessionManager(
            Server[Any](
                "recado",
                title="Recado",
                version=__version__,
                instructions=_INSTRUCTIONS,
                cache_hints={"tools/list": CacheHint(scope="private")},
                get_tool_input_schema=self._input_schema,
                on_list_tools=self._list,
                on_call_tool=self._call,
            ),
            max_sessions=MAX_SESSIONS,
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=REQUEST_BYTES,
        )
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start; requests can be handled afterwards."""
        ready = asyncio.Event()
        self._running = asyncio.create_task(self._run(ready), name="mcp sessions")
        await ready.wait()

    async def close(self) -> None:
        """End all sessions."""
        self._closing.set()
        if self._running is not None:
            await asyncio.wait({self._running}, timeout=CLOSE_SECONDS)
            self._running.cancel()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, as an ASGI application."""
        await self._sessions.handle_request(scope, receive, send)

    async def _run(self, ready: asyncio.Event) -> None:
        async with self._sessions.run():  # the SDK's task group belongs to one task
            ready.set()
            await self._closing.wait()

    async def _list(
        self, context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        await self._provider.refresh()
        return types.ListToolsResult(tools=list(map(_definition, self._provider.tools)))

    async def _call(self, context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        await self._provider.refresh()
        result = await self._provider.call(params.name, params.arguments or {})
        if result.code in _UNKNOWN_TOOL_CODES:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        text = result.to_json()  # as our own model reads it
        files = [_block(file, number) for number, file in enumerate(result.attachments, 1)]
        content = [types.TextContent(text=text), *files]
        return types.CallToolResult(
            content=content, structured_content=json.loads(text), is_error=not result.ok
        )

    def _input_schema(self, name: str) -> dict[str, JSON] | None:
        return next((tool.input_schema for tool in self._provider.tools if tool.name == name), None)


def _definition(tool: Tool) -> types.Tool:
    """Return a tool with its hints.

    Idempotent are only those that read: the others are so with a key that no caller of ours gives.
    """
    hints = types.ToolAnnotations(
        read_only_hint=tool.read_only,
        idempotent_hint=tool.read_only,
        destructive_hint=not tool.read_only and (tool.destructive or tool.sensitive),
        open_world_hint=tool.outside,
    )
    return types.Tool(
        name=tool.name,
        title=tool.name.replace("_", " ").capitalize(),
        description=tool.mcp_definition()["description"],
        input_schema=tool.input_schema,
        output_schema=_RESULT,
        annotations=hints,
    )


_RESULT = {
    "type": "object",
    "properties": {
        "ok": {"type": "boolean"},
        "data": {"description": "what the tool returned, if it is ok"},
        "error": {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("code", "message", "hint")},
        },
        "meta": {"type": "object"},
    },
    "required": ["ok"],
}


def _block(file: ReturnedFile, number: int) -> types.ContentBlock:
    data = b64encode(file.data).decode()
    kind, _, _ = file.mime_type.partition("/")
    if kind == "image":
        return types.ImageContent(data=data, mime_type=file.mime_type)
    if kind == "audio":
        return types.AudioContent(data=data, mime_type=file.mime_type)
    uri = f"attachment:{quote(file.name or str(number), safe='')}"
    mime_type = file.mime_type or "application/octet-stream"
    blob = types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=data)
    return types.EmbeddedResource(resource=blob)
