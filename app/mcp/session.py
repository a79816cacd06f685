"""One connection to a server: the revision agreed on, its tools listed one by one, its tools called.

Importing this takes 0.6 s and 45 MB, for the packages of the protocol: nobody does before a server starts.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import structlog
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from app import __version__
from app.mcp.adapter import LONGEST_NAME, why_unusable
from app.mcp.definitions import ServerDefinition
from app.mcp.pins import PINNED
from app.mcp.remote import reached
from app.mcp.stdio import started
from app.mcp.wire import BROKEN, NOT_SENT, Lost, Refused, Unreachable, Unstartable
from app.messages import JSON
from app.processes.sandbox import Sandbox

log = structlog.get_logger(__name__)

PROBE_SECONDS = 2.5
"""For a server that nobody knows to say whether it speaks 2026-07-28: some never answer such a question."""
_KNOWN_PROBE_SECONDS = 10.0
_LISTEN_SECONDS = 10.0
_LISTEN_AGAIN_SECONDS = 30.0
PAGES = 50
LONGEST_CURSOR = 4096
TOOLS = 500

Opening = Callable[[], AbstractAsyncContextManager["Link"]]


class Link(Protocol):
    """How messages travel: a process's input and output, or HTTP."""

    grace: bool
    """Whether it may take its time to end."""

    @property
    def streams(
        self,
    ) -> tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]: ...

    @property
    def expired(self) -> asyncio.Event:
        """Set once nothing more comes of it."""
        ...

    @property
    def doubted(self) -> asyncio.Event:
        """Set where the server may have forgotten us: a question would show."""
        ...

    @property
    def forgotten(self) -> bool:
        """Whether it ended because the server's session did, and nothing is wrong with it."""
        ...

    async def why(self) -> str:
        """What is known of why it ended."""
        ...


@dataclass(frozen=True, slots=True)
class Listing:
    """The definitions of a server's tools that are of use, and those that are not, with the reason."""

    tools: tuple[Mapping[str, JSON], ...]
    dropped: tuple[tuple[str, str], ...]


@asynccontextmanager
async def connected(
    definition: ServerDefinition,
    sandbox: Sandbox,
    *,
    known: str = "",
    allowed: Collection[tuple[str, int]] = (),
    probing: AbstractAsyncContextManager[object] | None = None,
) -> AsyncIterator["Connection"]:
    """A connection in the newest revision that both sides speak; `known`: the one it had last.

    `allowed`: hosts and ports that may be asked although they are not public. `probing` is held while an
    unknown server is asked what it speaks: many at once are slower than they may be. To be entered and left
    by one task. Raises Unreachable; sets no limit of time to the whole.
    """
    opening: Opening = partial(reached, definition, allowed)
    if definition.command:
        opening = partial(started, definition, sandbox)
    stack = AsyncExitStack()
    try:
        connection = await _negotiated(stack, definition, opening, known, probing or nullcontext())
        listening = asyncio.create_task(connection.listen())
        stack.callback(listening.cancel)
        yield connection
    finally:
        await stack.aclose()  # without what was raised: the SDK's groups of tasks would wrap it


async def _negotiated(
    stack: AsyncExitStack,
    definition: ServerDefinition,
    opening: Opening,
    known: str,
    probing: AbstractAsyncContextManager[object],
) -> "Connection":
    """What was tried and did not work is not used again: some servers answer nothing more, some end."""
    if known not in HANDSHAKE_PROTOCOL_VERSIONS:
        seconds = _KNOWN_PROBE_SECONDS if known else PROBE_SECONDS
        try:
            async with nullcontext() if known else probing:
                return await _opened(stack, definition, opening, Connection.discover, seconds)
        except Unstartable:
            raise
        except Unreachable as error:
            log.debug("a server does not speak 2026-07-28", server=definition.name, why=str(error))
    try:
        return await _opened(stack, definition, opening, Connection.initialize)
    except _Modern:  # it was slow to say so
        return await _opened(stack, definition, opening, Connection.discover)


async def _opened(
    stack: AsyncExitStack,
    definition: ServerDefinition,
    opening: Opening,
    greet: Callable[["Connection"], Awaitable[None]],
    seconds: float | None = None,
) -> "Connection":
    """Raises Unreachable where the greeting comes to nothing; then nothing of the attempt is left."""
    attempt = AsyncExitStack()
    try:
        link = await attempt.enter_async_context(opening())
        connection = Connection(definition, link)
        await attempt.enter_async_context(connection.session)
        fault = await _greeted(connection, greet, seconds)
    except BaseException:
        await attempt.aclose()
        raise
    if fault is None:
        stack.push_async_exit(attempt)
        return connection
    with suppress(Unreachable):
        await attempt.aclose()
    raise fault


async def _greeted(
    connection: "Connection", greet: Callable[["Connection"], Awaitable[None]], seconds: float | None
) -> Unreachable | None:
    try:
        async with asyncio.timeout(seconds):
            await greet(connection)
    except (MCPError, RuntimeError, ValidationError, TimeoutError) as error:
        if isinstance(error, MCPError) and error.code == UNSUPPORTED_PROTOCOL_VERSION:
            return _Modern("it speaks none of the revisions with a handshake")
        why = "" if isinstance(error, TimeoutError) else await connection.why()
        return Unreachable(why or _words(error))
    return None


class _Modern(Unreachable):
    """It answers a handshake with the revisions that have none."""


class Connection:
    """Talked to by any task; entered and left by the one that opened it."""

    def __init__(self, definition: ServerDefinition, link: Link) -> None:
        self._definition = definition
        self._link = link
        self.ended = link.expired
        self.changed = asyncio.Event()
        """The server says that its tools are others now."""
        self._dispatcher = _Dispatcher(link)
        self.session = ClientSession(
            dispatcher=self._dispatcher,
            message_handler=self._hear,
            client_info=Implementation(name="recado", version=__version__),
        )

    @property
    def revision(self) -> str:
        return self.session.protocol_version or ""

    async def discover(self) -> None:
        """Agrees on 2026-07-28. Raises what the SDK raises."""
        await self.session.discover()
        self._dispatcher.revision = self.revision

    async def initialize(self) -> None:
        """Agrees on an older one by its handshake. Raises what the SDK raises."""
        await self.session.initialize()
        self._dispatcher.revision = self.revision

    def ready(self) -> None:
        """It served: from now on it may take a moment to end."""
        self._link.grace = True

    async def why(self) -> str:
        """What is known of why it ended; "" for nothing."""
        return await self._link.why()

    @property
    def forgotten(self) -> bool:
        """Whether it ended because the server's session did."""
        return self._link.forgotten

    async def list_tools(self) -> Listing:
        """All pages, within limits; what is of no use is left out. Raises Lost or Refused."""
        tools: dict[str, Mapping[str, JSON]] = {}
        dropped: list[tuple[str, str]] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(PAGES):
            with self._in_our_words():
                page = await self.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            usable = {tool.name for tool in page.tools}
            for raw in self._dispatcher.page:
                name = raw["name"]
                if name in tools:
                    dropped.append((name, "another tool of the server has that name"))
                elif name in usable:
                    tools[name] = raw
                else:
                    dropped.append((name, "its schema asks for headers that cannot be sent"))
            dropped += self._dispatcher.dropped
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen or len(cursor) > LONGEST_CURSOR or len(tools) >= TOOLS:
                break
            seen.add(cursor)
        if cursor is not None:
            dropped.append(("…", f"the list has no end; its first {min(len(tools), TOOLS)} tools are taken"))
        return Listing(tuple(tools.values())[:TOOLS], tuple(dropped[:TOOLS]))

    async def call(self, tool: str, args: dict[str, JSON], on_progress: ProgressFnT) -> dict[str, JSON]:
        """The result as the server wrote it; told of a call that is cancelled. Raises Lost or Refused."""
        try:
            return await self._called(tool, args, on_progress)
        except Refused as refused:
            if refused.code != HEADER_MISMATCH:
                raise
            await self.list_tools()  # what the headers have to repeat of the arguments has changed
            return await self._called(tool, args, on_progress)

    async def _called(self, tool: str, args: dict[str, JSON], on_progress: ProgressFnT) -> dict[str, JSON]:
        if self.ended.is_set():
            raise Lost("its connection has ended", sent=False)
        request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=args))
        try:
            with self._in_our_words():
                await self.session.send_request(request, CallToolResult, progress_callback=on_progress)
        except _Answered as answered:
            return answered.result
        raise AssertionError("unreachable")

    def _in_our_words(self) -> "_OurWords":
        return _OurWords(self.ended)

    async def listen(self) -> None:
        """Hears of changed tools in the revisions that want to be asked for it; in the others has them looked
        at where the session may be gone."""
        capabilities = self.session.server_capabilities
        tells = capabilities is not None and capabilities.tools and capabilities.tools.list_changed
        if self.revision not in MODERN_PROTOCOL_VERSIONS:
            await self._link.doubted.wait()
            self.changed.set()
            return
        if not tells:
            return
        while not self.ended.is_set():
            try:
                await self._subscribe()
            except MCPError as error:
                log.debug("a server tells no news", server=self._definition.name, error=error.message)
                return
            except (SubscriptionLost, TimeoutError):
                pass  # tried again below
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)
            self.changed.set()  # nobody told of what happened meanwhile

    async def _subscribe(self) -> None:
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(_LISTEN_SECONDS):
                news = await stack.enter_async_context(listen(self.session, tools_list_changed=True))
            async for _ in news:
                self.changed.set()

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.changed.set()
        elif isinstance(message, Exception):
            log.debug("a server's message was not understood", server=self._definition.name)


class _Answered(Exception):
    """A tool's result as it came, carried past the SDK's types, which refuse all of it for one part."""

    def __init__(self, result: dict[str, JSON]) -> None:
        self.result = result


class _Dispatcher(JSONRPCDispatcher[Any]):
    """The SDK's, which looks at results before its typed layer does, and says when it has ended."""

    def __init__(self, link: Link) -> None:
        super().__init__(*link.streams)
        self._ended = link.expired
        self.revision = ""
        self.page: list[dict[str, JSON]] = []
        """The definitions of the last page that passed."""
        self.dropped: list[tuple[str, str]] = []

    async def run(self, *args: Any, **named: Any) -> None:
        try:
            await super().run(*args, **named)
        finally:
            self._ended.set()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **named: Any
    ) -> dict[str, Any]:
        result = await super().send_raw_request(method, params, opts, **named)
        if method == "tools/call":
            raise _Answered(result)
        if method == "tools/list":  # off the loop: a hostile page may keep it busy for seconds
            return await asyncio.to_thread(self._sifted, result)
        return result

    def _sifted(self, result: dict[str, JSON]) -> dict[str, JSON]:
        """A page without the tools for which the SDK would refuse it as a whole."""
        listed, cursor = result.get("tools"), result.get("nextCursor")
        page = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"} | result
        page["nextCursor"] = cursor if isinstance(cursor, str) else None
        self.page, self.dropped = [], []
        for raw in listed[:TOOLS] if isinstance(listed, list) else []:
            name = raw.get("name") if isinstance(raw, dict) else None
            why = why_unusable(raw) or self._why_untyped(page, raw)
            if why:
                self.dropped.append(
                    (name[:LONGEST_NAME] if isinstance(name, str) else "?", why[:LONGEST_NAME])
                )
            else:  # what is not looked at may be of any size
                self.page.append({key: raw[key] for key in PINNED if key in raw})
        return page | {"tools": list(self.page)}

    def _why_untyped(self, page: dict[str, JSON], raw: JSON) -> str:
        try:
            validate_server_result(
                "tools/list", self.revision or LATEST_HANDSHAKE_VERSION, page | {"tools": [raw]}
            )
        except ValidationError as error:
            return _words(error)
        return ""


class _OurWords:
    """What the SDK raises, as Lost or Refused."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, MCPError):
            if error.code == NOT_SENT:
                raise Lost(error.message, sent=False) from error
            if error.code in (CONNECTION_CLOSED, BROKEN) or self._ended.is_set():
                raise Lost(error.message, sent=True) from error
            raise Refused(error.code, error.message) from error
        if isinstance(error, ValidationError):
            raise Refused(0, f"its answer is not of the protocol: {_words(error)}") from error


def _words(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    return str(error)
