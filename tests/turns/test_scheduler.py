"""Lanes at the end of the server."""

import asyncio
import threading
import time
from typing import cast

from app.store.database import Database
from app.turns.attachments import AttachmentReader
from app.turns.scheduler import TurnScheduler
from app.turns.turn import TurnRunner
from tests.databases import of_sqlite
from tests.store.rows import conversation, inbound, take
from tests.turns.standins import Catalog, services_of


def scheduler_of(store: Database, runner: object, at_once: int = 100, quiet: float = 0) -> TurnScheduler:
    burst = {"burst_quiet_seconds": quiet, "burst_max_seconds": quiet}
    services = services_of(store, Catalog(), **burst, concurrent_turns=at_once)
    return TurnScheduler(services, cast(TurnRunner, runner), AttachmentReader(services, None))


class Waits:
    """Begins each turn and stays at it until it is cancelled."""

    closed = False

    async def run(self, turn: str) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


async def test_a_stop_of_the_server_while_a_turn_is_claimed_counts_no_attempt(store: Database) -> None:
    scheduler = scheduler_of(store, Waits())
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


@of_sqlite
async def test_a_store_that_is_gone_keeps_no_stop_of_the_server(store: Database) -> None:
    """A lane waits out its burst; what it might have to give back cannot be written."""
    runner = Waits()
    scheduler = scheduler_of(store, runner, quiet=60.0)
    where = await store.tx(conversation)
    await store.tx(lambda conn: take(conn, inbound("w1"), now=time.time()))
    scheduler.wake(where.id)
    await asyncio.sleep(0.05)  # until it knows that the burst is not complete
    store.location.rename(store.location.with_suffix(".gone"))
    await asyncio.wait_for(scheduler.close(0.1), 10)
    assert runner.closed
