"""Events for the operator's own systems: a row for each address, in the transaction of what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import orjson

from app.messages import JSON
from app.store.database import Connection, delete, insert, new_id
from app.store.people import by_id

EventName = Literal["message.received", "message.replied", "conversation.handed_over", "limit.reached"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event on its way to an address; `id` is the same at every attempt."""

    seq: int
    id: str
    url: str
    body: str
    attempts: int


def set_addresses(conn: Connection, addresses: Mapping[str, Sequence[str]]) -> None:
    """Keep the addresses with the names of the events that each wants; what waits for others goes."""
    conn.execute("DELETE FROM webhook_addresses")
    for url, events in addresses.items():
        insert(conn, "webhook_addresses", url=url, events=f" {' '.join(events)} ")
    conn.execute("DELETE FROM webhook_deliveries WHERE url NOT IN (SELECT url FROM webhook_addresses)")


def emit(conn: Connection, event: EventName, person: str | None, data: dict[str, JSON], now: float) -> None:
    """Queue an event for every address that wants it."""
    sql = "SELECT url FROM webhook_addresses WHERE instr(events, ?) > 0"
    found = conn.execute(sql, (f" {event} ",)).fetchall()
    if not found:
        return
    who: dict[str, JSON] = {} if person is None else {"person": person, "names": by_id(conn, person).names}
    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    body = orjson.dumps({"type": event, "timestamp": at, "data": {**who, **data}}).decode()
    for row in found:
        insert(
            conn,
            "webhook_deliveries",
            id=new_id("msg"),
            url=row["url"],
            body=body,
            person_id=person,
            due_at=now,
        )


def due(conn: Connection, url: str, now: float, most: int) -> list[Delivery]:
    """Return what an address is to be sent now, what was due first before the rest."""
    is_due = "url = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?"
    sql = f"SELECT seq, id, url, body, attempts FROM webhook_deliveries WHERE {is_due}"
    rows = conn.execute(sql, (url, now, most))
    return [Delivery(*row) for row in rows.fetchall()]


def delivered(conn: Connection, delivery: Delivery) -> None:
    """Forget a delivery that was taken, or given up."""
    delete(conn, "webhook_deliveries", "seq = ?", delivery.seq)


def postpone(conn: Connection, delivery: Delivery, due_at: float) -> None:
    """Count an attempt that failed; the next is at `due_at`."""
    sql = "UPDATE webhook_deliveries SET attempts = attempts + 1, due_at = ? WHERE seq = ?"
    conn.execute(sql, (due_at, delivery.seq))
