"""The servers of others that run beside us: kept as they are written down, their tools offered as ours."""

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from app.mcp.definitions import ServerDefinition, ServerState, at_rest
from app.mcp.offer import Offer, offer
from app.mcp.package_tree import Integrity
from app.mcp.pins import Pins
from app.mcp.revisions import Revisions
from app.mcp.supervisor import Limits, Supervisor
from app.mcp.wire import Unstartable
from app.processes.sandbox import Sandbox
from app.tools.failures import own_words
from app.tools.tool import Tool

if TYPE_CHECKING:
    from app.mcp.session import Connection

log = structlog.get_logger(__name__)

STOP_SECONDS = 5.0
PROBES_AT_ONCE = 4
"""Servers that are asked which revision they speak: they have 2.5 s to start and say so."""

OnTrouble = Callable[[str, str], Awaitable[None]]


class McpServers:
    """All of them; the app starts and goes on whatever becomes of any.

    `look` gives the servers as they are written down now. `on_change` is called on the loop after `tools`
    became others; `on_trouble(server, reason)` is awaited when an owner has to know of one, with "" once it
    is over. `allowed`: hosts and ports that any server's address may lead to although they are not public.
    """

    def __init__(
        self,
        look: Callable[[], Sequence[ServerDefinition]],
        *,
        sandbox: Sandbox,
        data_dir: Path,
        on_change: Callable[[], None],
        on_trouble: OnTrouble,
        allowed: Collection[tuple[str, int]] = (),
        limits: Limits = Limits(),  # noqa: B008 (frozen)
    ) -> None:
        self._look = look
        self._sandbox = sandbox
        self._folder = data_dir / "mcp"
        self._revisions = Revisions(self._folder)
        self._integrity = Integrity()
        self._on_change = on_change
        self._on_trouble = on_trouble
        self._allowed = frozenset(allowed)
        self._limits = limits
        self._definitions: dict[str, ServerDefinition] = {}
        self._running: dict[str, tuple[Supervisor, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._refreshing = asyncio.Lock()
        self._telling = asyncio.Lock()
        self._probing = asyncio.Semaphore(PROBES_AT_ONCE)
        self._told: dict[str, str] = {}
        self._offer = self._announced = Offer()
        self._made_of: object = []
        """What the offer was made of."""
        self._stopped = False

    async def refresh(self) -> None:
        """Looks at what is written down, and begins to start and end servers accordingly."""
        async with self._refreshing:
            found = {one.name: one for one in await asyncio.to_thread(self._look)}
            if self._stopped or found == self._definitions:
                return
            before, self._definitions = self._definitions, found
            for name in {**found, **before}:
                if before.get(name) != found.get(name):
                    self._replace(name, found.get(name))
            self._announce()

    def _replace(self, name: str, definition: ServerDefinition | None) -> None:
        ending = None
        if name in self._running:
            _, ending = self._running.pop(name)
            ending.cancel()
        rest = at_rest(definition) if definition is not None else None
        if definition is None or rest is not None:
            self._tell(name, rest.reason if rest is not None else "")
            return
        pins = Pins(self._folder / name / "pins.json")
        supervisor = Supervisor(definition, self._connect, pins, self._limits, self._hear)
        self._running[name] = supervisor, self._task(supervisor.run(before=ending))

    @asynccontextmanager
    async def _connect(self, definition: ServerDefinition) -> AsyncIterator["Connection"]:
        """What the packages of the protocol cost is paid here, off the loop, when a server first starts."""
        if fault := await asyncio.to_thread(self._integrity.fault, definition.folder, definition.sha256):
            raise Unstartable(fault)
        session = await asyncio.to_thread(importlib.import_module, "app.mcp.session")
        known = await asyncio.to_thread(self._revisions.known, definition)
        connecting = session.connected(
            definition, self._sandbox, known=known, allowed=self._allowed, probing=self._probing
        )
        async with connecting as connection:
            if connection.revision != known:
                await asyncio.to_thread(self._revisions.remember, definition, connection.revision)
            yield connection

    @property
    def tools(self) -> Sequence[Tool]:
        """Of the servers that run, as far as they were approved. The same object while nothing changed."""
        return self._current().tools

    @property
    def descriptions(self) -> Mapping[str, str]:
        """What each server is about, in a line."""
        return self._current().descriptions

    async def first_starts(self) -> bool:
        """Waits until the servers that start for the first time have done so; whether there were any.

        At most `Limits.first_start` seconds from when each was seen, so nobody waits for one again.
        """
        new = [supervisor for supervisor, _ in self._running.values() if supervisor.is_new]
        if new:
            await asyncio.gather(*(supervisor.first_start() for supervisor in new))
        return bool(new)

    def states(self) -> list[ServerState]:
        """How each server does, those that are off included, in the order in which they are written down."""
        return [self._state(name) for name in self._definitions]

    async def settled(self, name: str, seconds: float) -> ServerState:
        """How it does once it is ready or known not to become so, or after so long. Raises KeyError."""
        if name in self._running:
            await self._running[name][0].settled(seconds)
        return self._state(name)

    async def approve(self, name: str, shown: Mapping[str, str]) -> None:
        """Has the definitions with these sha256, by tool, count from now on."""
        if name in self._running:
            await self._running[name][0].approve(shown)

    async def stop(self) -> None:
        """Ends all of them with what they started."""
        self._stopped = True
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_SECONDS)
        self._running.clear()
        self._definitions.clear()

    def _state(self, name: str) -> ServerState:
        definition = self._definitions[name]
        if name not in self._running:
            return at_rest(definition) or ServerState(name, "off", "", definition)
        supervisor, _ = self._running[name]
        return ServerState(
            name,
            supervisor.phase,
            supervisor.reason,
            definition,
            supervisor.revision,
            self._current().names.get(name, ()),
            supervisor.held_back,
            supervisor.dropped,
            supervisor.deaths,
        )

    def _hear(self, supervisor: Supervisor) -> None:
        """Of news from one that runs; from one that was replaced they are none."""
        name = supervisor.definition.name
        if self._stopped or name not in self._running or self._running[name][0] is not supervisor:
            return
        self._announce()
        if supervisor.phase in ("broken", "faulty"):
            self._tell(name, supervisor.reason)
        elif supervisor.phase == "ready":
            held = ", ".join(one.tool for one in supervisor.held_back)
            self._tell(name, f"tools changed and wait to be approved: {held}" if held else supervisor.reason)

    def _current(self) -> Offer:
        servers = [supervisor for supervisor, _ in self._running.values()]
        made_of = [(server, server.approved) for server in servers if server.approved]
        if made_of != self._made_of:
            self._made_of, self._offer = made_of, offer(servers, self._offer)
        return self._offer

    def _announce(self) -> None:
        if (now := self._current()) is not self._announced:
            self._announced = now
            self._on_change()

    def _tell(self, name: str, reason: str) -> None:
        if self._told.get(name, "") == reason:
            return
        self._told[name] = reason
        self._task(self._tell_now(name, reason))

    async def _tell_now(self, name: str, reason: str) -> None:
        async with self._telling:  # one after the other, in the order in which they came
            try:
                await self._on_trouble(name, reason)
            except Exception as error:  # the log has it; the servers go on
                log.error("could not tell of a server", server=name, reason=reason, error=own_words(error))

    def _task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
