"""Schedule turns in this process: one lane a conversation, one turn at a time in it, many lanes at once."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace

import structlog

from app.errors import StoreError
from app.schedule.alarm import runs_wait_until
from app.store import turns
from app.store.database import Connection, new_id
from app.store.journal import TurnGone
from app.store.turns import Ready, UnreadFiles
from app.tasks import end_tasks
from app.turns.attachments import AttachmentReader
from app.turns.inbound import take_replies
from app.turns.state import TurnServices
from app.turns.turn import TurnRunner

log = structlog.get_logger(__name__)

RETRY_SECONDS = 2.0
GUESTS_SHARE = 10  # of so many places one is for guests, so that members never wait for them
LONGEST_PAUSE = 30.0
RELEASE_SECONDS = 1.0

Found = Ready | float | UnreadFiles | None  # what there is to do in a conversation, or when to look again


@dataclass(slots=True)
class _Lane:
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    turn: str = ""
    attempt: "asyncio.Task[None] | None" = None  # runs the turn
    reading: "asyncio.Task[None] | None" = None  # reads the files of the next burst


class TurnScheduler:
    """Runs turns for conversations in this process; `app.turns.jobs` shares them with other processes.

    A wake is a hint: a lane reads from the rows what there is to do, and ends only when there is nothing and
    no hint came meanwhile. On PostgreSQL it also ends before a long pause, after which the sweep finds the
    conversation.
    """

    def __init__(self, services: TurnServices, runner: TurnRunner, attachments: AttachmentReader) -> None:
        settings = services.settings
        self._services = services
        self._store = services.store
        self._runner = runner
        self._quiet, self._longest = settings.burst_quiet_seconds, settings.burst_max_seconds
        self._attachments = attachments
        self._limits = services.limits
        self._places = asyncio.Semaphore(settings.concurrent_turns)  # first come, first served
        self._guests_places = asyncio.Semaphore(max(settings.concurrent_turns // GUESTS_SHARE, 1))
        self._alone = asyncio.Lock()
        self._lanes: dict[str, _Lane] = {}
        self._unfinished: list[str] = []  # conversations that may have something left to do at the end
        self._closing = False

    @property
    def running(self) -> int:
        """Return how many turns run in this process now."""
        return sum(1 for lane in self._lanes.values() if lane.turn)

    def message_stored(self, conversation: str) -> None:
        """Say that a message was committed for a conversation."""
        self.wake(conversation)

    def wake(self, conversation: str) -> None:
        """Say that a conversation may have something to do."""
        self._open_lane(conversation)

    def look(self) -> None:
        """Make each running turn check whether it is to stop."""
        for lane in self._lanes.values():
            if lane.turn:
                lane.dirty.set()

    async def end(self, conversations: Iterable[str]) -> None:
        """End what runs in conversations that are gone, and return once it has ended."""
        lanes = [self._lanes[one] for one in conversations if one in self._lanes]
        await end_tasks(*(task for lane in lanes for task in (lane.attempt, lane.reading)))

    async def close(self, seconds: float) -> None:
        """Take up nothing more, wait for the turns that run, and give back unfinished what is left."""
        self._closing = True
        lanes = dict(self._lanes)
        self._unfinished += lanes
        for lane in lanes.values():
            if not lane.turn and lane.task is not None:
                lane.task.cancel()
        tasks = [lane.task for lane in lanes.values() if lane.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
            await end_tasks(*tasks)
            try:
                async with asyncio.timeout(RELEASE_SECONDS):
                    await self._store.tx(lambda conn: turns.release(conn, [*lanes]))
            except (StoreError, TimeoutError) as error:  # they are found from their rows at a start
                log.error("turns were not given back", error=str(error) or f"took over {RELEASE_SECONDS:g} s")
        await self._runner.close()

    def _open_lane(self, conversation: str) -> None:
        """Have a lane look at a conversation's rows, unless all are closing."""
        if self._closing:
            return
        lane = self._lanes.get(conversation)
        if lane is None:
            lane = self._lanes[conversation] = _Lane()
            lane.task = asyncio.create_task(self._serve(conversation, lane), name=f"lane {conversation}")
        lane.dirty.set()

    async def _serve(self, conversation: str, lane: _Lane) -> None:
        try:
            while not self._closing:
                lane.dirty.clear()
                found = await self._take_up(conversation, lane)
                if isinstance(found, UnreadFiles):
                    if lane.reading is None or lane.reading.done():
                        lane.reading = asyncio.create_task(self._read_files(found, lane))
                    await _wait(lane.dirty, LONGEST_PAUSE)
                elif isinstance(found, float):
                    if self._services.settings.on_postgres and found > time.time() + LONGEST_PAUSE:
                        if lane.dirty.is_set():
                            continue
                        break
                    await _wait(lane.dirty, found - time.time())
                elif (found is None or not found.more) and not lane.dirty.is_set():
                    break  # no await between this check and leaving
        finally:
            await end_tasks(lane.reading)
            self._lanes.pop(conversation, None)

    async def _read_files(self, unread: UnreadFiles, lane: _Lane) -> None:
        """Read the files of the next burst beside the lane, which meanwhile takes answers and stops."""
        try:
            await self._attachments.read(unread.messages)
        except Exception as error:
            log.error("files were not read", error=type(error).__name__)
        finally:
            lane.reading = None
            lane.dirty.set()

    async def _take_up(self, conversation: str, lane: _Lane) -> Found:
        """Look for a turn and run it; whatever goes wrong, the lane goes on."""
        try:
            found = await self._claim(conversation)
            if isinstance(found, Ready):
                await self._run(conversation, lane, found)
        except Exception as error:
            log.error("a lane stumbled", error=f"{type(error).__name__}: {error}")
            return time.time() + RETRY_SECONDS
        return found

    async def _claim(self, conversation: str) -> Found:
        now, turn = time.time(), new_id("turn")

        def choose(conn: Connection) -> tuple[Found, Sequence[str]]:
            if (until := runs_wait_until(conn, conversation, now)) is not None:
                return until, ()
            pause, told = self._limits.pause(conn, conversation, now)
            if pause is not None:
                return pause, told
            notified, again = take_replies(conn, self._services, conversation, now)
            found: Found = turns.stop(conn, conversation, turn, now) or again or None
            found = found or turns.claim(conn, conversation, turn, now, self._quiet, self._longest)
            if isinstance(found, Ready):
                for_guest = self._limits.count_guest_turn(conn, found.id, now, is_new=found.id == turn)
                found = replace(found, for_guest=for_guest)
            return found, [notified] if notified else []

        def notify(chosen: tuple[object, Sequence[str]]) -> None:
            for person in chosen[1]:
                self._services.sender.wake(person)

        found, _ = await self._store.tx(choose, then=notify)
        return found

    async def _run(self, conversation: str, lane: _Lane, turn: Ready) -> None:
        """Run a turn once there is a place for it.

        One that was cut off twice runs beside no other such turn, so that a crash tells the turn that brings
        the server down from those that only ran beside it.
        """
        guests = self._guests_places if turn.for_guest else nullcontext()
        async with self._alone if turn.runs_alone else nullcontext(), guests, self._places:
            lane.turn = turn.id
            lane.attempt = asyncio.create_task(self._attempt(turn.id, lane), name=f"turn {turn.id}")
            try:
                await self._until_done(conversation, lane, lane.attempt)
            finally:
                await end_tasks(lane.attempt)
                lane.turn, lane.attempt = "", None

    async def _until_done(self, conversation: str, lane: _Lane, attempt: "asyncio.Task[None]") -> None:
        """Wait for the end of a turn; at each hint look whether it is to stop."""
        was_hinted = False
        while not attempt.done():
            hint = asyncio.create_task(lane.dirty.wait())
            try:
                await asyncio.wait({attempt, hint}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                hint.cancel()
            if lane.dirty.is_set() and not attempt.done():
                lane.dirty.clear()
                was_hinted = True
                try:
                    if await turns.is_stopped(self._store, conversation, lane.turn):
                        attempt.cancel()
                except Exception as error:
                    log.error("a stop was not looked for", error=f"{type(error).__name__}: {error}")
        if was_hinted:  # the lane looks again for what the hints were about
            lane.dirty.set()

    async def _attempt(self, turn: str, lane: _Lane) -> None:
        """Run a turn; what it raises postpones it, and after the third attempt ends it."""
        try:
            await self._runner.run(turn)
        except TurnGone as gone:
            log.info("turn had ended", turn=turn, reason=str(gone))
        except Exception as error:
            log.exception("turn failed", turn=turn)
            await self._postpone(turn, error)
            lane.dirty.set()  # it is not over: the lane stays for its next attempt

    async def _postpone(self, turn: str, error: Exception) -> None:
        due, said = time.time() + RETRY_SECONDS, f"{type(error).__name__}: {error}"
        own = not isinstance(error, StoreError)
        try:
            if await self._store.tx(lambda conn: turns.postpone(conn, turn, due, said, is_its_own=own)):
                log.error("turn ended without a reply", turn=turn)
        except Exception as fault:
            log.error("turn not postponed", turn=turn, error=f"{type(fault).__name__}: {fault}")
            await asyncio.sleep(RETRY_SECONDS)  # the disk is in trouble: the lane tries again


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(min(max(seconds, 0.0), LONGEST_PAUSE)):
            await event.wait()
