"""The clock of reminders over a database of its own."""

import asyncio
import time
from sqlite3 import Connection

import pytest

from app.schedule.alarm import Reminders
from app.store.database import Database
from tests.store.rows import Everybody

KNOWN, UNKNOWN = "America/Bogota", "Atlantis/Poseidonis"
HOUR, DAY = 3_600.0, 86_400.0


class Sender:
    """Remembers whom it was to send something."""

    def __init__(self) -> None:
        self.woken: list[str] = []

    def wake(self, person: str) -> None:
        self.woken.append(person)


def _due(conn: Connection, person: str, zone: str) -> None:
    """A reminder of a person at the terminal whose time came long ago."""
    conn.execute("INSERT INTO people (id, realm, created_at) VALUES (?, 'terminal', 0)", (person,))
    conn.execute(
        "INSERT INTO conversations (id, person_id, channel, created_at) VALUES (?, ?, 'terminal', 0)",
        (f"talk of {person}", person),
    )
    conn.execute(
        "INSERT INTO schedules (id, person_id, conversation_id, number, text, rule, start, zone, due_at,"
        " created_at, changed_at) VALUES (?, ?, ?, 1, ?, '', '2026-01-01T09:00:00', ?, 1e9, 0, 0)",
        (f"rem_{person}", person, f"talk of {person}", f"milk for {person}", zone),
    )


def _reminders(store: Database, sender: Sender | None = None) -> Reminders:
    found = sender or Sender()
    return Reminders(
        store, ("terminal",), template=None, access=Everybody(), sender=found, look_again=asyncio.Event()
    )


async def test_one_that_cannot_be_told_here_waits_and_stops_no_other(store: Database) -> None:
    await store.tx(lambda conn: _due(conn, "p1", UNKNOWN))
    await store.tx(lambda conn: _due(conn, "p2", KNOWN))
    sender = Sender()
    reminders = _reminders(store, sender)
    await reminders.tick()
    assert sender.woken == ["p2"]
    told = await store.all("SELECT person_id FROM outbox")
    assert [row["person_id"] for row in told] == ["p2"]
    waits = await store.all("SELECT id FROM schedules WHERE active = 1 AND held_at IS NOT NULL")
    assert [row["id"] for row in waits] == ["rem_p1"]


class Clock:
    """The wall clock as the test sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000.0
        monkeypatch.setattr(time, "time", lambda: self.now)


async def _every_two_hours(store: Database, clock: Clock) -> Reminders:
    """One that was told for the first time an hour ago."""
    await store.tx(lambda conn: _due(conn, "p1", KNOWN))
    start = "2027-01-15T02:00:00"  # by the clock of its zone, an hour ago
    first = clock.now - HOUR
    await store.tx(
        lambda conn: conn.execute(
            "UPDATE schedules SET rule = 'EVERY:7200', start = ?, due_at = ?", (start, first)
        )
    )
    reminders = _reminders(store)
    await reminders.tick()
    return reminders


async def _next(store: Database, clock: Clock) -> float:
    row = await store.one("SELECT due_at FROM schedules")
    assert row is not None
    return float(row["due_at"]) - clock.now


@pytest.mark.parametrize("ahead", [20 * HOUR, 400 * DAY])
async def test_after_a_clock_that_went_ahead_and_came_back_it_comes_at_its_own_times(
    store: Database, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    clock = Clock(monkeypatch)
    reminders = await _every_two_hours(store, clock)
    assert await _next(store, clock) == HOUR
    clock.now += ahead
    await reminders.tick()
    clock.now -= ahead
    await reminders.tick()
    assert await _next(store, clock) == 3 * HOUR  # that in an hour was told already, too early
    clock.now += 3 * HOUR
    await reminders.tick()
    told = await store.all("SELECT source FROM outbox")
    assert (len(told), await _next(store, clock)) == (3, 2 * HOUR)


async def test_a_machine_that_starts_with_an_old_clock_tells_nothing_again(
    store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    reminders = await _every_two_hours(store, clock)
    clock.now -= 400 * DAY
    await reminders.tick()
    clock.now += 400 * DAY
    await reminders.tick()
    assert (len(await store.all("SELECT 1 FROM outbox")), await _next(store, clock)) == (1, HOUR)
