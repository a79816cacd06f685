"""The worker processes of skills: started at the first call, kept warm, replaced when they end."""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import structlog

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON
from app.processes.host import APP_ROOT, CONNECTION, Command, HostedProcess, PrintedTail, kept_environment
from app.rmtree import remove
from app.skills import frames
from app.skills.folder import Signature, signature
from app.skills.frames import FrameError
from app.tasks import start_task
from app.text import Private, mask_text
from app.tools.result import ToolResult
from app.tools.tool import ToolContext

log = structlog.get_logger(__name__)

START_SECONDS = 60.0  # for running a folder's code, with its imports
IDLE_SECONDS = 300.0
CALLS_AT_ONCE = 8  # calls of one folder, each in a worker of its own; further ones wait
FAILURES = 3  # in a row, after which a skill is set aside

_PROGRAM = """
import socket, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
connection = socket.socket(fileno=int(sys.argv[1]))
connection.set_inheritable(False)
from app.skills.worker import work
sys.path.remove(sys.argv[3])
work(connection, Path(sys.argv[2]))
"""
_LONGEST_FAULT = 2000


class FailureReporter(Protocol):
    """Is told that a skill is set aside and why; "" once it may be tried again."""

    async def skill_failed(self, folder: Path, reason: str) -> None: ...


class WorkerFault(RecadoError):
    """A worker that ended; the text says how. `started`: its code ran before that."""

    def __init__(self, how: str, *, started: bool) -> None:
        super().__init__(how)
        self.started = started


class Worker:
    """A process that runs a folder's tools, one call after the other. It starts at once."""

    def __init__(self, folder: Path, prefix: Sequence[str], start_seconds: float) -> None:
        self.printed = PrintedTail()
        self._home = tempfile.mkdtemp(prefix="recado-worker-")
        self._numbers = count(1)
        python = [sys.executable, "-I", "-X", "utf8", "-u", "-c", _PROGRAM]
        command = Command(
            [*prefix, *python, CONNECTION, str(folder), str(APP_ROOT)],
            {**kept_environment(), "HOME": self._home, "TMPDIR": self._home},
            folder,
            confined=bool(prefix),
        )
        self._spawning = asyncio.create_task(HostedProcess.start(command, self.printed))
        self._starting = asyncio.create_task(self._start(start_seconds))
        self.is_stuck = False  # a call was given up, whose code may still run

    @property
    def is_alive(self) -> bool:
        return not self._starting.done() or self._starting.result() != "" or self._process.status is None

    async def call(self, function: str, args: dict[str, JSON], context: ToolContext) -> ToolResult:
        """Call a function. Raises WorkerFault where the worker ended before the call did."""
        if fault := await asyncio.shield(self._starting):  # a call that is given up leaves it starting
            raise WorkerFault(fault, started=False)
        number = next(self._numbers)
        frame = frames.encode(frames.Call(number, function, args, frames.serialize_context(context)))
        try:
            await self._send(frame)
            while isinstance(message := await self._read(number), frames.Ask):
                answer = await frames.answer_ask(message, context.store, context.http)
                try:
                    frame = frames.encode(answer)
                except FrameError:
                    frame = frames.encode(frames.Answer(error="that is too much at once: list fewer rows"))
                await self._send(frame)
            return ToolResult.of(message.result)
        except asyncio.CancelledError:
            self.is_stuck = True
            raise
        except FrameError as error:
            why = lazy("its code wrote to the server's connection: {error}", error=str(error))
            raise WorkerFault(why, started=True) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise WorkerFault(await self._end_reason(), started=True) from error

    async def _start(self, seconds: float) -> str:
        """Start the process; return why its code does not run, "" where it does."""
        try:
            await self._spawning
            async with asyncio.timeout(seconds):
                ready = await self._read()
        except TimeoutError:
            return lazy("scripts/tools.py did not come to its end within {n} s", n=f"{seconds:g}")
        except FrameError as error:
            return lazy("its code wrote to the server's connection: {error}", error=str(error))
        except asyncio.IncompleteReadError:
            return await self._end_reason()
        except (OSError, ValueError) as error:
            return lazy("its process could not be started: {error}", error=str(error))
        return mask_text(ready.fault[:_LONGEST_FAULT])

    async def _end_reason(self) -> str:
        await self._process.end()
        how = self._process.exit_reason or lazy("it did not end")
        return lazy("its process ended: {how}", how=how)

    async def end(self) -> None:
        """End it with all that it started."""
        with suppress(OSError, ValueError):
            await (await self._spawning).end()
        await self._starting
        await asyncio.to_thread(remove, self._home)

    @property
    def _process(self) -> HostedProcess:
        return self._spawning.result()

    async def _read(self, call: int = 0) -> Any:
        """Return what it says about the call, 0 for its start. Raises FrameError for anything else."""
        reader, _ = self._process.connection
        size = frames.length(await reader.readexactly(frames.HEADER), frames.FROM_WORKER)
        message = frames.decode(await reader.readexactly(size))
        kinds = (frames.Ask, frames.Result) if call else (frames.Ready,)
        if not isinstance(message, kinds) or getattr(message, "call", 0) != call:
            raise FrameError(f"a {type(message).__name__} that nobody waits for")
        return message

    async def _send(self, frame: bytes) -> None:
        _, writer = self._process.connection
        writer.write(frame)
        await writer.drain()


@dataclass(slots=True)
class _Version:
    folder: Path
    version: Signature
    idle: dict[Worker, asyncio.TimerHandle] = field(default_factory=dict)  # each with what ends it
    failures: int = 0
    aside: str = ""
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_AT_ONCE))


class Workers:
    """Runs the calls of skills, each in a worker of its folder.

    A folder is used in the version its tools were made from. A worker whose call was given up is killed, with
    everything it started. After `FAILURES` failures in a row the version is set aside. `prefix` returns what
    stands before the command line of a folder's worker, such as a sandbox.
    """

    def __init__(
        self,
        *,
        prefix: Callable[[Path], Sequence[str]] = lambda folder: (),
        reporter: FailureReporter | None = None,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._prefix = prefix
        self._reporter = reporter
        self._idle_seconds = idle_seconds
        self._start_seconds = start_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._versions: dict[Path, _Version] = {}
        self._living: set[Worker] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def call(
        self, folder: Path, version: Signature, function: str, args: dict[str, JSON], context: ToolContext
    ) -> ToolResult:
        """Call a function of the folder's tools.

        Raises WorkerFault where its worker ended meanwhile, and where the folder has another version by now.
        """
        self._loop = asyncio.get_running_loop()
        used = self._used(folder, version)
        async with used.places:
            if not used.idle and await asyncio.to_thread(signature, folder) != version:
                changed = "its folder changed just now; it can be called at the next message"
                raise WorkerFault(changed, started=False)
            if used.aside or self._closed:
                raise WorkerFault(used.aside or "the server is stopping", started=False)
            worker = self._take(used)
            try:
                result = await worker.call(function, args, context)
            except WorkerFault as fault:
                worker.is_stuck = True
                await self._failed(used, worker, fault.told)
                raise
            finally:
                self._give_back(used, worker)
        used.failures = 0
        return result

    def aside(self, folder: Path, version: Signature) -> str:
        """Return why this version of a folder is set aside, "" where it is not. Safe from any thread."""
        used = self._versions.get(folder)
        return used.aside if used is not None and used.version == version else ""

    def keep(self, versions: Mapping[Path, Signature]) -> None:
        """Let go of the workers of other folders and versions. Safe from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._keep, versions)

    async def close(self) -> None:
        """End every worker and wait until they are gone."""
        self._closed = True
        for worker in list(self._living):
            self._end(worker)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _used(self, folder: Path, version: Signature) -> _Version:
        known = self._versions.get(folder)
        if known is None or known.version != version:
            if known is not None:
                self._let_go(known)
            known = self._versions[folder] = _Version(folder, version)
        return known

    def _take(self, used: _Version) -> Worker:
        while used.idle:
            worker, timer = used.idle.popitem()
            timer.cancel()
            if worker.is_alive:
                return worker
            self._end(worker)
        worker = Worker(used.folder, self._prefix(used.folder), self._start_seconds)
        self._living.add(worker)
        return worker

    def _give_back(self, used: _Version, worker: Worker) -> None:
        if worker.is_stuck or self._closed or self._versions.get(used.folder) is not used:
            self._end(worker)
        else:
            loop = asyncio.get_running_loop()
            used.idle[worker] = loop.call_later(self._idle_seconds, self._retire, used, worker)

    def _retire(self, used: _Version, worker: Worker) -> None:
        used.idle.pop(worker).cancel()
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        if worker in self._living:
            self._living.discard(worker)
            start_task(self._tasks, worker.end())

    async def _failed(self, used: _Version, worker: Worker, how: str) -> None:
        if self._closed:
            return
        used.failures += 1
        skill, said = used.folder.name, Private(mask_text(str(worker.printed)))
        log.warning("a skill's worker failed", skill=skill, how=how, in_a_row=used.failures, said=said)
        if used.failures >= FAILURES and not used.aside:
            used.aside = lazy(
                "set aside after {n} failures in a row, until its folder changes: {reason}",
                n=FAILURES,
                reason=how,
            )
            log.error("a skill is set aside", skill=skill, reason=used.aside)
            await self._tell(used.folder, used.aside)

    def _let_go(self, used: _Version) -> None:
        for worker in list(used.idle):
            self._retire(used, worker)
        if used.aside:
            start_task(self._tasks, self._tell(used.folder, ""))

    def _keep(self, versions: Mapping[Path, Signature]) -> None:
        for folder, used in list(self._versions.items()):
            if versions.get(folder) != used.version:
                self._let_go(self._versions.pop(folder))

    async def _tell(self, folder: Path, reason: str) -> None:
        if self._reporter is None:
            return
        try:
            await self._reporter.skill_failed(folder, reason)
        except Exception as error:  # the log has it; the workers go on
            log.error("could not tell of a skill set aside", skill=folder.name, error=str(error))
