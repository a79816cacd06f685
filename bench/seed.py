"""Conversations of the past, written straight into a database that no server has open."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from app.phones import canonical
from app.store.sqlite import SQLite
from bench.client import SAID, phone
from bench.standin import DONE

DAY = 86_400.0
BATCH = 10_000
"""Exchanges written before the next commit."""


def seed(database: Path, people: range, exchanges: int) -> None:
    """Gives each of these people so many answered messages, the newest an hour old."""
    engine = SQLite(database)
    engine.prepare()
    engine.unlock()
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-500000")  # KiB: indexes are filled in no order
        connection.execute("BEGIN")
        for n in people:
            _person(connection, n)
        for done, (n, exchange) in enumerate(_past(people, exchanges), 1):
            _exchange(connection, n, exchange, exchanges)
            if done % BATCH == 0:
                connection.execute("COMMIT")
                connection.execute("BEGIN")
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _past(people: range, exchanges: int) -> Iterator[tuple[int, int]]:
    """Every exchange of everybody, in the order of time."""
    return ((n, exchange) for exchange in range(exchanges) for n in people)


def _person(connection: sqlite3.Connection, n: int) -> None:
    person, born = f"person{n}", time.time() - 300 * DAY
    connection.execute(
        "INSERT INTO people (id, realm, name, access, language, created_at)"
        " VALUES (?, 'whatsapp', 'Ana', 'allowed', 'en', ?)",
        (person, born),
    )
    connection.execute(
        "INSERT INTO aliases VALUES ('whatsapp', 'phone', ?, ?, ?, ?)",
        (canonical(phone(n)), canonical(phone(n)), person, born),
    )
    connection.execute(
        "INSERT INTO conversations (id, person_id, channel, created_at) VALUES (?, ?, 'whatsapp', ?)",
        (f"conversation{n}", person, born),
    )


def _exchange(connection: sqlite3.Connection, n: int, exchange: int, exchanges: int) -> None:
    """A message, the turn that answered it and the answer, all of them done."""
    person, conversation, turn = f"person{n}", f"conversation{n}", f"turn{n}.{exchange}"
    at = time.time() - 3600 - (exchanges - exchange) * 200 * DAY / exchanges
    connection.execute(
        "INSERT INTO turns (id, person_id, conversation_id, state, outcome, attempts, reply, traced,"
        " created_at, done_at) VALUES (?, ?, ?, 'done', 'answered', 1, ?, 0, ?, ?)",
        (turn, person, conversation, DONE, at, at),
    )
    said, answered = (
        connection.execute(
            "INSERT INTO messages (person_id, conversation_id, direction, wamid, kind, text, turn_id, at)"
            " VALUES (?, ?, ?, ?, 'text', ?, ?, ?)",
            (person, conversation, direction, f"wamid.{direction}.{turn}", text, turn, at),
        ).lastrowid
        for direction, text in (("in", SAID), ("out", DONE))
    )
    connection.execute(
        "INSERT INTO inbox (message_id, person_id, conversation_id, kind, received_at, due_at, turn_id,"
        " done_at) VALUES (?, ?, ?, 'message', ?, ?, ?, ?)",
        (said, person, conversation, at, at, turn, at),
    )
    connection.execute(
        "INSERT INTO outbox (id, source, part, person_id, conversation_id, message_id, payload, state,"
        " attempts, wamid, created_at, sent_at) VALUES (?, ?, 0, ?, ?, ?, '{}', 'sent', 1, ?, ?, ?)",
        (f"out{turn}", f"turn:{turn}", person, conversation, answered, f"wamid.out.{turn}", at, at),
    )
