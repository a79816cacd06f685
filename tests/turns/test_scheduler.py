"""Lanes bring turns to their runner, and again when they failed."""

import asyncio
import tempfile
import threading
import time
from pathlib import Path
from sqlite3 import Connection
from typing import cast

from app.messages import Sender
from app.store import turn_state, turns
from app.store.database import Database
from app.store.media import MediaFolder
from app.store.outbox import Draft
from app.tools.files import Files
from app.turns.attachments import AttachmentReader
from app.turns.scheduler import TurnScheduler
from app.turns.turn import TurnRunner
from tests.databases import of_sqlite
from tests.store.rows import BETO, T, conversation, inbound, no_limits, take
from tests.turns.standins import Catalog, services_of


def scheduler_of(store: Database, runner: object, at_once: int = 100, quiet: float = 0) -> TurnScheduler:
    burst = {"burst_quiet_seconds": quiet, "burst_max_seconds": quiet}
    services = services_of(store, Catalog(), **burst, concurrent_turns=at_once)
    folder = Path(tempfile.mkdtemp())
    reader = AttachmentReader(services, no_limits(), MediaFolder(folder), Files(folder), None)
    return TurnScheduler(services, cast(TurnRunner, runner), reader, no_limits())


class Waits:
    """Begins each turn and stays at it until it is cancelled or `go` is set."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.go = asyncio.Event()
        self.closed = False

    async def run(self, turn: str) -> None:
        state = await self._store.tx(lambda conn: turn_state.load_turn(conn, turn, 40, "2027-01-15"))
        self.begun.put_nowait(state.members[-1].text)
        if not state.members[-1].command:
            await self.go.wait()
        where = state.conversation
        await self._store.tx(lambda conn: turns.end(conn, turn, where, "answered", Draft("", ()), T))

    async def close(self) -> None:
        self.closed = True


async def test_a_stop_that_came_while_the_turn_waited_for_its_place_ends_it(store: Database) -> None:
    runner = Waits(store)
    scheduler = scheduler_of(store, runner, at_once=1)
    ana = await store.tx(conversation)
    beto = await store.tx(lambda conn: conversation(conn, BETO))
    await store.tx(lambda conn: take(conn, inbound("w1", "of Ana")))
    scheduler.wake(ana.id)
    async with asyncio.timeout(10):
        assert await runner.begun.get() == "of Ana"
        await store.tx(lambda conn: take(conn, inbound("w2", "of Beto", sender=BETO)))
        scheduler.wake(beto.id)
        while not await store.all("SELECT 1 FROM turns WHERE conversation_id = ?", beto.id):
            await asyncio.sleep(0.01)
        await store.tx(lambda conn: take(conn, inbound("w3", "/stop", sender=BETO), kind="stop"))
        scheduler.wake(beto.id)
        runner.go.set()
        runner.go.clear()
        begun = await runner.begun.get()
        if begun == "of Beto":  # or it was ended before it came that far
            begun = await runner.begun.get()
    assert begun == "/stop"
    await scheduler.close(5)


async def test_a_stop_of_the_server_while_a_turn_is_claimed_counts_no_attempt(store: Database) -> None:
    scheduler = scheduler_of(store, Waits(store))
    where = await store.tx(conversation)
    await store.tx(lambda conn: take(conn, inbound("w1")))
    held = threading.Event()
    busy = store.tx(lambda conn: held.wait(10))
    scheduler.wake(where.id)
    await asyncio.sleep(0.05)  # until the lane waits for its claim
    closing = asyncio.create_task(scheduler.close(0.5))
    await asyncio.sleep(0.05)
    held.set()
    await asyncio.gather(busy, closing)
    row = await store.one("SELECT state, attempts FROM turns")
    assert row is not None
    assert (row["state"], row["attempts"]) == ("queued", 0)


async def test_a_turn_that_waits_for_its_place_has_not_begun(store: Database) -> None:
    runner = Waits(store)
    scheduler = scheduler_of(store, runner, at_once=2)

    def arrive(conn: Connection) -> list[str]:
        people = [Sender(phone=f"5215550000{n:02}", user_id=f"MX.{n}", name="") for n in range(12)]
        for number, sender in enumerate(people):
            take(conn, inbound(f"w{number}", sender=sender))
        return [conversation(conn, sender).id for sender in people]

    for where in await store.tx(arrive):
        scheduler.wake(where)
    async with asyncio.timeout(10):
        for _ in range(2):
            await runner.begun.get()
        while len(await store.all("SELECT 1 FROM turns")) < 12:
            await asyncio.sleep(0.01)
    rows = await store.all("SELECT state, attempts, count(*) AS n FROM turns GROUP BY 1, 2 ORDER BY 1")
    assert [tuple(row) for row in rows] == [("queued", 0, 10), ("running", 1, 2)]
    assert scheduler.running == 2
    await scheduler.close(0)
    rows = await store.all("SELECT state, attempts, count(*) AS n FROM turns GROUP BY 1, 2 ORDER BY 1")
    assert [tuple(row) for row in rows] == [("queued", 0, 12)]
    assert runner.begun.empty()


@of_sqlite
async def test_a_store_that_is_gone_keeps_no_stop_of_the_server(store: Database) -> None:
    """A lane waits out its burst; what it might have to give back cannot be written."""
    runner = Waits(store)
    scheduler = scheduler_of(store, runner, quiet=60.0)
    where = await store.tx(conversation)
    await store.tx(lambda conn: take(conn, inbound("w1"), now=time.time()))
    scheduler.wake(where.id)
    await asyncio.sleep(0.05)  # until it knows that the burst is not complete
    store.location.rename(store.location.with_suffix(".gone"))
    await asyncio.wait_for(scheduler.close(0.1), 10)
    assert runner.closed
