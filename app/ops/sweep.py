"""The sweep: wake what is due, delete what is old, watch the free space."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

import structlog

from app.errors import RecadoError
from app.i18n import lazy
from app.installs.chat import Installs
from app.memory.history import History
from app.memory.summary import Summarizer
from app.messages import Wakeable
from app.ops.logs import forget_old
from app.schedule.alarm import Reminders
from app.store import Store, approvals, disk_space, inbox, outbox, personal_data
from app.store.database import Connection
from app.tasks import end_tasks
from app.turns.scheduler import TurnScheduler

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DueWork:
    """The parts that carry out what is due."""

    turns: TurnScheduler
    sends: Wakeable
    reminders: Reminders
    tell: Callable[[Connection, float], None]  # queues what people are to be told of handovers by now
    history: History
    summaries: Summarizer
    installs: Installs


class Sweep:
    """Looks through the rows at the start, every `seconds`, and when `look_again` is set."""

    def __init__(
        self, store: Store, channels: Collection[str], seconds: float, due: DueWork, look_again: asyncio.Event
    ) -> None:
        self._store = store
        self._channels = channels
        self._seconds = seconds
        self._due = due
        self._task: asyncio.Task[None] | None = None
        self._look_again = look_again
        self.failure = ""  # what the last look failed at, in words for an operator

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="sweep")

    async def stop(self) -> None:
        await end_tasks(self._task)

    async def _run(self) -> None:
        while True:
            self._look_again.clear()
            parts = (self._look, self._forget, self._due.history.index)
            failed = [part for part in parts if not await self._attempt(part)]
            self.failure = lazy("what is due or old cannot be looked through: see the log") if failed else ""
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._look_again.wait()

    async def _attempt(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Run one part of the sweep and return True if it succeeded; an error never ends the others."""
        try:
            await work()
        except Exception as error:
            log.error("sweep failed", error=f"{type(error).__name__}: {error}")
            return False
        return True

    async def _look(self) -> None:
        now, free = time.time(), await asyncio.to_thread(self._free)
        ahead = self._seconds  # its lane waits out the rest: no pause lasts a sweep too long

        def look(conn: Connection) -> tuple[list[str], list[str], list[str]]:
            outbox.mend_clock(conn, now)
            approvals.expire(conn, now)
            self._due.tell(conn, now)
            changes: list[str] = []
            if free is not None:
                changes = disk_space.update_alerts(conn, free, self._store.disk.least, now)
            conversations = inbox.waiting(conn, self._channels, now, ahead)
            return conversations, outbox.people_waiting(conn, self._channels, now, ahead), changes

        conversations, people, changes = await self._store.database.tx(look)
        for change in changes:
            log.warning("free space", change=change)
        for conversation in conversations:
            self._due.turns.wake(conversation)
        self._due.turns.look()
        for person in people:
            self._due.sends.wake(person)
        self._due.reminders.look()
        self._due.summaries.look()

    async def _forget(self) -> None:
        """Delete what is old, after the look, which it must not hold up."""
        now = time.time()
        try:
            asked_about = await approvals.open_subjects(self._store.database)
            await asyncio.to_thread(self._due.installs.discard_old, now, asked_about)
            await asyncio.to_thread(forget_old, self._store.disk.folder, now)
            await asyncio.to_thread(self._store.media.discard_old, now)
            await personal_data.remove_erased_folders(self._store.database, self._store.folders)
        except (OSError, RecadoError) as error:
            log.warning("old files could not be removed", error=str(error))
        await self._store.database.tx(lambda conn: personal_data.delete_old(conn, now))

    def _free(self) -> int | None:
        """Return the free bytes, None if the disk does not say."""
        try:
            return self._store.disk.free()
        except OSError as error:
            log.warning("free space is not known", error=str(error))
            return None
