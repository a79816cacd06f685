"""The protocol of `/mcp` on the SDK's server: sessions of the handshake revisions, and single requests."""

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

from app import __version__
from app.mcp.server import ToolProvider
from app.messages import JSON
from app.tools import Tool
from app.tools.result import ReturnedFile

MAX_SESSIONS = 256
IDLE_SECONDS = 600.0  # without a request and an open stream, before a session is forgotten
REQUEST_BYTES = 1024 * 1024

_INSTRUCTIONS = (
    "The tools of a personal assistant. They act for its owner: notes, lists and reminders are the owner's, "
    "and reminders are told in the owner's chat. A tool that needs a person's yes is refused with NO_TTY."
)
_UNKNOWN_TOOL_CODES = frozenset({"UNKNOWN_TOOL", "NOT_OFFERED"})

_Context = ServerRequestContext[Any, Any]


def session_manager(provider: ToolProvider) -> StreamableHTTPSessionManager:
    """Return what serves the tools of a provider; the requests it gets are allowed already."""

    async def list_tools(
        context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        await provider.refresh()
        return types.ListToolsResult(tools=list(map(_definition, provider.tools)))

    async def call_tool(context: _Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        await provider.refresh()
        result = await provider.call(params.name, params.arguments or {})
        if result.code in _UNKNOWN_TOOL_CODES:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}")
        text = result.to_json()  # as our own model reads it
        files = [_block(file, number) for number, file in enumerate(result.attachments, 1)]
        content = [types.TextContent(text=text), *files]
        return types.CallToolResult(
            content=content, structured_content=json.loads(text), is_error=not result.ok
        )

    def input_schema(name: str) -> dict[str, JSON] | None:
        return next((tool.input_schema for tool in provider.tools if tool.name == name), None)

    server = Server[Any](
        "recado",
        title="Recado",
        version=__version__,
        instructions=_INSTRUCTIONS,
        cache_hints={"tools/list": CacheHint(scope="private")},
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    return StreamableHTTPSessionManager(
        server,
        max_sessions=MAX_SESSIONS,
        session_idle_timeout=IDLE_SECONDS,
        max_request_body_size=REQUEST_BYTES,
    )


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
        "error": {"type": "object", "description": "its code, message and hint"},
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
