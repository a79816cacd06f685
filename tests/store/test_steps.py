"""What a turn costs the database does not grow with what is stored: counted in steps of SQLite's machine."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from app.store import inbox, outbox, turns
from app.store.migrations import migrate
from tests.store.rows import T, begun, claim, conversation, draft, inbound, take

PAST = 3_000


@pytest.fixture
def conn(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "recado.db", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    return connection


def steps(conn: sqlite3.Connection, work: Callable[[], object]) -> int:
    """How many steps the virtual machine takes for some work."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    conn.set_progress_handler(count, 1)
    work()
    conn.set_progress_handler(None, 0)
    return taken


def a_turn(conn: sqlite3.Connection, name: str, now: float) -> None:
    """From the message to the message sent, then the looks that find nothing more."""
    where = conversation(conn, now=now)
    take(conn, inbound(f"wamid.{name}", name), now=now)
    begun(conn, where, name, now, history=4)
    turns.end(conn, name, where, "answered", draft(f"answer to {name}"), now)
    parcel = outbox.take(conn, where.person_id, now).row
    assert parcel is not None
    outbox.mark_sent(conn, parcel.id, f"wamid.of.{name}", now)
    assert claim(conn, where, "none", now) is None
    assert not outbox.has_open(conn, where.person_id)
    outbox.release_held(conn, now)
    inbox.waiting(conn, ["whatsapp"], now)
    outbox.people_waiting(conn, ["whatsapp"], now)
    turns.recover(conn)


def test_a_turn_takes_as_many_steps_after_thousands_of_others(conn: sqlite3.Connection) -> None:
    for n in range(10):
        a_turn(conn, f"early{n}", T + n)
    few = steps(conn, lambda: a_turn(conn, "soon", T + 20))
    conn.execute("BEGIN")
    for n in range(PAST):
        a_turn(conn, f"past{n}", T + 100 + n)
    conn.execute("COMMIT")
    many = steps(conn, lambda: a_turn(conn, "late", T + 100 + PAST))
    assert many < 1.2 * few
