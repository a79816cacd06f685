"""One server kept running: started, restarted with growing pauses, set aside when nothing helps."""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from app.errors import RecadoError
from app.i18n import change_values, lazy
from app.mcp.definitions import Phase, ServerDefinition, ServerState
from app.mcp.pins import Comparison, Pins
from app.mcp.results import error_result, to_result
from app.mcp.wire import TOO_LONG, ConnectionLost, Refused, Unreachable, Unstartable
from app.messages import JSON
from app.text import mask_text, visible
from app.tools.context import ToolContext
from app.tools.result import ToolResult, own_words

if TYPE_CHECKING:
    from app.mcp.client import Connection, Listing
    from app.mcp.servers import McpServers

log = structlog.get_logger(__name__)

_REASON_CHARACTERS = 400
_LAST_SECONDS = 0.05  # in which calls hear of the end of their connection, and of whether they were sent


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time, in seconds."""

    connect: float = 20.0
    download: float = 180.0  # for a command that first fetches its program: given up, it would begin anew
    call: float = 60.0  # of a call without a sign of progress; each sign begins it anew
    # Shorter than the engine's own, which would know less of what became of the call.
    longest_call: float = 590.0
    # Before the start after the first, second … death in a row; one more and the server is set aside.
    pauses: tuple[float, ...] = (0.5, 2.0, 30.0, 120.0)
    # The pause of a server that was set aside, or cannot be started as it is configured.
    broken: float = 600.0
    lived: float = 300.0  # a server that ran longer than this begins a new row of deaths
    relist: float = 1.0  # between two lists of a server that says that its tools changed
    first_start: float = 8.0  # how long messages wait for a server that is new, from when it was seen


class Supervisor:
    """Runs one server. `run` is one task; other tasks call the server's tools and read its state."""

    def __init__(
        self, definition: ServerDefinition, servers: "McpServers", pins: Pins, limits: Limits
    ) -> None:
        self.definition = definition
        # Without the names of its tools.
        self.state = ServerState(definition.name, "starting", definition=definition)
        self.deaths = 0
        self.approved: tuple[Mapping[str, JSON], ...] = ()
        self._servers = servers
        self._pins = pins
        self._limits = limits
        self._listing: Listing | None = None
        self._connection: Connection | None = None
        self._news = asyncio.Event()
        self.is_new = True  # its first start is under way and still worth waiting for
        self._made = time.monotonic()
        self._comparing = asyncio.Lock()

    async def run(self, before: Awaitable[object] | None = None) -> None:
        """Run until cancelled, once `before` has ended: the server's earlier version."""
        if before is not None:
            await asyncio.wait([asyncio.ensure_future(before)])
        while True:
            self._enter("starting")
            began = time.monotonic()
            error = await self._live()
            self.deaths = 1 if time.monotonic() - began > self._limits.lived else self.deaths + 1
            why = show_reason(self.definition, _told(error))
            log.warning("a server ended", server=self.definition.name, why=why, in_a_row=self.deaths)
            await asyncio.sleep(self._enter_pause(error, why))

    async def call(self, tool: str, args: dict[str, JSON], context: ToolContext) -> ToolResult:
        """Call a tool; wait for a server that is starting. Raises nothing but CancelledError."""
        for is_last in (False, True):
            await self.settled(self._limits.connect)
            connection = self._connection
            if connection is None:
                return self._unavailable(self.state.reason or "it is still starting")
            # After a restart the server may offer another of that name, or none.
            if not any(raw["name"] == tool for raw in self.approved):
                return self._unavailable(f"it offers no tool {tool} that was approved")
            try:
                result = await self._call_in_time(connection, tool, args)
            except ConnectionLost as lost:
                why = show_reason(self.definition, str(lost))
                if lost.sent:
                    return ToolResult.unknown(f"{tool}: its server broke off ({why})")
                if is_last:
                    return self._unavailable(why)
            except TimeoutError:
                connection.changed.set()
                return ToolResult.unknown(f"{tool}: it did not answer in time and was given up")
            except Refused as refused:
                text = show_reason(self.definition, str(refused))
                if refused.code == TOO_LONG:
                    return ToolResult.failure("OUTPUT_TOO_LARGE", f"{tool}: {text}", "ask for less")
                return error_result(refused.code, text)
            else:
                self.deaths = 0
                return await asyncio.to_thread(to_result, result, self.definition)
        raise AssertionError("unreachable")

    async def approve(self, shown: Mapping[str, str]) -> None:
        """Approve those of the definitions held back that have these sha256, by tool."""
        async with self._comparing:
            if self._listing is None:
                return
            held_back = [one.after for one in self.state.held_back]
            await asyncio.to_thread(self._pins.approve, held_back, shown)
            self._take(await asyncio.to_thread(self._pins.compare, self._listing.tools))
        self._tell()

    async def settled(self, seconds: float) -> None:
        """Wait until it is neither starting nor about to, or for that long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.state.phase in ("starting", "waiting") or self._has_lost_connection():
                    await self._news.wait()

    async def first_start(self) -> None:
        """Wait until its first start has ended, well or badly, or takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._made + self._limits.first_start - time.monotonic()):
                while self.is_new:
                    await self._news.wait()
        self.is_new = False

    def _enter_pause(self, error: Exception, why: str) -> float:
        if isinstance(error, Unstartable):
            self._enter("faulty", why)
            return self._limits.broken
        if self.deaths > len(self._limits.pauses):
            most = len(self._limits.pauses) + 1  # the same words after each start: they are told once
            self._enter("broken", lazy("set aside after {n} failures in a row: {reason}", n=most, reason=why))
            return self._limits.broken
        self._enter("waiting", why)
        return self._limits.pauses[self.deaths - 1]

    async def _live(self) -> Exception:
        """Hold one connection, in a task of its own that opens and closes it; return how it ended."""
        life = asyncio.create_task(self._serve())
        try:
            return await asyncio.shield(life)
        except asyncio.CancelledError:
            life.cancel()
            await asyncio.wait([life])
            raise
        except Exception as error:  # a fault of the SDK's or ours is one of this server alone
            log.exception("a server's connection failed", server=self.definition.name)
            return Unreachable(own_words(error))
        finally:
            self._connection = None
            self.is_new = False

    async def _serve(self) -> Exception:
        seconds = self._limits.download if self.definition.downloads else self._limits.connect
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(seconds):
                    connection = await stack.enter_async_context(self._servers.connect(self.definition))
                    self.state = replace(self.state, revision=connection.revision)
                    await self._list(connection)
            except TimeoutError:
                return Unreachable(lazy("it was not ready within {n} s", n=f"{seconds:g}"))
            except (Unreachable, Refused) as error:
                return error
            except ConnectionLost as error:
                return Unreachable(await connection.link.end_reason() or error.told)
            self._connection = connection
            self.is_new = False
            self._enter("ready", self._pins.fault)
            how = await self._watch(connection)
            self._connection = None
            self._enter("waiting")
            return Unreachable(await connection.link.end_reason() or how)

    async def _watch(self, connection: "Connection") -> str:
        """Wait until the connection has ended or is of no use; return how.

        The tools are listed again when they may have changed, and when a call was not answered: a server
        that does not answer that either is stuck.
        """
        while True:
            await connection.changed.wait()
            if connection.link.ended.is_set():
                await asyncio.sleep(_LAST_SECONDS)
                return lazy("its connection ended")
            connection.changed.clear()
            try:
                async with asyncio.timeout(self._limits.connect):
                    await self._list(connection)
            except TimeoutError:
                return lazy("it does not answer any more")
            except (ConnectionLost, Refused, Unreachable) as error:
                log.warning("tools not listed again", server=self.definition.name, error=own_words(error))
            else:
                self._tell()
            await asyncio.sleep(self._limits.relist)

    async def _list(self, connection: "Connection") -> None:
        listing = await connection.list_tools()
        async with self._comparing:
            self._listing = listing
            self._take(await asyncio.to_thread(self._compare, listing))

    def _compare(self, listing: "Listing") -> Comparison:
        try:
            self._pins.approve_first(listing.tools)
        except OSError as error:  # not kept, they would be approved once more
            why = error.strerror or str(error)
            raise Unreachable(lazy("what it offers could not be kept: {reason}", reason=why)) from error
        return self._pins.compare(listing.tools)

    def _take(self, comparison: Comparison) -> None:
        self.approved = comparison.approved
        dropped = self._listing.dropped if self._listing else ()
        self.state = replace(self.state, held_back=comparison.held_back, dropped=dropped)

    def _has_lost_connection(self) -> bool:
        return self._connection is not None and self._connection.link.ended.is_set()

    async def _call_in_time(
        self, connection: "Connection", tool: str, args: dict[str, JSON]
    ) -> dict[str, JSON]:
        now = asyncio.get_running_loop().time
        latest = now() + self._limits.longest_call
        async with asyncio.timeout(self._limits.call) as limit:

            async def extend(progress: float, total: float | None, message: str | None) -> None:
                if not limit.expired():
                    limit.reschedule(min(now() + self._limits.call, latest))

            return await connection.call(tool, args, extend)

    def _unavailable(self, why: str) -> ToolResult:
        return ToolResult.failure(
            "UNAVAILABLE",
            f"the server {self.definition.name} cannot be used: {why}",
            "it did not run; say so, and go on without it",
        )

    def _enter(self, phase: Phase, reason: str = "") -> None:
        self.state = replace(
            self.state, phase=phase, reason=reason if phase != "starting" else self.state.reason
        )
        if phase in ("broken", "faulty"):
            self.approved = ()
            self.state = replace(self.state, held_back=())
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
        self._servers.on_news(self)


def show_reason(definition: ServerDefinition, why: str) -> str:
    """Return a reason on one line, without the server's secrets."""

    def clean(text: str) -> str:
        return visible(mask_text(definition.mask(text)[: _REASON_CHARACTERS * 2]))[:_REASON_CHARACTERS]

    return change_values(why, clean)


def _told(error: Exception) -> str:
    return error.told if isinstance(error, RecadoError) else str(error)
