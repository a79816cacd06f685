"""The clock of reminders over a database of its own."""

from sqlite3 import Connection

from app.schedule.reminders import Reminders
from app.store.database import Database

KNOWN, UNKNOWN = "America/Bogota", "Atlantis/Poseidonis"


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


async def test_one_that_cannot_be_told_here_waits_and_stops_no_other(store: Database) -> None:
    await store.tx(lambda conn: _due(conn, "p1", UNKNOWN))
    await store.tx(lambda conn: _due(conn, "p2", KNOWN))
    woken: list[str] = []
    reminders = Reminders(store, ("terminal",), template=None, wake_person=woken.append, alarms=False)
    await reminders.tick()
    assert woken == ["p2"]
    told = await store.all("SELECT person_id FROM outbox")
    assert [row["person_id"] for row in told] == ["p2"]
    waits = await store.all("SELECT id FROM schedules WHERE active = 1 AND held_at IS NOT NULL")
    assert [row["id"] for row in waits] == ["rem_p1"]
