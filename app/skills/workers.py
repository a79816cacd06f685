"""The worker processes of skills: started at the first call, kept warm, replaced when they end."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import structlog

from app.i18n import lazy
from app.messages import JSON
from app.skills.folder import Signature, signature
from app.skills.worker_process import Worker, WorkerFault
from app.text import Private
from app.tools.context import ToolContext
from app.tools.masking import mask_text
from app.tools.result import ToolResult

log = structlog.get_logger(__name__)

START_SECONDS = 60.0  # for running a folder's code, with its imports
IDLE_SECONDS = 300.0
CALLS_AT_ONCE = 8  # calls of one folder, each in a worker of its own; further ones wait
FAILURES = 3  # in a row, after which a skill is set aside


class Launcher(Protocol):
    """Decides what stands before the command line of a folder's worker, such as a sandbox."""

    def prefix(self, folder: Path) -> Sequence[str]: ...


class FailureReporter(Protocol):
    """Is told that a skill is set aside and why; "" once it may be tried again."""

    async def skill_failed(self, folder: Path, reason: str) -> None: ...


@dataclass(slots=True)
class _Version:
    version: Signature
    idle: list[Worker] = field(default_factory=list)
    failures: int = 0
    aside: str = ""
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_AT_ONCE))


class Workers:
    """Runs the calls of skills, each in a worker of its folder.

    A folder is used in the version its tools were made from. A worker whose call was given up is killed, with
    everything it started. After `FAILURES` failures in a row the version is set aside.
    """

    def __init__(
        self,
        *,
        launcher: Launcher | None = None,
        reporter: FailureReporter | None = None,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._launcher = launcher
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
            worker = self._take(folder, used)
            try:
                result = await worker.call(function, args, context)
            except WorkerFault as fault:
                worker.is_stuck = True
                await self._failed(folder, used, worker, fault.told)
                raise
            finally:
                self._give_back(folder, used, worker)
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
        await asyncio.gather(*(worker.end() for worker in self._living), return_exceptions=True)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _used(self, folder: Path, version: Signature) -> _Version:
        known = self._versions.get(folder)
        if known is None or known.version != version:
            if known is not None:
                self._let_go(folder, known)
            known = self._versions[folder] = _Version(version)
        return known

    def _take(self, folder: Path, used: _Version) -> Worker:
        while used.idle:
            worker = used.idle.pop()
            worker.wake()
            if worker.is_alive:
                return worker
            self._end(worker)
        prefix = self._launcher.prefix(folder) if self._launcher is not None else ()
        worker = Worker(folder, prefix, self._start_seconds)
        self._living.add(worker)
        return worker

    def _give_back(self, folder: Path, used: _Version, worker: Worker) -> None:
        if worker.is_stuck or self._closed or self._versions.get(folder) is not used:
            self._end(worker)
        else:
            used.idle.append(worker)
            worker.rest(self._idle_seconds, lambda: self._retire(used, worker))

    def _retire(self, used: _Version, worker: Worker) -> None:
        worker.wake()
        used.idle.remove(worker)
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        self._task(self._ended(worker))

    async def _ended(self, worker: Worker) -> None:
        await worker.end()
        self._living.discard(worker)

    async def _failed(self, folder: Path, used: _Version, worker: Worker, how: str) -> None:
        if self._closed:
            return
        used.failures += 1
        said = Private(mask_text(str(worker.printed)))
        log.warning("a skill's worker failed", skill=folder.name, how=how, in_a_row=used.failures, said=said)
        if used.failures >= FAILURES and not used.aside:
            used.aside = lazy(
                "set aside after {n} failures in a row, until its folder changes: {reason}",
                n=FAILURES,
                reason=how,
            )
            log.error("a skill is set aside", skill=folder.name, reason=used.aside)
            await self._tell(folder, used.aside)

    def _let_go(self, folder: Path, used: _Version) -> None:
        for worker in used.idle[:]:
            self._retire(used, worker)
        if used.aside:
            self._task(self._tell(folder, ""))

    def _keep(self, versions: Mapping[Path, Signature]) -> None:
        for folder, used in list(self._versions.items()):
            if versions.get(folder) != used.version:
                self._let_go(folder, self._versions.pop(folder))

    async def _tell(self, folder: Path, reason: str) -> None:
        if self._reporter is None:
            return
        try:
            await self._reporter.skill_failed(folder, reason)
        except Exception as error:  # the log has it; the workers go on
            log.error("could not tell of a skill set aside", skill=folder.name, error=str(error))

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
