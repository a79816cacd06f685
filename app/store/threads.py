"""Conversations as the console shows them: a list, and the thread of one."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from app.store import outbox, people
from app.store.conditions import SILENT
from app.store.database import Connection, Row, placeholders, scalar
from app.text import fold

MOST_CONVERSATIONS = 50
MOST_MESSAGES = 200
ASKS_SECONDS = 7 * 86_400.0  # for which one who was not answered is shown as asking
UNKNOWN_SECONDS = 14 * 86_400.0
FAILED_SECONDS = 7 * 86_400.0
_BETWEEN_DIGITS = str.maketrans("", "", "+ -()")
_MAY_DIFFER = re.compile(r"[^b-df-hj-mp-tv-xz0-9 ]")  # letters that accents stand on, and what LIKE reads

Show = Literal["", "waiting", "failed", "guests"]


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """A conversation in the list; `state` is "human", "asked" (for a person) or ""."""

    id: str
    name: str
    who: str
    text: str
    at: float
    state: str


def newest(
    conn: Connection, words: str, now: float, show: Show = "", known: Collection[str] = ()
) -> list[ThreadLine]:
    """Return conversations whose person or texts hold `words`, those that ask for a person first."""
    where: list[str] = []
    values: list[object] = [now, now - ASKS_SECONDS]
    if words:
        sought = fold(words)
        is_like = f"%{_MAY_DIFFER.sub('_', sought)}%"  # cheap; what it finds too much, the next one drops
        where.append(
            "(instr(folded(p.name), ?) > 0"
            " OR p.id IN (SELECT person_id FROM aliases WHERE instr(folded(value), ?) > 0)"
            " OR c.id IN (SELECT conversation_id FROM messages"
            " WHERE lower(text) LIKE ? AND (instr(lower(text), ?) > 0 OR instr(folded(text), ?) > 0)))"
        )
        values += [sought, sought.translate(_BETWEEN_DIGITS), is_like, sought, sought]
    if show == "waiting":
        where.append("h.state IS NOT NULL")
    elif show == "failed":
        where.append(
            "c.id IN (SELECT conversation_id FROM outbox WHERE state = 'failed' AND created_at > ?"
            " UNION SELECT conversation_id FROM turns WHERE outcome = 'failed' AND created_at > ?)"
        )
        values += [now - FAILED_SECONDS] * 2
    elif show == "guests":
        where.append(
            "p.access = 'listed' AND p.role <> 'owner' AND p.realm = 'whatsapp' AND p.id NOT IN"
            f" (SELECT person_id FROM aliases WHERE value IN ({placeholders(tuple(known))}))"
        )
        values += known
    rows = conn.execute(
        "SELECT c.id, c.person_id, m.text, m.kind, m.at, coalesce(h.state, '') AS state"
        " FROM conversations c JOIN people p ON p.id = c.person_id"
        " JOIN messages m ON m.id = (SELECT max(id) FROM messages WHERE conversation_id = c.id)"
        " LEFT JOIN handovers h ON h.conversation_id = c.id"
        " AND ((h.state = 'human' AND h.until > ?) OR (h.state = 'asked' AND h.since > ?))"
        f" WHERE {' AND '.join(where) or 'TRUE'}"
        " ORDER BY coalesce(h.state, '') = 'asked' DESC, m.id DESC LIMIT ?",
        (*values, MOST_CONVERSATIONS),
    ).fetchall()
    return [
        ThreadLine(id, *people.shown_as(conn, person), text or f"[{kind}]", at, state)
        for id, person, text, kind, at, state in rows
    ]


def waiting(conn: Connection, now: float) -> int:
    """Return how many conversations ask for a person, or are answered by one."""
    either = f"conversation_id IN ({SILENT}) OR (state = 'asked' AND since > ?)"
    return int(scalar(conn, f"SELECT count(*) FROM handovers WHERE {either}", now, now - ASKS_SECONDS))


def thread(conn: Connection, conversation: str) -> list[Row]:
    """Return the newest messages of a conversation, the oldest first.

    `by`: person, assistant, business or schedule (a task or a watch began a turn). `state` and `error` are of
    ours, "" for theirs; `late`: the person had not written for 24 hours; `ticks`: 1 for arrived, 2 for read.
    `media` is the path of a file that is kept, `question` the state of what the message asks.
    """
    rows = conn.execute(
        "SELECT m.id, m.turn_id, m.kind, m.text, m.at, coalesce(o.state, '') AS state,"
        " coalesce(o.error, '') AS error, coalesce(o.code, 0) = ? AS late,"
        " coalesce((SELECT max(CASE s.status WHEN 'read' THEN 2 WHEN 'played' THEN 2 WHEN 'delivered' THEN 1"
        " ELSE 0 END) FROM statuses s WHERE s.wamid = o.wamid), 0) AS ticks,"
        " coalesce(nullif(o.media, ''), a.path, '') AS media, coalesce(q.state, '') AS question,"
        " CASE WHEN m.kind = 'scheduled' THEN 'schedule'"
        " WHEN m.direction = 'in' THEN 'person' WHEN 'business' IN (t.outcome, o.origin) THEN 'business'"
        " ELSE 'assistant' END AS by"
        " FROM messages m LEFT JOIN turns t ON t.id = m.turn_id"
        " LEFT JOIN outbox o ON o.seq = (SELECT max(seq) FROM outbox WHERE message_id = m.id)"
        " LEFT JOIN attachments a ON a.message_id = m.id"
        " LEFT JOIN approvals q ON q.outbox_id = o.id"
        " WHERE m.conversation_id = ? ORDER BY m.id DESC LIMIT ?",
        (outbox.WINDOW_CLOSED, conversation, MOST_MESSAGES),
    ).fetchall()
    return rows[::-1]


def unknown(conn: Connection, codes: Collection[str], now: float) -> list[ThreadLine]:
    """Return what people asked where a tool failed with one of these codes, newest first, each text once."""
    failed = " OR ".join("instr(payload, ?) > 0" for _ in codes)
    since = f"turn_{int((now - UNKNOWN_SECONDS) * 1000):012x}"
    rows = conn.execute(
        "SELECT m.conversation_id, m.person_id, m.text, m.at FROM messages m WHERE m.direction = 'in'"
        " AND m.text <> '' AND m.turn_id IN (SELECT turn_id FROM journal WHERE turn_id >= ?"
        f" AND key >= 'tool:' AND key < 'tool;' AND ({failed})) ORDER BY m.id DESC LIMIT ?",
        (since, *(f'\\"code\\":\\"{one}\\"' for one in codes), MOST_CONVERSATIONS),
    ).fetchall()
    once = {fold(row["text"]): row for row in reversed(rows)}
    return [
        ThreadLine(id, *people.shown_as(conn, person), text, at, "")
        for id, person, text, at in reversed(once.values())
    ]


def media(conn: Connection, message: int) -> str:
    """Return the path of a message's file that is kept, "" for none."""
    path = "coalesce(nullif((SELECT max(media) FROM outbox WHERE message_id = m.id), ''), a.path)"
    joined = "messages m LEFT JOIN attachments a ON a.message_id = m.id"
    return scalar(conn, f"SELECT {path} FROM {joined} WHERE m.id = ?", message) or ""
