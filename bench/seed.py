"""Conversations of the past, written straight into a database that no server has open."""

import time
from contextlib import closing
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from app.phones import canonical
from app.store.database import Location, engine_of, placeholders, scalar
from bench.client import SAID, phone
from bench.standin import DONE

if TYPE_CHECKING:
    from app.store.postgres import Postgres

DAY = 86_400.0
BATCH = 10_000
"""Exchanges written before the next commit."""

Rows = dict[str, list[dict[str, Any]]]
"""Rows by their table; those of a table have the same columns."""


def seed(database: Location, people: range, exchanges: int) -> None:
    """Gives each of these people so many answered messages, the newest an hour old."""
    engine = engine_of(database)
    engine.prepare()
    with closing(engine.connect()) as connection:
        if isinstance(database, Path):
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("PRAGMA cache_size=-500000")  # KiB: indexes are filled in no order
        else:
            connection.execute("SET session_replication_role = replica")  # the rows need no checks
            connection.execute("SET synchronous_commit = off")
        number = last_message(connection)
        parts = [_person(n) for n in people]
        past = product(range(exchanges), people)  # in the order of time
        while parts:
            load(connection, parts)
            batch = enumerate(islice(past, BATCH))
            parts = [_exchange(number + 2 * at, n, exchange, exchanges) for at, (exchange, n) in batch]
            number += 2 * len(parts)
        if isinstance(database, Path):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            cast("Postgres", engine).number_after(connection, "messages", "id")
            connection.execute("VACUUM ANALYZE")
    engine.unlock()


def last_message(connection: Any) -> int:
    """The highest number of a message, 0 where there is none."""
    return int(scalar(connection, "SELECT coalesce(max(id), 0) FROM messages"))


def load(connection: Any, parts: list[Rows]) -> None:
    """Writes the rows of all parts in one transaction, the tables in the order of the first."""
    connection.execute("BEGIN")
    for table in dict.fromkeys(table for part in parts for table in part):
        rows = [row for part in parts for row in part.get(table, ())]
        row = f"INSERT INTO {table} ({', '.join(rows[0])}) VALUES ({placeholders(rows[0])})"
        connection.executemany(row, [tuple(row.values()) for row in rows])
    connection.execute("COMMIT")


def _person(n: int) -> Rows:
    person, born, number = f"person{n}", time.time() - 300 * DAY, canonical(phone(n))
    of_person = {"person_id": person, "created_at": born}
    who = {"id": person, "realm": "whatsapp", "name": "Ana", "access": "allowed", "language": "en"}
    alias = {"realm": "whatsapp", "kind": "phone", "value": number, "address": number}
    return {
        "people": [{**who, "created_at": born}],
        "aliases": [{**alias, **of_person}],
        "conversations": [{"id": f"conversation{n}", "channel": "whatsapp", **of_person}],
    }


def _exchange(number: int, n: int, exchange: int, exchanges: int) -> Rows:
    """A message, the turn that answered it and the answer; `number` is that of the last message."""
    turn, where = f"turn{n}.{exchange}", {"person_id": f"person{n}", "conversation_id": f"conversation{n}"}
    at = time.time() - 3600 - (exchanges - exchange) * 200 * DAY / exchanges
    ended = {"state": "done", "outcome": "answered", "attempts": 1, "reply": DONE, "traced": 0}
    sent = {"payload": "{}", "state": "sent", "attempts": 1, "wamid": f"wamid.out.{turn}"}
    said, answered = (
        {"id": id, **where, "direction": direction, "wamid": f"wamid.{direction}.{turn}", "kind": "text"}
        | {"text": text, "turn_id": turn, "at": at}
        for id, direction, text in ((number + 1, "in", SAID), (number + 2, "out", DONE))
    )
    return {
        "turns": [{"id": turn, **where, **ended, "created_at": at, "done_at": at}],
        "messages": [said, answered],
        "inbox": [
            {"message_id": number + 1, **where, "kind": "message", "received_at": at, "due_at": at}
            | {"turn_id": turn, "done_at": at}
        ],
        "outbox": [
            {"id": f"out{turn}", "source": f"turn:{turn}", "part": 0, **where, "message_id": number + 2}
            | {**sent, "created_at": at, "sent_at": at}
        ],
    }
