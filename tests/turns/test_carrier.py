"""Lanes: what brings a turn to its runner, and again when it failed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from sqlite3 import Connection
from typing import cast

import pytest

from app.people import Conversation
from app.store import opening, turns
from app.store.database import Database
from app.store.outbox import Draft
from app.turns.carrier import LocalCarrier
from app.turns.turn import TurnRunner
from tests.store.rows import T, conversation, inbound, take


class FailsFirst:
    """Begins each turn; fails the first time and ends it the second."""

    def __init__(self, store: Database, where: Conversation) -> None:
        self._store = store
        self._where = where
        self.ended = asyncio.Event()
        self.runs = 0

    async def run(self, turn: str) -> None:
        self.runs += 1
        await self._store.tx(lambda conn: opening.begin(conn, turn, T, 40, "2027-01-15"))
        if self.runs == 1:
            raise RuntimeError("the first time")
        await self._store.tx(lambda conn: turns.end(conn, turn, self._where, "answered", Draft("", ()), T))
        self.ended.set()

    async def close(self) -> None:
        return None


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(tmp_path / "recado.db")
    await database.open()
    yield database
    await database.close()


async def test_a_turn_that_failed_is_run_again_without_another_hint(store: Database) -> None:
    def arrive(conn: Connection) -> Conversation:
        where = conversation(conn)
        take(conn, inbound("w1"))
        return where

    async def ready() -> None:
        return None

    where = await store.tx(arrive)
    runner = FailsFirst(store, where)
    carrier = LocalCarrier(store, cast(TurnRunner, runner), quiet=0, longest=0, ready=ready)
    carrier.wake(where.id)
    async with asyncio.timeout(10):
        await runner.ended.wait()
    await carrier.close(5)
    assert runner.runs == 2
