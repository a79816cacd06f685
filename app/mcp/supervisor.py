"""One server kept running: started, restarted with growing pauses, set aside when nothing helps."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from app.mcp.definitions import HeldBack, Phase, ServerDefinition
from app.mcp.pins import Comparison, Pins
from app.mcp.results import error_result, to_result
from app.mcp.wire import TOO_LONG, Forgotten, Lost, Refused, Unreachable, Unstartable
from app.messages import JSON
from app.text import visible
from app.tools.context import ToolContext
from app.tools.failures import own_words
from app.tools.masking import mask_text
from app.tools.result import ToolResult

if TYPE_CHECKING:
    from app.mcp.session import Connection, Listing

log = structlog.get_logger(__name__)

Connect = Callable[[ServerDefinition], AbstractAsyncContextManager["Connection"]]
OnNews = Callable[["Supervisor"], None]

_LONGEST_REASON = 400
_MOST_DOUBLINGS = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds, unless it says otherwise."""

    connect: float = 20.0
    download: float = 180.0
    """The same for a command that first fetches its program: given up, it would begin anew."""
    call: float = 60.0
    """Without a sign of progress; each begins it anew."""
    longest_call: float = 590.0
    """Shorter than the engine's own, which would know less of what became of it."""
    pauses: tuple[float, ...] = (0.5, 2.0, 30.0, 120.0)
    """Before the start after the first, second … death in a row; one more and it is set aside."""
    away: float = 300.0
    """Before the first start of one that was set aside; each time twice as long, until `broken`."""
    broken: float = 3600.0
    """The longest pause, and that of one that cannot be started as it is written."""
    lived: float = 300.0
    """After which a death is none in a row."""
    session: float = 10.0
    """The same for a session that its server has ended."""
    relist: float = 1.0
    """Between two looks at the tools of a server that says that they changed."""
    first_start: float = 8.0
    """How long messages wait for a server that is new, from when it was seen."""

    def rest(self, deaths: int) -> float:
        """Before the start after so many deaths in a row."""
        if deaths <= len(self.pauses):
            return self.pauses[deaths - 1]
        doublings = min(deaths - len(self.pauses) - 1, _MOST_DOUBLINGS)
        return min(self.away * 2.0**doublings, self.broken)


class Supervisor:
    """Runs one server. `run` is its life in one task; other tasks call its tools and read how it does."""

    def __init__(
        self, definition: ServerDefinition, connect: Connect, pins: Pins, limits: Limits, on_news: OnNews
    ) -> None:
        self.definition = definition
        self.phase: Phase = "starting"
        self.reason = ""
        self.revision = ""
        self.deaths = 0
        self.approved: tuple[Mapping[str, JSON], ...] = ()
        self.held_back: tuple[HeldBack, ...] = ()
        self.dropped: tuple[tuple[str, str], ...] = ()
        self._connect = connect
        self._pins = pins
        self._limits = limits
        self._on_news = on_news
        self._listing: Listing | None = None
        self._connection: Connection | None = None
        self._news = asyncio.Event()
        self._made = time.monotonic()
        self._first_start_over = asyncio.Event()
        self._calls: set[asyncio.Task[dict[str, JSON]]] = set()
        self._looking = asyncio.Lock()

    async def run(self, before: Awaitable[object] | None = None) -> None:
        """Until it is cancelled; `before`: what has to end first, such as the server's earlier version."""
        if before is not None:
            await asyncio.wait([asyncio.ensure_future(before)])
        while True:
            self._enter("starting")
            began = time.monotonic()
            error = await self._live()
            enough = self._limits.session if isinstance(error, Forgotten) else self._limits.lived
            self.deaths = 1 if time.monotonic() - began > enough else self.deaths + 1
            why = self._shown(str(error))
            log.warning("a server ended", server=self.definition.name, why=why, in_a_row=self.deaths)
            await asyncio.sleep(self._rest(error, why))

    def _rest(self, error: Exception, why: str) -> float:
        """Says how it does now; gives the seconds before the next start."""
        if isinstance(error, Unstartable):
            self._enter("faulty", why)
            return self._limits.broken
        if self.deaths > len(self._limits.pauses):
            most = len(self._limits.pauses) + 1  # the same words after each start: nobody is told again
            self._enter("broken", f"set aside after {most} failures in a row: {why}")
        else:
            self._enter("waiting", why)
        return self._limits.rest(self.deaths)

    async def _live(self) -> Exception:
        """One connection, in a task of its own that enters and leaves it; gives how it ended."""
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
            self._first_start_over.set()

    async def _serve(self) -> Exception:
        seconds = self._limits.download if self.definition.downloads else self._limits.connect
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(seconds):
                    connection = await stack.enter_async_context(self._connect(self.definition))
                    self.revision = connection.revision
                    await self._look(connection)
            except TimeoutError:
                return Unreachable(f"it was not ready within {seconds:g} s")
            except (Unreachable, Refused) as error:
                return error
            except Lost as error:
                return Unreachable(await connection.why() or str(error))
            connection.ready()
            self._connection = connection
            self._first_start_over.set()
            self._enter("ready", self._pins.fault)
            how = await self._watch(connection)
            self._connection = None
            self._enter("waiting")
            why = await connection.why() or how
            return Forgotten(why) if connection.forgotten else Unreachable(why)

    async def _watch(self, connection: "Connection") -> str:
        """Until the connection has ended or is of no use; how. Looks at the tools again where they may have
        changed, or where a call was not answered: who does not answer that either is stuck."""
        while not connection.ended.is_set():
            await _either(connection.ended, connection.changed)
            if connection.ended.is_set():
                break
            connection.changed.clear()
            try:
                async with asyncio.timeout(self._limits.connect):
                    await self._look(connection)
            except TimeoutError:
                return "it does not answer any more"
            except (Lost, Refused, Unreachable) as error:
                log.warning("tools not listed again", server=self.definition.name, error=own_words(error))
            else:
                self._tell()
            await _within(self._limits.relist, connection.ended)
        return "its connection ended"

    async def _look(self, connection: "Connection") -> None:
        """Lists the tools and compares them with what was approved."""
        listing = await connection.list_tools()
        async with self._looking:
            self._listing = listing
            self._take(await asyncio.to_thread(self._compared, listing))

    def _compared(self, listing: "Listing") -> Comparison:
        try:
            self._pins.first(listing.tools)
        except OSError as error:  # unwritten, they would be approved once more
            raise Unreachable(f"what it offers could not be kept: {error.strerror or error}") from error
        return self._pins.compare(listing.tools)

    def _take(self, comparison: Comparison) -> None:
        self.approved = tuple(comparison.approved)
        self.held_back = tuple(comparison.held_back)
        self.dropped = self._listing.dropped if self._listing else ()

    async def approve(self, shown: Mapping[str, str]) -> None:
        """Approves those of the definitions held back that have these sha256, by tool."""
        async with self._looking:
            if self._listing is None:
                return
            held_back = [one.after for one in self.held_back]
            await asyncio.to_thread(self._pins.approve, held_back, shown)
            self._take(await asyncio.to_thread(self._pins.compare, self._listing.tools))
        self._tell()

    async def settled(self, seconds: float) -> None:
        """Waits until it is neither starting nor about to, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.phase in ("starting", "waiting"):
                    await self._news.wait()

    @property
    def is_new(self) -> bool:
        """Whether its first start is under way and not yet taking too long to be waited for."""
        return not self._first_start_over.is_set() and self._until_too_long() > 0

    async def first_start(self) -> None:
        """Waits until its first start has ended, well or badly, or takes too long."""
        await _within(self._until_too_long(), self._first_start_over)

    def _until_too_long(self) -> float:
        return self._made + self._limits.first_start - time.monotonic()

    async def call(self, tool: str, args: dict[str, JSON], context: ToolContext) -> ToolResult:
        """What a tool of it came to; waits for a server that is starting. Never raises but when cancelled."""
        for is_last in (False, True):
            await self.settled(self._limits.connect)
            connection = self._connection
            if connection is None:
                return self._unavailable(self.reason or "it is still starting")
            raw = next((raw for raw in self.approved if raw["name"] == tool), None)
            if raw is None:  # started again it may offer another of that name, or none
                return self._unavailable(f"it offers no tool {tool} that was approved")
            try:
                result = await self._in_time(connection, tool, args)
            except Lost as lost:
                if is_last or (lost.sent and not self._may_repeat(raw)):
                    return self._lost(tool, lost)
                await self._replaced(connection)
            except TimeoutError:
                connection.changed.set()
                return self._unknown(tool, "it did not answer in time and was given up")
            except Refused as refused:
                return self._refused(tool, refused)
            else:
                self.deaths = 0
                return await self._read(raw, result)
        raise AssertionError("unreachable")

    async def _replaced(self, connection: "Connection") -> None:
        """Waits until a connection that has ended is not the one in use any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.connect):
                while connection.ended.is_set() and self._connection is connection:
                    await self._news.wait()

    async def _in_time(self, connection: "Connection", tool: str, args: dict[str, JSON]) -> dict[str, JSON]:
        """In a task of its own, so that who gives it up has not to wait until the server was told so."""
        call = asyncio.create_task(self._limited(connection, tool, args))
        self._calls.add(call)
        call.add_done_callback(self._forget)
        try:
            return await asyncio.shield(call)
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def _limited(self, connection: "Connection", tool: str, args: dict[str, JSON]) -> dict[str, JSON]:
        now = asyncio.get_running_loop().time
        latest = now() + self._limits.longest_call
        async with asyncio.timeout(self._limits.call) as limit:

            async def extend(progress: float, total: float | None, message: str | None) -> None:
                if not limit.expired():
                    limit.reschedule(min(now() + self._limits.call, latest))

            return await connection.call(tool, args, extend)

    def _forget(self, call: "asyncio.Task[dict[str, JSON]]") -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # who gave the call up does not hear of it

    async def _read(self, raw: Mapping[str, JSON], result: dict[str, JSON]) -> ToolResult:
        if result.get("resultType", "complete") != "complete":
            return ToolResult.failure(
                "UPSTREAM_ERROR",
                f"{raw['name']} asks for more than it was given, which cannot be answered here",
                "go on without it",
            )
        return await asyncio.to_thread(to_result, result, raw.get("outputSchema"), self.definition.told)

    def _may_repeat(self, raw: Mapping[str, JSON]) -> bool:
        hints = raw.get("annotations") or {}
        safe = hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
        return self.definition.trusted and safe

    def _lost(self, tool: str, lost: Lost) -> ToolResult:
        why = self._shown(str(lost))
        return self._unknown(tool, f"its server broke off ({why})") if lost.sent else self._unavailable(why)

    def _refused(self, tool: str, refused: Refused) -> ToolResult:
        text = self._shown(str(refused))
        if refused.code == TOO_LONG:
            return ToolResult.failure("OUTPUT_TOO_LARGE", f"{tool}: {text}", "ask for less")
        return error_result(refused.code, text)

    def _unavailable(self, why: str) -> ToolResult:
        return ToolResult.failure(
            "UNAVAILABLE",
            f"the server {self.definition.name} cannot be used: {why}",
            "it did not run; say so, and go on without it",
        )

    def _unknown(self, tool: str, why: str) -> ToolResult:
        hint = "it may have happened all the same: do not call it again without asking"
        return ToolResult.failure("OUTCOME_UNKNOWN", f"{tool}: {why}", hint, outcome="unknown")

    def _shown(self, why: str) -> str:
        return shown(self.definition, why)

    def _enter(self, phase: Phase, reason: str = "") -> None:
        self.phase = phase
        self.reason = reason if phase != "starting" else self.reason
        if phase in ("broken", "faulty"):
            self.approved, self.held_back = (), ()
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()
        self._on_news(self)


def shown(definition: ServerDefinition, why: str) -> str:
    """A reason without the server's own secrets, on one line."""
    return visible(mask_text(definition.masked(why)[: _LONGEST_REASON * 2]))[:_LONGEST_REASON]


async def _either(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waiting:
            one.cancel()


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Waits for it, but no longer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
