"""The sender: takes outbox rows in each person's order, one at a time, until each is at its end."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from sqlite3 import Connection

import structlog

from app.messages import Accepted, Channel, Refused, SendResult, Unknown
from app.store import alerts, aliases, outbox
from app.store.database import Database
from app.store.outbox import NextSend, OutboxRow

log = structlog.get_logger(__name__)

FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 300.0
MOST_STEPS = 10
"""Attempts after which every back-off is the longest; of some days of them a power is no number any more."""
LONGEST_ASKED = 3600.0
PAIR_RATE = 131056
PAIR_RATE_BASE = 4.0
WORTH_AN_ALERT = 4
"""Attempts after which a passing fault no longer looks like one."""
TRIED_TWICE = frozenset({131052, 131053})
FILE_ATTEMPTS = 6
"""Of a file that Meta answers and does not take: half a minute, and then what waits behind it goes on."""
NOT_ON_TEST_LIST = 131030
NO_SUCH_NUMBER = 33
NOT_REGISTERED = 133010
STORE_RETRY_SECONDS = 2.0
LONGEST_PAUSE = 30.0


class Sender:
    """Sends what the outbox holds. A wake is a hint; the rows say what there is."""

    def __init__(
        self, store: Database, channels: Mapping[str, Channel], *, reconcile_seconds: float, at_once: int = 50
    ) -> None:
        self._store = store
        self._channels = channels
        self._reconcile = reconcile_seconds
        self._places = asyncio.Semaphore(at_once)
        self._lanes: dict[str, tuple[asyncio.Event, asyncio.Task[None]]] = {}
        self._closing = False

    async def recover(self) -> None:
        """At a start, before anything is sent: a send that a crash cut off has an unknown outcome, and what
        was held is tried again, for a new token comes with a start."""
        now = time.time()

        def recover(conn: Connection) -> int:
            outbox.release_held(conn, now)
            return outbox.recover(conn, now + self._reconcile)

        waiting = await self._store.tx(recover)
        if waiting:
            log.info("sends of unknown outcome", count=waiting, awaited_seconds=self._reconcile)

    async def listening(self) -> None:
        """Statuses can come in from now on."""
        due = time.time() + self._reconcile
        await self._store.tx(lambda conn: outbox.await_statuses(conn, due))

    def wake(self, person: str) -> None:
        """Says that a person may have something to be sent."""
        if self._closing:
            return
        lane = self._lanes.get(person)
        if lane is None:
            event = asyncio.Event()
            task = asyncio.create_task(self._serve(person, event), name=f"sender {person}")
            self._lanes[person] = lane = (event, task)
        lane[0].set()

    async def end(self, person: str) -> None:
        """Sends nothing more to somebody who is gone; what is on the wire is not called back."""
        if person in self._lanes:
            _, task = self._lanes[person]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def close(self, seconds: float) -> None:
        """Lets what is on the wire end, then stops; the rest stays in its rows."""
        self._closing = True
        tasks = [task for _, task in self._lanes.values()]
        for event, _ in self._lanes.values():
            event.set()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _serve(self, person: str, event: asyncio.Event) -> None:
        try:
            while not self._closing:
                event.clear()
                given = await self._next(person)
                more = False
                if given.row is not None:
                    more = await self._deliver(given.row)
                elif given.at is not None:
                    await _wait(event, given.at - time.time())
                    more = True
                if not more and not event.is_set():  # no await between this check and leaving
                    break
        finally:
            self._lanes.pop(person, None)

    async def _next(self, person: str) -> NextSend:
        try:
            return await self._take(person)
        except Exception as error:  # a lane that died would leave its person without answers
            log.error("the outbox cannot be read", error=f"{type(error).__name__}: {error}")
            return NextSend(at=time.time() + STORE_RETRY_SECONDS)

    async def _take(self, person: str) -> NextSend:
        now = time.time()

        def take(conn: Connection) -> NextSend:
            given = outbox.take(conn, person, now)
            for lost in given.lost:
                text = f"message {lost} was sent twice without an answer; whether it arrived is not known"
                alerts.raise_alert(conn, "undelivered:unknown", text, now)
            return given

        given = await self._store.tx(take)
        for lost in given.lost:
            log.error("send of unknown outcome given up", outbox=lost)
        return given

    async def _deliver(self, parcel: OutboxRow) -> bool:
        """Sends it and writes what became of it; gives whether the person has more that is not at its end."""
        async with self._places:
            try:
                result = await self._channels[parcel.channel].send(parcel.to, parcel.message, parcel.id)
            except Exception as error:  # it may have been sent: only the channel could have told
                log.exception("sending failed in an unexpected way", outbox=parcel.id)
                result = Unknown(f"{type(error).__name__} while sending")
        now = time.time()
        while True:  # what became of a send is never forgotten for want of a disk
            try:
                _, more = await self._store.tx(
                    lambda conn: self._settle(conn, parcel, result, now), then=self._wake_released
                )
                return more
            except Exception as error:
                log.error("a send's outcome could not be kept", outbox=parcel.id, error=str(error))
                await asyncio.sleep(STORE_RETRY_SECONDS)

    def _wake_released(self, settled: tuple[Sequence[str], bool]) -> None:
        for person in settled[0]:
            self.wake(person)

    def _settle(
        self, conn: Connection, parcel: OutboxRow, result: SendResult, now: float
    ) -> tuple[Sequence[str], bool]:
        """Writes what became of a send; gives the people whose held messages may go now, and whether this
        one has more that is not at its end."""
        released = self._write_result(conn, parcel, result, now)
        return released, outbox.has_open(conn, parcel.person_id)

    def _write_result(
        self, conn: Connection, parcel: OutboxRow, result: SendResult, now: float
    ) -> Sequence[str]:
        if isinstance(result, Accepted):
            outbox.mark_sent(conn, parcel.id, result.message_id, now)
            if result.phone:
                aliases.remember_address(conn, parcel.person_id, result.phone)
            if alerts.close_alerts(conn, "send:", now):
                return outbox.release_held(conn, now)
        elif isinstance(result, Unknown):
            log.warning("send of unknown outcome", outbox=parcel.id, reason=result.detail)
            outbox.mark_unknown(conn, parcel.id, result.detail, now + self._reconcile)
        else:
            self._refused(conn, parcel, result, now)
        return []

    def _refused(self, conn: Connection, parcel: OutboxRow, result: Refused, now: float) -> None:
        log.warning(
            "send refused", outbox=parcel.id, code=result.code, then=result.then, detail=result.detail
        )
        if result.then == "retry" and not _was_tried_enough(result, parcel):
            due = now + backoff(result, parcel.attempts)
            outbox.retry(conn, parcel.id, due, result.code, result.detail)
            if parcel.attempts >= WORTH_AN_ALERT:
                kind = result.code or "unreachable"  # 0 is one of Meta's codes, and asks for a new token
                alerts.raise_alert(conn, f"send:{kind}", send_alert(result), now)
        elif result.then == "hold":
            outbox.hold(conn, parcel.id, result.code, result.detail, now)
            alerts.raise_alert(conn, f"send:{result.code}", send_alert(result), now)
        else:
            outbox.fail(conn, parcel.id, result.code, result.detail, now)
            alerts.raise_alert(conn, f"undelivered:{result.code}", send_alert(result), now)


def _was_tried_enough(result: Refused, parcel: OutboxRow) -> bool:
    if result.code in TRIED_TWICE:
        return parcel.attempts > 2
    return parcel.message.file is not None and bool(result.code) and parcel.attempts >= FILE_ATTEMPTS


def backoff(result: Refused, attempts: int) -> float:
    """Seconds until a refused send is tried again: what Meta asks for, else a growing time.

    For its rate per pair of numbers Meta documents waits of 4^X seconds (error 131056).
    """
    if result.retry_after:
        return min(max(result.retry_after, FIRST_BACKOFF), LONGEST_ASKED)
    steps = min(attempts, MOST_STEPS)
    base = PAIR_RATE_BASE if result.code == PAIR_RATE else 2.0
    return min(FIRST_BACKOFF * base ** (steps - 1 if base == 2.0 else steps), LONGEST_BACKOFF)


def send_alert(result: Refused) -> str:
    """What the operator is told, with the cure where it is known."""
    if result.code == 190:
        cure = "the access token is invalid or expired: set a new WHATSAPP_ACCESS_TOKEN and restart"
    elif result.code == NO_SUCH_NUMBER:
        cure = "WHATSAPP_PHONE_NUMBER_ID is none that the token reaches: correct one of them and restart"
    elif result.code == NOT_REGISTERED:
        cure = "the number is not registered: do it at WhatsApp > API Setup; messages wait for it"
    elif result.code == NOT_ON_TEST_LIST:
        cure = "a test number only reaches the numbers on its list: add the person's number there (API setup)"
    elif result.then == "template":
        cure = "the person last wrote more than 24 hours ago: only approved templates reach them"
    elif result.then == "hold":
        cure = "messages wait until this is mended at Meta"
    elif result.then == "retry":
        cure = "it is tried again until it works"
    else:
        cure = "the message was given up"
    return f"sending failed with {result.detail}; {cure}"


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(min(max(seconds, 0.0), LONGEST_PAUSE)):
            await event.wait()
    except TimeoutError:
        return
