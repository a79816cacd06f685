"""Delivery: the id, the statuses and the price that a sent message gets from WhatsApp."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.messages import Pricing, Status
from app.store import limits
from app.store.conditions import UNSENT
from app.store.database import Connection, Row, exists, insert, update
from app.store.outbox import fail, outgoing

_PROOFS = frozenset({"sent", "delivered", "read", "played", "deleted"})


@dataclass(frozen=True, slots=True)
class StatusEffect:
    """The effect of a status: the person whose sends may go on, and the error if a row failed."""

    person_id: str = ""
    code: int = 0
    error: str = ""


def mark_sent(conn: Connection, outbox_id: str, wamid: str, now: float) -> None:
    """Keep the id that the channel gave a message, and apply the statuses that came before it."""
    row = conn.execute(
        "UPDATE outbox SET state = 'sent', wamid = coalesce(wamid, ?), sent_at = coalesce(sent_at, ?),"
        " sending_at = NULL, due_at = NULL, code = 0, error = '' WHERE id = ? AND state <> 'failed'"
        " RETURNING person_id, message_id",
        (wamid, now, outbox_id),
    ).fetchone()
    if row is None:
        return
    has_none = "wamid IS NULL AND id = ? AND NOT EXISTS (SELECT 1 FROM messages WHERE wamid = ?)"
    update(conn, "messages", has_none, row["message_id"], wamid, wamid=wamid)
    sql = "SELECT wamid, status, errors, pricing FROM statuses WHERE wamid = ? AND person_id IS NULL"
    early = conn.execute(sql, (wamid,)).fetchall()
    whose = {"outbox_id": outbox_id, "person_id": row["person_id"]}
    update(conn, "statuses", "wamid = ? AND person_id IS NULL", wamid, **whose)
    for status in early:
        _apply(conn, outbox_id, row["person_id"], status, now)


def apply_status(conn: Connection, status: Status, now: float) -> StatusEffect | None:
    """Record a status and apply it to its row; return None if it is not new or has no row."""
    sql = "SELECT id, person_id FROM outbox WHERE id = ? OR wamid = ? ORDER BY id <> ? LIMIT 1"
    row = conn.execute(sql, (status.outbox_id, status.id, status.outbox_id)).fetchone()
    if row is None and status.outbox_id:  # its row stood before it was sent: the person is erased
        return None
    outbox_id, person = ("", None) if row is None else row
    price = status.pricing
    told = {
        "wamid": status.id,
        "status": status.status,
        "errors": orjson.dumps(status.errors).decode(),
        "pricing": "" if price is None else orjson.dumps([price.category, price.kind]).decode(),
    }
    whose = {"outbox_id": outbox_id, "person_id": person}
    new = insert(conn, "statuses", or_skip=True, **told, **whose, at=status.at, received_at=now)
    if row is None or not new:
        return None
    if status.status in _PROOFS:
        mark_sent(conn, outbox_id, status.id, now)
    return _apply(conn, outbox_id, row["person_id"], told, now)


def _apply(
    conn: Connection, outbox_id: str, person: str, told: Row | Mapping[str, Any], now: float
) -> StatusEffect:
    """Count what the message of a status costs, and end its row if it does not arrive."""
    if told["pricing"]:
        pricing = Pricing(*orjson.loads(told["pricing"]))
        limits.record_billed(conn, told["wamid"], person, pricing, now)
    if told["status"] != "failed":
        return StatusEffect(person)
    errors = orjson.loads(told["errors"])
    first: dict[str, Any] = errors[0] if errors else {"code": 0, "detail": "", "title": ""}
    code, error = int(first["code"]), first["detail"] or first["title"] or "no reason given"
    fail(conn, outbox_id, code, error, now, after_sent=True)
    return StatusEffect(person, code, error)


def is_echo(conn: Connection, person: str, wamid: str, text: str, now: float) -> bool | None:
    """Return whether a message that the business is said to have sent is ours; None while that is not known.

    One of unknown outcome whose text is the same was sent, and is marked so.
    """
    if exists(conn, "SELECT 1 FROM outbox WHERE wamid = ?", wamid):
        return True
    for row in conn.execute(
        "SELECT * FROM outbox WHERE person_id = ? AND (sending_at IS NOT NULL OR state = 'unknown')"
        f" AND {UNSENT}",
        (person,),
    ).fetchall():
        if row["sending_at"] is not None or row["due_at"] > now:
            return None
        if outgoing(row["payload"]).text == text:
            mark_sent(conn, row["id"], wamid, now)
            return True
    return False
