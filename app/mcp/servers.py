"""The MCP servers that run beside us: kept as they are configured, with their tools offered as ours.

Each is kept running by a supervisor: started, restarted with growing pauses, set aside when nothing helps.
"""

import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import structlog

from app.errors import RecadoError
from app.i18n import change_values, lazy
from app.mcp.adapter import adapt, describe_server, error_result, to_result, unique_names
from app.mcp.approved import Pins, integrity_fault
from app.mcp.configuration import Configuration
from app.mcp.definitions import (
    ConnectionLost,
    Phase,
    Refused,
    ServerDefinition,
    ServerState,
    Unreachable,
    state_at_rest,
)
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills import SkillLoader
from app.tasks import end_tasks, start_task
from app.text import mask_text, visible
from app.tools.result import ToolResult, own_words
from app.tools.tool import Tool, ToolContext

if TYPE_CHECKING:
    from app.mcp.client import Connection

log = structlog.get_logger(__name__)

STOP_SECONDS = 5.0
TRY_SECONDS = 25.0
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
    broken: float = 600.0  # the pause of a server that was set aside
    lived: float = 300.0  # a server that ran longer than this begins a new row of deaths
    relist: float = 1.0  # between two lists of a server that says that its tools changed
    first_start: float = 8.0  # how long messages wait for a server that is new


class ServerAlerts(Protocol):
    """Is told of each new state of a server; tells an owner once of trouble, and that it is over."""

    async def server_changed(self, state: ServerState) -> None: ...


def build_mcp(
    settings: Settings,
    environment: Mapping[str, str],
    skills: SkillLoader,
    sandbox: Sandbox,
    alerts: ServerAlerts,
) -> "tuple[Configuration, McpServers]":
    """Build the servers of a data folder and what configures them; none is started before `refresh`."""
    configuration = Configuration(settings, environment, skills)
    return configuration, McpServers(configuration, sandbox, settings.data_dir, alerts)


async def try_servers(configuration: Configuration, sandbox: Sandbox, data_dir: Path) -> list[ServerState]:
    """Start each server, where no assistant has; return the states and end them. Nothing is approved."""
    servers = McpServers(configuration, sandbox, data_dir, limits=Limits(pauses=(0.5,)), is_trial=True)
    await servers.refresh()
    names = [state.name for state in servers.states()]
    states = await asyncio.gather(*(servers.settled(name, TRY_SECONDS) for name in names))
    await servers.stop()
    return states


class McpServers:
    """Every MCP server; the app starts and goes on whatever becomes of one."""

    def __init__(
        self,
        configuration: Configuration,
        sandbox: Sandbox,
        data_dir: Path,
        alerts: ServerAlerts | None = None,
        *,
        limits: Limits = Limits(),
        is_trial: bool = False,
    ) -> None:
        self._configuration = configuration
        self.sandbox = sandbox
        self._data_dir = data_dir
        self._alerts = alerts
        self._limits = limits
        self._is_trial = is_trial
        self.listeners: list[Callable[[], object]] = []  # called on the loop each time after `tools` changed
        self._definitions: dict[str, ServerDefinition] = {}
        self._running: dict[str, tuple[_Supervisor, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        # The approved tools of servers that run: the same object while nothing changed.
        self.tools: Sequence[Tool] = ()
        self.descriptions: Mapping[str, str] = {}  # a line about each server
        self._made_of: object = []  # the supervisors and their approved tools
        self._stopped = False

    async def refresh(self) -> None:
        """Read the configuration, and begin to start and end servers accordingly."""
        async with self._refreshing:
            found = {one.name: one for one in await asyncio.to_thread(self._configuration.look)}
            if self._stopped or found == self._definitions:
                return
            before, self._definitions = self._definitions, found
            for name in {**found, **before}:
                if before.get(name) != found.get(name):
                    self._replace(name, found.get(name))
            self._announce()

    async def first_starts(self) -> bool:
        """Wait once, `Limits.first_start` seconds at most, for new servers; tell whether there were any."""
        new = [supervisor for supervisor, _ in self._running.values() if supervisor.is_new]
        await asyncio.gather(*(supervisor.settled(self._limits.first_start) for supervisor in new))
        for supervisor in new:
            supervisor.is_new = False
        return bool(new)

    def states(self) -> list[ServerState]:
        """Return the state of each server, also of those turned off, in the order of the configuration."""
        return [self._state(name) for name in self._definitions]

    async def settled(self, name: str, seconds: float) -> ServerState:
        """Return its state once it is ready or known not to become so, or after so long. Raises KeyError."""
        if name in self._running:
            await self._running[name][0].settled(seconds)
        return self._state(name)

    async def approve(self, name: str, shown: Mapping[str, str]) -> None:
        """Approve the definitions with these sha256, by tool."""
        if name in self._running:
            await self._running[name][0].approve(shown)

    async def stop(self) -> None:
        """End all servers with what they started."""
        self._stopped = True
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await end_tasks(*self._tasks)
        self._running.clear()
        self._definitions.clear()

    def on_news(self, supervisor: "_Supervisor") -> None:
        """Take over a supervisor's new state, unless it was replaced."""
        name = supervisor.definition.name
        if self._stopped or name not in self._running or self._running[name][0] is not supervisor:
            return
        self._announce()
        if supervisor.state.phase != "starting":
            self._alert(self._state(name))

    def _replace(self, name: str, definition: ServerDefinition | None) -> None:
        ending = None
        if name in self._running:
            _, ending = self._running.pop(name)
            ending.cancel()
        rest = state_at_rest(definition) if definition is not None else None
        if definition is None or rest is not None:
            self._alert(rest or ServerState(name, "off"))
            return
        pins = Pins(self._data_dir, name, is_trial=self._is_trial)
        supervisor = _Supervisor(definition, self, pins, self._limits)
        self._running[name] = supervisor, start_task(self._tasks, supervisor.run(before=ending))

    def _state(self, name: str) -> ServerState:
        definition = self._definitions[name]
        if name not in self._running:
            return state_at_rest(definition) or ServerState(name, "off", "", definition)
        supervisor, _ = self._running[name]
        return replace(supervisor.state, tools=tuple(one.name for one in self.tools if one.category == name))

    def _announce(self) -> None:
        servers = [supervisor for supervisor, _ in self._running.values() if supervisor.approved]
        made_of = [(server, server.approved) for server in servers]
        if made_of == self._made_of:
            return
        self._made_of = made_of
        pairs = [(server, raw) for server in servers for raw in server.approved]
        offered = unique_names((server.definition.name, raw["name"]) for server, raw in pairs)
        self.descriptions = {
            one.definition.name: describe_server(one.definition, one.approved) for one in servers
        }
        # Last: who sees other tools finds all that is said of them.
        self.tools = [
            adapt(one.definition, raw, one.call, offered[one.definition.name, raw["name"]])
            for one, raw in pairs
        ]
        for listener in self.listeners:
            listener()

    def _alert(self, state: ServerState) -> None:
        if self._alerts is not None:
            start_task(self._tasks, self._alerts.server_changed(state))


class _Supervisor:
    """Runs one server. `run` is one task; other tasks call the server's tools and read its state."""

    def __init__(self, definition: ServerDefinition, servers: McpServers, pins: Pins, limits: Limits) -> None:
        self.definition = definition
        # `McpServers._state` adds the names of its tools
        self.state = ServerState(definition.name, "starting", definition=definition)
        self.approved: Sequence[Mapping[str, JSON]] = ()
        self.is_new = True  # no message has waited for it, and it has not failed yet
        self._deaths = 0
        self._servers = servers
        self._pins = pins
        self._limits = limits
        self._connection: Connection | None = None
        self._news = asyncio.Event()
        self._listing = asyncio.Lock()

    async def run(self, before: Awaitable[object] | None = None) -> None:
        """Run until cancelled, once `before` has ended: the server's earlier version."""
        if before is not None:
            await asyncio.wait([asyncio.ensure_future(before)])
        pauses = self._limits.pauses
        while True:
            began = time.monotonic()
            error = await self._live()
            self._deaths = 1 if time.monotonic() - began > self._limits.lived else self._deaths + 1
            why, pause = show_reason(self.definition, error.told), self._limits.broken
            log.warning("a server ended", server=self.definition.name, why=why, in_a_row=self._deaths)
            if self._deaths > len(pauses):
                most = len(pauses) + 1  # the same words after each start: they are told once
                why = lazy("set aside after {n} failures in a row: {reason}", n=most, reason=why)
                self._enter("broken", why)
            else:
                self._enter("starting", why)
                pause = pauses[self._deaths - 1]
            await asyncio.sleep(pause)

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
                return error_result(refused.code, show_reason(self.definition, str(refused)))
            else:
                self._deaths = 0
                return await asyncio.to_thread(to_result, result, self.definition)
        raise AssertionError("unreachable")

    async def approve(self, shown: Mapping[str, str]) -> None:
        """Approve those of the definitions held back that have these sha256, by tool."""
        held_back = [one.after for one in self.state.held_back]
        await asyncio.to_thread(self._pins.approve, held_back, shown)
        if (connection := self._connection) is not None:
            try:
                await self._list(connection)
            except (TimeoutError, ConnectionLost, Refused, Unreachable):
                connection.changed.set()  # it is approved: its watch lists again
            self._tell()

    async def settled(self, seconds: float) -> None:
        """Wait until it is neither starting nor about to, or for that long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.state.phase == "starting" or (
                    self._connection is not None and self._connection.link.ended.is_set()
                ):
                    await self._news.wait()

    async def _live(self) -> RecadoError:
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

    async def _serve(self) -> RecadoError:
        definition = self.definition
        seconds = self._limits.download if definition.downloads else self._limits.connect
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(seconds):
                    fault = await asyncio.to_thread(integrity_fault, definition.folder, definition.sha256)
                    if fault:
                        return Unreachable(fault)
                    client = await asyncio.to_thread(importlib.import_module, "app.mcp.client")  # the SDK
                    connecting = client.connect(definition, self._servers.sandbox)
                    connection: Connection = await stack.enter_async_context(connecting)
                    self.state = replace(self.state, revision=connection.revision)
                    await self._list(connection)
            except TimeoutError:
                return Unreachable(lazy("it was not ready within {n} s", n=f"{seconds:g}"))
            except (Unreachable, Refused) as error:
                return error
            except ConnectionLost as error:
                return Unreachable(await connection.link.end_reason() or error.told)
            self._connection = connection
            self._enter("ready", self._pins.fault)
            how = await self._watch(connection)
            self._connection = None
            self._enter("starting")
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
                await self._list(connection)
            except TimeoutError:
                return lazy("it does not answer any more")
            except (ConnectionLost, Refused, Unreachable) as error:
                log.warning("tools not listed again", server=self.definition.name, error=own_words(error))
            else:
                self._tell()
            await asyncio.sleep(self._limits.relist)

    async def _list(self, connection: "Connection") -> None:
        async with self._listing, asyncio.timeout(self._limits.connect):
            tools, dropped = await connection.list_tools()
            try:
                self.approved, held_back = await asyncio.to_thread(self._pins.compare, tools)
            except OSError as error:  # not kept, they would be approved once more
                why = error.strerror or str(error)
                raise Unreachable(lazy("what it offers could not be kept: {reason}", reason=why)) from error
            self.state = replace(self.state, held_back=tuple(held_back), dropped=tuple(dropped))

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
        said = f"the server {self.definition.name} cannot be used: {why}"
        return ToolResult.failure("UNAVAILABLE", said, "it did not run; say so, and go on without it")

    def _enter(self, phase: Phase, reason: str = "") -> None:
        self.state = replace(self.state, phase=phase, reason=reason)
        if phase == "broken":
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
