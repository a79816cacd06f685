"""The local carrier: one lane a conversation, one turn at a time in it, many lanes at once."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from sqlite3 import Connection

import structlog

from app.errors import StoreError
from app.store import turns
from app.store.database import Database, new_id
from app.store.journal import TurnGone
from app.store.turns import Pause, Ready
from app.turns.inbound import ApprovalReplies
from app.turns.state import LoadedTurn
from app.turns.turn import TurnRunner

log = structlog.get_logger(__name__)

RETRY_SECONDS = 2.0
LONGEST_PAUSE = 30.0
RELEASE_SECONDS = 1.0


@dataclass(slots=True)
class _Lane:
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    turn: str = ""
    attempt: "asyncio.Task[None] | None" = None
    """Runs the turn."""
    stopping: "asyncio.Task[None] | None" = None
    """Looks whether a /stop ends it."""
    hints: int = 0


class TurnScheduler:
    """Brings turns to `TurnRunner` in this process.

    A wake is a hint: a lane reads from the rows what there is to do, and ends only when there is
    nothing and no hint came meanwhile.
    """

    def __init__(
        self,
        store: Database,
        runner: TurnRunner,
        *,
        quiet: float,
        longest: float,
        at_once: int = 100,
        ready: Callable[[], Awaitable[None]],
        hearing: ApprovalReplies,
        on_notice: Callable[[str], None],
    ) -> None:
        self._store = store
        self._runner = runner
        self._hearing = hearing
        self._on_notice = on_notice
        self._quiet = quiet
        self._longest = longest
        self._ready = ready
        self._places = asyncio.Semaphore(at_once)  # wakes its waiters first come, first served
        self._alone = asyncio.Lock()
        self._lanes: dict[str, _Lane] = {}
        self._expected: dict[str, asyncio.TimerHandle] = {}
        self._closing = False

    @property
    def running(self) -> int:
        """How many turns run now."""
        return sum(1 for lane in self._lanes.values() if lane.turn)

    def expect(self, conversation: str) -> None:
        """Says that a message came in: its burst is looked at when it may be complete, not before."""
        if self._quiet <= 0:
            self.wake(conversation)
        elif conversation not in self._expected and not self._closing:
            loop = asyncio.get_running_loop()
            self._expected[conversation] = loop.call_later(self._quiet, self._wake_expected, conversation)

    def _wake_expected(self, conversation: str) -> None:
        del self._expected[conversation]
        self.wake(conversation)

    def wake(self, conversation: str) -> None:
        """Says that a conversation may have something to do."""
        if self._closing:
            return
        lane = self._lanes.get(conversation)
        if lane is None:
            lane = self._lanes[conversation] = _Lane()
            lane.task = asyncio.create_task(self._serve(conversation, lane), name=f"lane {conversation}")
        lane.hints += 1
        lane.dirty.set()
        self._watch_for_stop(conversation, lane)

    async def end(self, conversations: Iterable[str]) -> None:
        """Ends what runs in conversations that are gone, and returns once it has ended."""
        lanes = [self._lanes[one] for one in conversations if one in self._lanes]
        await _ended(*(lane.attempt for lane in lanes))

    async def close(self, seconds: float) -> None:
        """Takes up nothing more, waits for the turns that run, gives back unfinished what is left."""
        self._closing = True
        for timer in self._expected.values():
            timer.cancel()
        for lane in self._lanes.values():
            if not lane.turn and lane.task is not None:
                lane.task.cancel()
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._release()
        await self._runner.close()

    async def _release(self) -> None:
        """Gives back what ran, as far as the disk lets us: what is left is told from its rows at a start."""
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._store.tx(turns.release)
        except (StoreError, TimeoutError) as error:
            log.error("turns were not given back", error=str(error) or f"took over {RELEASE_SECONDS:g} s")

    async def _serve(self, conversation: str, lane: _Lane) -> None:
        """A lane's life."""
        try:
            while not self._closing:
                lane.dirty.clear()
                found = await self._guarded(conversation, lane)
                if isinstance(found, Pause):
                    await _wait(lane.dirty, found.at - time.time())
                elif (found is None or not found.more) and not lane.dirty.is_set():
                    break  # no await between this check and leaving
        finally:
            self._lanes.pop(conversation, None)

    async def _guarded(self, conversation: str, lane: _Lane) -> Ready | Pause | None:
        """Looks for a turn and runs it; whatever goes wrong, the lane goes on. None begins before the model
        can be asked: a crash while starting speaks against no turn."""
        try:
            await self._ready()
            async with AsyncExitStack() as place:
                if begins := not self._places.locked():
                    await place.enter_async_context(self._places)
                found, begun = await self._next(conversation, begins)
                if begun is None:
                    await place.aclose()
                if isinstance(found, Ready):
                    await self._run(conversation, lane, found, begun)
        except Exception as error:
            log.error("a lane stumbled", error=f"{type(error).__name__}: {error}")
            return Pause(time.time() + RETRY_SECONDS)
        return found

    async def _next(self, conversation: str, begins: bool) -> tuple[Ready | Pause | None, LoadedTurn | None]:
        """What there is to do. Who holds a place `begins` a turn with it, which spares a transaction."""
        try:
            return await self._claim(conversation, begins)
        except Exception as error:  # rows that cannot be read speak against their turn: it begins by itself
            if not begins or isinstance(error, StoreError):
                raise
            log.warning("a turn could not begin with its claim", error=f"{type(error).__name__}: {error}")
            return await self._claim(conversation, begins=False)

    async def _claim(self, conversation: str, begins: bool) -> tuple[Ready | Pause | None, LoadedTurn | None]:
        now, turn = time.time(), new_id("turn")

        def choose(conn: Connection) -> tuple[Ready | Pause | None, LoadedTurn | None, str]:
            told, again = self._hearing.hear(conn, conversation, now, self._quiet, self._longest)
            found: Ready | Pause | None = turns.stop(conn, conversation, turn, now)
            if found is None and again:
                found = Pause(again)
            found = found or turns.claim(conn, conversation, turn, now, self._quiet, self._longest)
            begun = None
            if begins and isinstance(found, Ready) and not found.runs_alone:
                begun = self._runner.begin(conn, found.id, now)
            return found, begun, told

        def tell(chosen: tuple[object, object, str]) -> None:
            if chosen[2]:
                self._on_notice(chosen[2])

        found, begun, _ = await self._store.tx(choose, then=tell)
        return found, begun

    async def _run(self, conversation: str, lane: _Lane, turn: Ready, begun: LoadedTurn | None) -> None:
        """Runs a turn; one that is not `begun` waits for its place. One that was cut off twice runs beside no
        other such, so that a crash tells the turn that brings the server down from those that only ran beside
        it."""
        place: AbstractAsyncContextManager[None] = self._places if begun is None else nullcontext()
        async with place, self._alone if turn.runs_alone else nullcontext():
            lane.turn = turn.id
            attempt = self._attempt(turn.id, begun, lane)
            lane.attempt = asyncio.create_task(attempt, name=f"turn {turn.id}")
            if lane.dirty.is_set():  # it may have waited long for its place
                self._watch_for_stop(conversation, lane)
            try:
                await asyncio.wait({lane.attempt})
            finally:
                await _ended(lane.attempt, lane.stopping)
                lane.turn, lane.attempt, lane.stopping = "", None, None

    def _watch_for_stop(self, conversation: str, lane: _Lane) -> None:
        if lane.attempt is not None and lane.stopping is None:
            lane.stopping = asyncio.create_task(self._stop_if_asked(conversation, lane, lane.attempt))

    async def _stop_if_asked(self, conversation: str, lane: _Lane, attempt: "asyncio.Task[None]") -> None:
        """Ends a turn early where a /stop came in; looks as long as hints come."""
        looked = 0
        try:
            while looked != lane.hints:
                looked = lane.hints
                if await turns.stop_waits(self._store, conversation):
                    attempt.cancel()
                    return
        except Exception as error:
            log.error("a stop was not looked for", error=f"{type(error).__name__}: {error}")
        finally:
            if lane.attempt is attempt:
                lane.stopping = None

    async def _attempt(self, turn: str, begun: LoadedTurn | None, lane: _Lane) -> None:
        """Runs a turn; what it raises postpones it, and after the third attempt ends it."""
        try:
            await self._runner.run(turn, begun)
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


async def _ended(*tasks: "asyncio.Task[None] | None") -> None:
    """Cancels what still runs, and waits for its end."""
    left = [task for task in tasks if task is not None and not task.done()]
    for task in left:
        task.cancel()
    if left:
        await asyncio.gather(*left, return_exceptions=True)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(min(max(seconds, 0.0), LONGEST_PAUSE)):
            await event.wait()
    except TimeoutError:
        return
