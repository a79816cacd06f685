"""Lanes: what brings a turn to its runner, and again when it failed."""

import asyncio
from sqlite3 import Connection
from typing import cast

from app.people import Conversation
from app.store import opening, turns
from app.store.database import Database
from app.store.opening import Opened
from app.store.outbox import Draft
from app.turns.carrier import LocalCarrier
from app.turns.hearing import Hearing
from app.turns.turn import TurnRunner
from tests.store.rows import BETO, T, conversation, inbound, take


class FailsFirst:
    """Begins each turn; fails the first time and ends it the second."""

    def __init__(self, store: Database, where: Conversation) -> None:
        self._store = store
        self._where = where
        self.ended = asyncio.Event()
        self.runs = 0

    def begin(self, conn: Connection, turn: str, now: float) -> Opened:
        return opening.begin(conn, turn, now, 40, "2027-01-15")

    async def run(self, turn: str, begun: Opened | None) -> None:
        self.runs += 1
        assert begun is not None
        if self.runs == 1:
            raise RuntimeError("the first time")
        await self._store.tx(lambda conn: turns.end(conn, turn, self._where, "answered", Draft("", ()), T))
        self.ended.set()

    async def close(self) -> None:
        return None


def local_carrier(store: Database, runner: object, at_once: int = 100) -> LocalCarrier:
    async def ready() -> None:
        return None

    return LocalCarrier(
        store,
        cast(TurnRunner, runner),
        quiet=0,
        longest=0,
        at_once=at_once,
        ready=ready,
        hearing=Hearing({}),
        on_notice=lambda person: None,
    )


async def test_a_turn_that_failed_is_run_again_without_another_hint(store: Database) -> None:
    def arrive(conn: Connection) -> Conversation:
        where = conversation(conn)
        take(conn, inbound("w1"))
        return where

    where = await store.tx(arrive)
    runner = FailsFirst(store, where)
    carrier = local_carrier(store, runner)
    carrier.wake(where.id)
    async with asyncio.timeout(10):
        await runner.ended.wait()
    await carrier.close(5)
    assert runner.runs == 2


class Waits:
    """Begins each turn and stays at it until it is cancelled or `go` is set."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.go = asyncio.Event()

    def begin(self, conn: Connection, turn: str, now: float) -> Opened:
        return opening.begin(conn, turn, now, 40, "2027-01-15")

    async def run(self, turn: str, begun: Opened | None) -> None:
        opened = begun or await self._store.tx(lambda conn: self.begin(conn, turn, T))
        self.begun.put_nowait(opened.members[-1].text)
        if not opened.members[-1].command:
            await self.go.wait()
        where = opened.conversation
        await self._store.tx(lambda conn: turns.end(conn, turn, where, "answered", Draft("", ()), T))

    async def close(self) -> None:
        return None


async def test_a_stop_that_came_while_the_turn_waited_for_its_place_ends_it(store: Database) -> None:
    runner = Waits(store)
    carrier = local_carrier(store, runner, at_once=1)
    ana = await store.tx(conversation)
    beto = await store.tx(lambda conn: conversation(conn, BETO))
    await store.tx(lambda conn: take(conn, inbound("w1", "of Ana")))
    carrier.wake(ana.id)
    async with asyncio.timeout(10):
        assert await runner.begun.get() == "of Ana"
        await store.tx(lambda conn: take(conn, inbound("w2", "of Beto", sender=BETO)))
        carrier.wake(beto.id)
        while not await store.all("SELECT 1 FROM turns WHERE conversation_id = ?", beto.id):
            await asyncio.sleep(0.01)
        await store.tx(lambda conn: take(conn, inbound("w3", "/stop", sender=BETO), kind="stop"))
        carrier.wake(beto.id)
        runner.go.set()
        runner.go.clear()
        begun = await runner.begun.get()
        if begun == "of Beto":  # or it was ended before it came that far
            begun = await runner.begun.get()
    assert begun == "/stop"
    await carrier.close(5)
