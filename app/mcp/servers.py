"""The MCP servers that run beside us: kept as they are configured, with their tools offered as ours."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from app.mcp.adapter import adapt, describe_server, unique_names
from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition, ServerState, state_at_rest
from app.mcp.installed import integrity_fault
from app.mcp.pins import Pins
from app.mcp.supervisor import Limits, Supervisor
from app.mcp.wire import Unstartable
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills import SkillLoader
from app.tools.result import own_words
from app.tools.tool import Tool

if TYPE_CHECKING:
    from app.mcp.client import Connection

log = structlog.get_logger(__name__)

STOP_SECONDS = 5.0
TRY_SECONDS = 25.0


class ServerAlerts(Protocol):
    """Tells an owner of a server's trouble, and that it is over."""

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
        limits: Limits = Limits(),  # noqa: B008 (frozen)
        is_trial: bool = False,
    ) -> None:
        self._configuration = configuration
        self._sandbox = sandbox
        self._data_dir = data_dir
        self._alerts = alerts
        self._limits = limits
        self._is_trial = is_trial
        self.listeners: list[Callable[[], None]] = []  # called on the loop each time after `tools` changed
        self._definitions: dict[str, ServerDefinition] = {}
        self._running: dict[str, tuple[Supervisor, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._alerting = asyncio.Lock()
        self._told: dict[str, tuple[str, ...]] = {}
        # The approved tools of servers that run: the same object while nothing changed.
        self.tools: Sequence[Tool] = ()
        self.descriptions: Mapping[str, str] = {}  # a line about each server
        self._names: Mapping[str, tuple[str, ...]] = {}  # of the tools, by server
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
        """Wait for the servers that start for the first time; tell whether there were any.

        Takes at most `Limits.first_start` seconds from when each was seen, and waits for each once.
        """
        new = [supervisor for supervisor, _ in self._running.values() if supervisor.is_new]
        if new:
            await asyncio.gather(*(supervisor.first_start() for supervisor in new))
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
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
        self._running.clear()
        self._definitions.clear()

    @asynccontextmanager
    async def connect(self, definition: ServerDefinition) -> AsyncIterator["Connection"]:
        """Connect one of the servers, for its supervisor. The SDK is loaded here, off the loop."""
        if fault := await asyncio.to_thread(integrity_fault, definition.folder, definition.sha256):
            raise Unstartable(fault)
        client = await asyncio.to_thread(importlib.import_module, "app.mcp.client")
        async with client.connect(definition, self._sandbox) as connection:
            yield connection

    def on_news(self, supervisor: Supervisor) -> None:
        """Take over a supervisor's new state, unless it was replaced."""
        name = supervisor.definition.name
        if self._stopped or name not in self._running or self._running[name][0] is not supervisor:
            return
        self._announce()
        if supervisor.state.phase in ("broken", "faulty", "ready"):
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
        supervisor = Supervisor(definition, self, pins, self._limits)
        self._running[name] = supervisor, self._start_task(supervisor.run(before=ending))

    def _state(self, name: str) -> ServerState:
        definition = self._definitions[name]
        if name not in self._running:
            return state_at_rest(definition) or ServerState(name, "off", "", definition)
        supervisor, _ = self._running[name]
        return replace(supervisor.state, tools=self._names.get(name, ()))

    def _announce(self) -> None:
        servers = [supervisor for supervisor, _ in self._running.values() if supervisor.approved]
        made_of = [(server, server.approved) for server in servers]
        if made_of != self._made_of:
            self._made_of = made_of
            described = ((one.definition, one.approved) for one in servers)
            self.descriptions = {one.name: describe_server(one, tools) for one, tools in described}
            # Last: who sees other tools finds all that is said of them.
            self.tools, self._names = _adapt_tools(servers)
            for listener in self.listeners:
                listener()

    def _alert(self, state: ServerState) -> None:
        trouble = (state.phase if state.reason else "", state.reason, *(one.tool for one in state.held_back))
        if self._alerts is None or self._told.get(state.name, ("", "")) == trouble:
            return
        self._told[state.name] = trouble
        self._start_task(self._alert_now(state, self._alerts))

    async def _alert_now(self, state: ServerState, alerts: ServerAlerts) -> None:
        async with self._alerting:  # one after the other, in their order
            try:
                await alerts.server_changed(state)
            except Exception as error:  # the log has it; the servers go on
                log.error("could not tell of a server", server=state.name, error=own_words(error))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _adapt_tools(servers: Sequence[Supervisor]) -> tuple[Sequence[Tool], Mapping[str, tuple[str, ...]]]:
    """Return the tools of all servers, and their names by server."""
    pairs = [(server, raw) for server in servers for raw in server.approved]
    offered = unique_names((server.definition.name, raw["name"]) for server, raw in pairs)
    tools: list[Tool] = []
    names: dict[str, tuple[str, ...]] = {}
    for server, raw in pairs:
        server_name = server.definition.name
        name = offered[server_name, raw["name"]]
        tools.append(adapt(server.definition, raw, server.call, name))
        names[server_name] = (*names.get(server_name, ()), name)
    return tools, names
