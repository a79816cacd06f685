"""The sender: sends outbox rows in each person's order, one at a time, until each has its final state."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress

import structlog

from app.channels.whatsapp.errors import PAIR_RATE, send_alert
from app.errors import StoreError
from app.messages import Accepted, Channel, Refused, SendResult, Unknown
from app.store import alerts, delivery, handovers, outbox, people
from app.store.database import Connection, Database
from app.store.outbox import OutboxRow
from app.tasks import end_tasks
from app.text import Private
from app.turns.limits import Limits

log = structlog.get_logger(__name__)

AT_ONCE = 50  # sends of different people
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 300.0
MOST_STEPS = 10  # attempts after which every back-off is the longest; bounds the power
LONGEST_ASKED = 3600.0
ATTEMPTS_BEFORE_ALERT = 4
FILE_ATTEMPTS = 4  # of a file that Meta refuses: some seconds, then the messages behind it go on
STORE_RETRY_SECONDS = 2.0
LONGEST_PAUSE = 30.0


class Sender:
    """Sends what the outbox holds. A wake is a hint; the rows say what there is."""

    def __init__(
        self, store: Database, channels: Mapping[str, Channel], limits: Limits, *, reconcile_seconds: float
    ) -> None:
        self._store = store
        self._channels = channels
        self._limits = limits
        self._reconcile = reconcile_seconds
        self._places = asyncio.Semaphore(AT_ONCE)
        self._guests_places = asyncio.Semaphore(AT_ONCE // 5)  # of these, so that members never wait
        self._lanes: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._closing = False

    async def recover(self) -> None:
        """Prepare the rows at a start, before anything is sent.

        A send that a crash cut off has an unknown outcome; a held one is tried again, because a new token
        comes with a start.
        """
        now = time.time()

        def recover(conn: Connection) -> int:
            outbox.release_held(conn, now)
            return outbox.recover(conn, now + self._reconcile)

        waiting = await self._store.tx(recover)
        if waiting:
            log.info("sends of unknown outcome", count=waiting, awaited_seconds=self._reconcile)

    async def listening(self) -> None:
        """Note that statuses can come in from now on."""
        due = time.time() + self._reconcile
        await self._store.tx(lambda conn: outbox.await_statuses(conn, due))

    def wake(self, person: str) -> None:
        """Hint that a person may have something to be sent."""
        if self._closing:
            return
        lane = self._lanes.get(person)
        if lane is None:
            event = asyncio.Event()
            task = asyncio.create_task(self._serve(person, event), name=f"sender {person}")
            self._lanes[person] = lane = (event, task)
        lane[0].set()

    async def end(self, person: str) -> None:
        """Send nothing more to a person who was erased; a request that is under way cannot be recalled."""
        if person in self._lanes:
            await end_tasks(self._lanes[person][1])

    async def close(self, seconds: float) -> None:
        """Let requests under way end, then stop; the rest stays in its rows."""
        self._closing = True
        tasks = [task for _, task in self._lanes.values()]
        for event, _ in self._lanes.values():
            event.set()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
            await end_tasks(*tasks)

    async def _serve(self, person: str, event: asyncio.Event) -> None:
        try:
            for_guest = await self._is_guest(person)
            while not self._closing:
                event.clear()
                # The row is taken when it can be sent at once: what is taken may not be held back any more.
                async with self._guests_places if for_guest else nullcontext(), self._places:
                    next_send = await self._next(person)
                    more = isinstance(next_send, OutboxRow) and await self._deliver(next_send)
                if isinstance(next_send, float):
                    pause = min(max(next_send - time.time(), 0.0), LONGEST_PAUSE)
                    with suppress(TimeoutError):
                        await asyncio.wait_for(event.wait(), pause)
                    more = True
                if not more and not event.is_set():  # no await between this check and leaving
                    break
        finally:
            self._lanes.pop(person, None)

    async def _is_guest(self, person: str) -> bool:
        try:
            return await self._store.tx(lambda conn: self._limits.is_guest(conn, person))
        except StoreError as error:
            log.error("the people cannot be read", error=str(error))
            return True

    async def _next(self, person: str) -> OutboxRow | float | None:
        now = time.time()

        def take(conn: Connection) -> tuple[OutboxRow | float | None, list[str]]:
            if self._closing:
                return None, []
            handovers.settle(conn, person, now)
            sendable = self._limits.sendable(conn, person, now)
            # Read in here: the wait for this transaction may have been the standstill.
            statuses_by = now + self._reconcile - self._store.writing_seconds
            row = outbox.take(conn, person, now, sendable, self._store.engine.worker, statuses_by)
            return row, self._limits.count_send(conn, row, now) if isinstance(row, OutboxRow) else []

        try:
            next_send, told = await self._store.tx(take)
        except Exception as error:  # a lane that died would leave its person without answers
            log.error("the outbox cannot be read", error=f"{type(error).__name__}: {error}")
            return now + STORE_RETRY_SECONDS
        for owner in told:
            self.wake(owner)
        return next_send

    async def _deliver(self, row: OutboxRow) -> bool:
        """Send a row and write the outcome; return True if the person has more that is not final."""
        try:
            result = await self._channels[row.channel].send(row.to, row.message, row.id)
        except Exception as error:  # it may have been sent: only the channel could have told
            log.exception("sending failed in an unexpected way", outbox=row.id)
            result = Unknown(f"{type(error).__name__} while sending")
        now = time.time()
        while True:  # an outcome is never lost because the disk is full
            try:
                _, more = await self._store.tx(
                    lambda conn: self._settle(conn, row, result, now), then=self._wake_released
                )
                return more
            except Exception as error:
                log.error("a send's outcome could not be kept", outbox=row.id, error=str(error))
                await asyncio.sleep(STORE_RETRY_SECONDS)

    def _wake_released(self, settled: tuple[Sequence[str], bool]) -> None:
        for person in settled[0]:
            self.wake(person)

    def _settle(
        self, conn: Connection, row: OutboxRow, result: SendResult, now: float
    ) -> tuple[Sequence[str], bool]:
        """Write the outcome of a send.

        Return the people whose held messages may go now, and True if this one has more that is not final.
        """
        released: Sequence[str] = ()
        if not (isinstance(result, Accepted) or outbox.is_attempt(conn, row)):
            log.warning("a send's outcome came too late", outbox=row.id)
        elif isinstance(result, Accepted):
            delivery.mark_sent(conn, row.id, result.message_id, now)
            if result.phone:
                people.remember_address(conn, row.person_id, result.phone)
            if alerts.close_alerts(conn, "send:", now):
                released = outbox.release_held(conn, now)
        elif isinstance(result, Unknown):
            log.warning("send of unknown outcome", outbox=row.id, reason=Private(result.detail))
            outbox.mark_unknown(conn, row.id, result.detail, now + self._reconcile)
        else:
            self._refused(conn, row, result, now)
        handovers.settle(conn, row.person_id, now)
        return released, outbox.has_open(conn, row.person_id)

    def _refused(self, conn: Connection, row: OutboxRow, result: Refused, now: float) -> None:
        detail = Private(result.detail)
        log.warning("send refused", outbox=row.id, code=result.code, then=result.then, detail=detail)
        alert = f"send:{result.code}"
        is_refused_file = row.message.file is not None and bool(result.code)
        if result.then == "retry" and not (is_refused_file and row.attempts >= FILE_ATTEMPTS):
            wait = backoff(result, row.attempts)
            due = now + (max(wait, self._reconcile) if result.may_have_arrived else wait)
            outbox.retry(conn, row.id, due, result.code, result.detail)
            if row.attempts < ATTEMPTS_BEFORE_ALERT:
                return
            alert = alert if result.code else "send:unreachable"  # 0 is one of Meta's codes: a new token
        elif result.then == "hold":
            outbox.hold(conn, row.id, result.code, result.detail, now)
        else:
            outbox.fail(conn, row.id, result.code, result.detail, now)
            alert = f"undelivered:{result.code}"
        alerts.raise_alert(conn, alert, send_alert(result), now)


def backoff(result: Refused, attempts: int) -> float:
    """Return the seconds until a refused send is tried again: as Meta asks, else a growing time.

    For its rate per pair of numbers Meta documents waits of 4^X seconds (error 131056).
    """
    if result.retry_after:
        return min(max(result.retry_after, FIRST_BACKOFF), LONGEST_ASKED)
    steps = min(attempts, MOST_STEPS)
    seconds = 4.0**steps if result.code == PAIR_RATE else FIRST_BACKOFF * 2.0 ** (steps - 1)
    return min(seconds, LONGEST_BACKOFF)
