"""Delivery: the id, the statuses and the price that a sent message gets from WhatsApp, and sending it again.

A text that WhatsApp took and could not deliver for a reason that passes is sent once more as a new row,
unless anything was queued for the person after it. Questions and reminders never are: a reminder fires again
when the person writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.messages import Pricing, Status
from app.store import limits
from app.store.conditions import UNSENT
from app.store.database import Connection, Row, exists, insert, new_id, update
from app.store.outbox import fail, outgoing, state_of_new

PASSING = frozenset({1, 2, 4, 80007, 130429, 131000, 131016, 131056, 131057})  # Meta's codes for "try again"
AGAIN_AFTER_SECONDS = 6.0  # the limit of a pair of numbers
AGAIN_SECONDS = 600.0  # older texts are not sent again
_AGAIN = "again:"
_NEVER_AGAIN = ("question", "reminder")
_PROOFS = frozenset({"sent", "delivered", "read", "played", "deleted"})


@dataclass(frozen=True, slots=True)
class StatusEffect:
    """The effect of a status: the person whose sends may go on, and the error if a row failed."""

    person_id: str = ""
    code: int = 0
    error: str = ""
    again: bool = False  # it failed for a reason that passes, and is sent again


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
    again = code in PASSING and _queue_again(conn, outbox_id, told["wamid"], now)
    fail(conn, outbox_id, code, error, now, after_sent=True)
    return StatusEffect(person, code, error, again)


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


def _queue_again(conn: Connection, outbox_id: str, wamid: str, now: float) -> bool:
    """Queue a text that is about to fail, and its later parts, once more; return whether that was done.

    One of unknown outcome that was sent twice is not: the other of the two may arrive.
    """
    row = conn.execute("SELECT * FROM outbox WHERE id = ? AND state <> 'failed'", (outbox_id,)).fetchone()
    if row is None or row["media"] or row["origin"] in _NEVER_AGAIN or row["source"].startswith(_AGAIN):
        return False
    if row["resends"] or row["wamid"] not in (None, wamid) or now - (row["sent_at"] or now) > AGAIN_SECONDS:
        return False
    if not state_of_new(conn, row["conversation_id"], row["origin"], now):
        return False
    arrived = "SELECT 1 FROM statuses WHERE outbox_id = ? AND status IN ('delivered', 'read', 'played')"
    if exists(conn, arrived, outbox_id):  # statuses come in any order
        return False
    sql = "SELECT * FROM outbox WHERE person_id = ? AND seq > ? AND state <> 'failed' ORDER BY seq"
    later = conn.execute(sql, (row["person_id"], row["seq"])).fetchall()
    if any(one["source"] != row["source"] or one["state"] != "ready" or one["sending_at"] for one in later):
        return False
    conn.executemany(
        "INSERT INTO outbox (id, source, origin, part, person_id, conversation_id, message_id, payload,"
        " discloses, state, due_at, created_at)"
        " SELECT ?, ?, origin, part, person_id, conversation_id, message_id, payload, discloses, 'ready',"
        " ?, ? FROM outbox WHERE id = ?",
        [
            (new_id("out"), _AGAIN + row["source"], now + AGAIN_AFTER_SECONDS, now, one["id"])
            for one in (row, *later)
        ],
    )
    return True
