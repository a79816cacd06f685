"""The running summaries of conversations, and which of them have something to take in."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from app.people import Conversation
from app.store.database import Connection, delete, read_row, update
from app.store.turn_state import Exchange, Parts, exchanges_since, summary_of

RETRY_SECONDS = 600.0
MOST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A summary and the exchanges since it, the oldest first; `since` is where the window begins."""

    conversation: str
    person: str
    parts: Parts
    zone: str
    since: float
    exchanges: Sequence[Exchange]


def ask(conn: Connection, conversation: Conversation, zone: str, now: float) -> None:
    """Note that a conversation outgrows its window, unless that is known."""
    conn.execute(
        "INSERT INTO summaries (conversation_id, person_id, due_at, zone) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (conversation_id) DO UPDATE SET due_at = excluded.due_at, zone = excluded.zone,"
        " attempts = 0 WHERE summaries.due_at IS NULL",
        (conversation.id, conversation.person_id, now, zone),
    )


def recover(conn: Connection, now: float) -> None:
    """Take up at once what a crash cut off."""
    conn.execute("UPDATE summaries SET due_at = ? WHERE due_at IS NOT NULL", (now,))


def begin(conn: Connection, now: float) -> Unfolded | None:
    """Take the next summary that is due, for one attempt; None if none is."""
    row = conn.execute(
        "SELECT s.conversation_id AS conversation, s.person_id AS person, s.parts, s.zone, s.attempts,"
        " c.history_from AS since FROM summaries s JOIN conversations c ON c.id = s.conversation_id"
        " WHERE s.due_at <= ? ORDER BY s.due_at LIMIT 1",
        (now,),
    ).fetchone()
    if row is None:
        return None
    is_last = row["attempts"] + 1 >= MOST_ATTEMPTS
    tried = {"attempts": row["attempts"] + 1, "due_at": None if is_last else now + RETRY_SECONDS}
    update(conn, "summaries", "conversation_id = ?", row["conversation"], **tried)
    exchanges = exchanges_since(conn, row["conversation"], row["since"])
    return read_row(Unfolded, row, parts=orjson.loads(row["parts"]), exchanges=exchanges)


def fold(conn: Connection, taken: Unfolded, parts: Parts, since: float) -> bool:
    """Keep the new summary and move the window, unless either changed since it was taken."""
    id, unchanged = taken.conversation, "id = ? AND history_from = ?"
    if not update(conn, "conversations", unchanged, id, taken.since, history_from=since):
        return False
    folded = {"parts": orjson.dumps(parts).decode(), "due_at": None, "attempts": 0}
    return bool(update(conn, "summaries", "conversation_id = ?", id, **folded))


def drop_line(conn: Connection, conversation: str, number: int) -> str | None:
    """Take the line of a number, counted through all parts, out of a summary; return it, None if none is."""
    parts = summary_of(conn, conversation)
    lines = [(name, line) for name, listed in parts.items() for line in listed]
    if not 0 < number <= len(lines):
        return None
    gone = lines.pop(number - 1)
    left = {name: [line for part, line in lines if part == name] for name in parts}
    update(conn, "summaries", "conversation_id = ?", conversation, parts=orjson.dumps(left).decode())
    return gone[1]


def forget(conn: Connection, conversation: str) -> None:
    """Delete the summary of a conversation."""
    delete(conn, "summaries", "conversation_id = ?", conversation)
