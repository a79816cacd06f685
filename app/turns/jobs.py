"""Conversations as jobs of procrastinate: any number of processes work on one PostgreSQL database.

The lock of a job is its conversation, so one worker serves it at a time. A process that only takes messages
in gives hints; the jobs themselves come with the rows (`app.store.postgres`).
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

import psycopg
import structlog
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job
from procrastinate.manager import JobManager, NotificationCallback

from app.errors import StoreError
from app.store import postgres
from app.store.database import Connection, Database
from app.tasks import end_tasks
from app.turns.attachments import AttachmentReader
from app.turns.scheduler import TurnScheduler
from app.turns.state import TurnServices
from app.turns.turn import TurnRunner

log = structlog.get_logger(__name__)

WAITING_SHARE = 5  # beside each so many turns that run, a conversation may wait for a burst or a place
POLL_SECONDS = 5.0
RESCUE_SECONDS = 5.0
RETRY_SECONDS = 1.0


class ConversationJobs(TurnScheduler):
    """The scheduler of one worker among several: it attends to the conversation of each job."""

    def __init__(
        self,
        services: TurnServices,
        runner: TurnRunner,
        attachments: AttachmentReader,
        must_stop: asyncio.Event,
    ) -> None:
        super().__init__(services, runner, attachments)
        self._address = str(services.settings.database)
        self._must_stop = must_stop  # set when this worker was taken out
        self._heartbeat: postgres.Heartbeat | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def register(self, *, alone: bool) -> None:
        """Make this process a worker; if it is `alone`, what earlier ones held is free at once.

        Beside others it prunes nobody before it has shown for a while that the database answers.
        """
        number = await self._store.tx(lambda conn: postgres.register_worker(conn, alone=alone))
        self._store.engine.worker = number
        loop = asyncio.get_running_loop()
        self._store.lease = self._heartbeat = postgres.Heartbeat(
            self._store,
            self._address,
            number,
            lambda: loop.call_soon_threadsafe(self._must_stop.set),
            alone=alone,
        )
        if alone:
            await self._rescue(0.0)

    async def start(self) -> None:
        """Attend to jobs and follow the hints of other processes."""
        self._tasks = [
            asyncio.create_task(self._work(), name="jobs"),
            asyncio.create_task(self._rescue_dead(), name="rescue"),
            asyncio.create_task(self._listen(), name="hints"),
        ]

    def message_stored(self, conversation: str) -> None:
        """Do nothing: the job of a message comes with its row, and a hint with the job."""

    def wake(self, conversation: str) -> None:
        """See that somebody attends to a conversation that may have something to do."""
        if not self._hint(conversation):
            self._store.tx(lambda conn: postgres.ensure_job(conn, conversation))

    async def attend(self, conversation: str) -> None:
        """Serve a conversation until it has nothing to do soon."""
        if self._closing:
            self._unfinished.append(conversation)
        self._open_lane(conversation)
        if (lane := self._lanes.get(conversation)) is not None and lane.task is not None:
            await asyncio.wait({lane.task})

    async def end(self, conversations: Iterable[str]) -> None:
        """End what runs here; other processes are told to do the same, and are not waited for."""
        ended = [*conversations]
        await self._store.tx(lambda conn: postgres.notify(conn, *(f"end {one}" for one in ended)))
        await super().end(ended)

    async def close(self, seconds: float) -> None:
        """Fetch no more jobs, and end those that run."""
        for task in self._tasks:
            task.cancel()  # that of the jobs ends once they have ended
        await super().close(seconds)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def unregister(self) -> None:
        """Leave what is unfinished to other workers, once nothing runs or is sent here any more."""
        worker, left = self._store.engine.worker, self._unfinished
        if self._heartbeat is None or worker is None:
            return
        await asyncio.to_thread(self._heartbeat.stop)
        try:
            async with asyncio.timeout(RETRY_SECONDS):
                await self._store.tx(lambda conn: postgres.unregister_worker(conn, worker, left))
        except (StoreError, TimeoutError) as error:  # the others find out by its silence
            log.error("this worker could not be taken out", error=str(error) or "no answer")

    async def _work(self) -> None:
        """Run procrastinate's worker; when the database was away, again."""
        at_once = self._services.settings.concurrent_turns
        while True:
            connector = PsycopgConnector(
                conninfo=self._address, min_size=1, max_size=4, kwargs=postgres.NETWORK
            )
            jobs = App(connector=connector)
            jobs.job_manager = _Registered(connector, self._store.engine.worker)
            jobs.task(name=postgres.TASK)(self.attend)
            try:
                async with jobs.open_async():
                    await jobs.run_worker_async(
                        queues=[postgres.QUEUE],
                        concurrency=at_once + at_once // WAITING_SHARE + 1,
                        fetch_job_polling_interval=POLL_SECONDS,
                        delete_jobs="always",
                        install_signal_handlers=False,
                    )
            except Exception as error:
                log.error("no jobs can be fetched", error=f"{type(error).__name__}: {error}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _rescue_dead(self) -> None:
        while True:
            await asyncio.sleep(RESCUE_SECONDS)
            if self._heartbeat is not None and self._heartbeat.may_prune:
                try:
                    await self._rescue(postgres.SILENT_SECONDS)
                except StoreError as error:
                    log.warning("dead workers were not looked for", error=str(error))

    async def _rescue(self, silent: float) -> None:
        now, own = time.time(), self._store.engine.worker
        reconcile = self._services.settings.send_reconcile_seconds

        def rescue(conn: Connection) -> Sequence[int]:
            # read now: since this was queued, others may have come
            postgres.requeue_unattended(conn, own, [*self._lanes])
            return postgres.prune_stalled_workers(conn, own, now, reconcile, silent)

        gone = await self._store.tx(rescue)
        if gone:
            log.warning("workers were silent for too long; others go on with their work", workers=len(gone))

    async def _listen(self) -> None:
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._address, autocommit=True, **postgres.NETWORK
                ) as connection:
                    await connection.execute("LISTEN recado")
                    async for note in connection.notifies():
                        what, _, whom = note.payload.partition(" ")
                        if what == "turn":
                            self._hint(whom)
                        elif what == "end":
                            await super().end([whom])
                        elif what == "send":
                            self._services.sender.wake(whom)
                        elif what == "look":
                            self._services.look_again.set()
            except psycopg.Error as error:  # hints only: the sweep finds everything
                log.warning("no hints of other processes", error=type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)

    def _hint(self, conversation: str) -> bool:
        """Say to a conversation's lane that it may have more to do; return False if it has none here."""
        lane = self._lanes.get(conversation)
        if lane is not None:
            lane.dirty.set()
        return lane is not None


class HintPublisher:
    """Gives hints to the workers from a process that only takes messages in, and sees whether one lives."""

    def __init__(self, store: Database, look_again: asyncio.Event) -> None:
        self.failure = ""  # or that no worker lives
        self._store = store
        self._look_again = look_again
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._forward(), name="hints")

    async def stop(self) -> None:
        await end_tasks(self._task)

    def wake(self, person: str) -> None:
        """Say that a person may have something to be sent."""
        self._store.tx(lambda conn: postgres.notify(conn, f"send {person}"))

    async def _forward(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RESCUE_SECONDS):
                    await self._look_again.wait()
                    self._look_again.clear()
                    self._store.tx(lambda conn: postgres.notify(conn, "look"))
            with suppress(StoreError):  # which `/health` tells by itself
                is_worked = await self._store.all(postgres.ANY_LIVES)
                self.failure = (
                    "" if is_worked else "no worker runs: messages are kept, and nobody is answered"
                )


class _Registered(JobManager):
    """Names the worker that this process is already; it shows that it lives in a thread of its own."""

    def __init__(self, connector: PsycopgConnector, worker: int | None) -> None:
        super().__init__(connector)
        self._worker = worker

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Return no job while the database is away: procrastinate would wait for all turns to end."""
        try:
            return await super().fetch_job(queues, worker_id)
        except ConnectorException as error:
            log.warning("no jobs can be fetched", error=type(error).__name__)
            await asyncio.sleep(RETRY_SECONDS)
            return None

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        """Listen, again once the database is back."""
        while True:
            with suppress(ConnectorException):
                await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            await asyncio.sleep(RETRY_SECONDS)

    async def register_worker(self) -> int:
        assert self._worker is not None
        return self._worker

    async def unregister_worker(self, worker_id: int) -> None: ...

    async def update_heartbeat(self, worker_id: int) -> None: ...

    async def prune_stalled_workers(self, seconds_since_heartbeat: float) -> list[int]:
        return []
