"""A connection to a server: its greeting, the list of its tools, calls. It loads the SDK."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import mcp_types as types
import structlog
from mcp.client import ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.methods import validate_server_result
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from app import __version__
from app.errors import first_fault
from app.i18n import lazy
from app.mcp.adapter import MAX_NAME, why_unusable
from app.mcp.approved import pinned
from app.mcp.definitions import ConnectionLost, Refused, ServerDefinition, Unreachable
from app.mcp.transports import NOT_SENT, ServerLink, open_remote, run_program
from app.messages import JSON, array
from app.processes.sandbox import Sandbox
from app.text import Private

log = structlog.get_logger(__name__)

_DISCOVER_SECONDS = 5.0  # of an address, before the handshake is tried
_LISTEN_AGAIN_SECONDS = 30.0
PAGES = 50
MAX_TOOLS = 500
_RAW = "recado/raw"  # under which a result's `_meta` carries what the server wrote, past the SDK's types


@asynccontextmanager
async def connect(definition: ServerDefinition, sandbox: Sandbox) -> AsyncIterator["Connection"]:
    """Connect in a revision that both sides speak.

    A program is greeted with the handshake first, because some never answer `server/discover` (2026-07-28);
    an address with that, as the revision wants it. To be entered and left by one task, which sets the limit
    of time. Raises Unreachable.
    """
    is_program = bool(definition.command)
    try:
        connection, opened = await _open(definition, sandbox, newest=not is_program)
    except Unreachable as first:
        try:
            connection, opened = await _open(definition, sandbox, newest=is_program)
        except Unreachable as second:
            raise (first if is_program else second) from None  # what the handshake came to tells more
    listening = asyncio.create_task(connection.listen())
    try:
        yield connection
    finally:
        listening.cancel()
        await opened.aclose()  # without the exception, which the SDK's task groups would wrap


async def _open(
    definition: ServerDefinition, sandbox: Sandbox, *, newest: bool
) -> tuple["Connection", AsyncExitStack]:
    """Greet a server over a link of its own: some answer nothing after a greeting that they do not know.

    Return the connection and what closes it. Raises Unreachable; then nothing of the attempt is left.
    """
    opened = AsyncExitStack()
    try:
        program = run_program(definition, sandbox) if definition.command else None
        link = await opened.enter_async_context(program or open_remote(definition))
        connection = Connection(definition, link)
        session = await opened.enter_async_context(connection.session)
        try:
            async with asyncio.timeout(_DISCOVER_SECONDS if newest and not program else None):
                await (session.discover() if newest else session.initialize())
        except TimeoutError:
            raise Unreachable(lazy("it does not answer")) from None
        except (MCPError, RuntimeError, ValidationError) as error:
            why = first_fault(error) if isinstance(error, ValidationError) else str(error)
            raise Unreachable(await link.end_reason() or why) from error
    except BaseException:
        with suppress(Unreachable):
            await opened.aclose()
        raise
    return connection, opened


class Connection:
    """A session with a server. Any task may use it; the one that opened it closes it."""

    def __init__(self, definition: ServerDefinition, link: ServerLink) -> None:
        self.link = link
        self.changed = link.changed
        self._server = definition.name
        self._dispatcher = _TolerantDispatcher(link)
        self.session = ClientSession(
            dispatcher=self._dispatcher,
            message_handler=self._on_message,
            client_info=types.Implementation(name="recado", version=__version__),
        )

    @property
    def revision(self) -> str:
        return self.session.protocol_version or ""

    async def list_tools(self) -> tuple[Sequence[Mapping[str, JSON]], Sequence[tuple[str, str]]]:
        """Return the usable definitions of all pages, within limits, and the others' names with the reason.

        Raises ConnectionLost or Refused.
        """
        tools: dict[str, Mapping[str, JSON]] = {}
        dropped: list[tuple[str, str]] = []
        cursor: str | None = None
        seen: set[str] = set()
        self._dispatcher.revision = self.revision
        for _ in range(PAGES):
            with self._own_errors():
                page = await self.session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            usable = {tool.name for tool in page.tools}
            listed, unusable = (page.meta or {})[_RAW]
            for raw in listed:
                name = raw["name"]
                if name in usable and name not in tools:
                    tools[name] = raw
                else:
                    why = "another tool has its name, or it asks for headers that cannot be sent"
                    dropped.append((name, why))
            dropped += unusable
            cursor = page.next_cursor
            if cursor is None or cursor in seen or len(tools) >= MAX_TOOLS:
                break
            seen.add(cursor)
        if cursor is not None:
            taken = min(len(tools), MAX_TOOLS)
            dropped.append(("…", f"the list has no end; its first {taken} tools are taken"))
        return list(tools.values())[:MAX_TOOLS], dropped[:MAX_TOOLS]

    async def call(self, tool: str, args: dict[str, JSON], on_progress: ProgressFnT) -> dict[str, JSON]:
        """Return the result as the server wrote it. Raises ConnectionLost or Refused.

        The server is told of a call that is cancelled.
        """
        if self.link.ended.is_set():
            raise ConnectionLost("its connection has ended", sent=False)
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=args))
        with self._own_errors():
            answer = await self.session.send_request(
                request, types.CallToolResult, progress_callback=on_progress
            )
        result: dict[str, JSON] = (answer.meta or {})[_RAW]
        return result

    async def listen(self) -> None:
        """Set `changed` when the tools may have changed; the newest revisions want to be asked for that."""
        capabilities = self.session.server_capabilities
        has_news = capabilities and capabilities.tools and capabilities.tools.list_changed
        if self.revision not in MODERN_PROTOCOL_VERSIONS or not has_news:
            return
        while not self.link.ended.is_set():
            try:
                async with listen(self.session, tools_list_changed=True) as news:
                    async for _ in news:
                        self.changed.set()
            except MCPError as error:
                log.debug("a server tells no news", server=self._server, error=Private(error.message))
                return
            except SubscriptionLost:
                pass  # tried again below
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)
            self.changed.set()  # what happened meanwhile was not told

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self.changed.set()

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except MCPError as error:
            if error.code == NOT_SENT:
                raise ConnectionLost(error.message, sent=False) from error
            if error.code == types.CONNECTION_CLOSED or self.link.ended.is_set():
                raise ConnectionLost(error.message, sent=True) from error
            raise Refused(error.code, error.message) from error


class _TolerantDispatcher(JSONRPCDispatcher[Any]):
    """The SDK's, with results that its types accept: they would refuse a whole result for one bad part.

    What the server wrote travels in the `_meta` of each. Tells the link when it has ended.
    """

    def __init__(self, link: ServerLink) -> None:
        super().__init__(*link.streams)
        self._link = link
        self.revision = ""

    async def run(self, *args: Any, **named: Any) -> None:
        try:
            await super().run(*args, **named)
        finally:
            self._link.end()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **named: Any
    ) -> dict[str, Any]:
        result = await super().send_raw_request(method, params, opts, **named)
        if method == "tools/call":
            return {"resultType": "complete", "content": [], "_meta": {_RAW: result}}
        if method == "tools/list":  # off the loop: a hostile page may take seconds
            return await asyncio.to_thread(self._checked_page, result)
        return result

    def _checked_page(self, result: dict[str, JSON]) -> dict[str, JSON]:
        """Return a page without the tools for which the SDK would refuse it as a whole."""
        cursor = result.get("nextCursor")
        page: dict[str, JSON] = {
            "ttlMs": 0,
            "cacheScope": "private",
            "resultType": "complete",
            "nextCursor": cursor if isinstance(cursor, str) else None,
        }
        tools: list[dict[str, JSON]] = []
        dropped: list[tuple[str, str]] = []
        for raw in array(result.get("tools"))[:MAX_TOOLS]:
            name = raw.get("name") if isinstance(raw, dict) else None
            why = why_unusable(raw)
            try:
                if not why:
                    validate_server_result("tools/list", self.revision, page | {"tools": [raw]})
            except ValidationError as error:
                why = first_fault(error)
            if why:
                dropped.append((name[:MAX_NAME] if isinstance(name, str) else "?", why[:MAX_NAME]))
            else:  # what is not checked may be of any size
                tools.append(pinned(raw))
        return page | {"tools": tools, "_meta": {_RAW: (tools, dropped)}}
