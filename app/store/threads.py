"""Conversations as the console shows them: a list, and the thread of one."""

from dataclasses import dataclass

from app.store import outbox, people
from app.store.conditions import SILENT
from app.store.database import Connection
from app.text import fold

MOST_CONVERSATIONS = 50
MOST_MESSAGES = 200
ASKS_SECONDS = 7 * 86_400.0  # for which one who was not answered is shown as asking
_BETWEEN_DIGITS = str.maketrans("", "", "+ -()")


@dataclass(frozen=True, slots=True)
class ThreadLine:
    """A conversation in the list; `state` is "human", "asked" (for a person) or ""."""

    id: str
    name: str
    who: str
    text: str
    at: float
    state: str


@dataclass(frozen=True, slots=True)
class ThreadMessage:
    """A message; `by` is person, assistant, business or schedule (a task or a watch began a turn).

    `state` is that of its outbox row, "" for theirs; `late`: the person had not written for 24 hours.
    """

    by: str
    kind: str
    text: str
    at: float
    state: str
    late: bool


def newest(conn: Connection, words: str, now: float) -> list[ThreadLine]:
    """Return the conversations whose person or texts hold `words`, those that ask for a person first."""
    sought = fold(words)
    rows = conn.execute(
        "SELECT c.id, c.person_id, m.text, m.kind, m.at,"
        f" CASE WHEN c.id IN ({SILENT}) THEN 'human'"
        " WHEN c.id IN (SELECT conversation_id FROM handovers WHERE state = 'asked' AND since > ?)"
        " THEN 'asked'"
        " ELSE '' END AS state"
        " FROM conversations c JOIN people p ON p.id = c.person_id"
        " JOIN messages m ON m.id = (SELECT max(id) FROM messages WHERE conversation_id = c.id)"
        " WHERE instr(folded(p.name), ?) > 0"
        " OR EXISTS (SELECT 1 FROM aliases a WHERE a.person_id = p.id AND instr(folded(a.value), ?) > 0)"
        " OR EXISTS (SELECT 1 FROM messages s"
        " WHERE s.conversation_id = c.id AND instr(folded(s.text), ?) > 0)"
        " ORDER BY state = 'asked' DESC, m.id DESC LIMIT ?",
        (now, now - ASKS_SECONDS, sought, sought.translate(_BETWEEN_DIGITS), sought, MOST_CONVERSATIONS),
    ).fetchall()
    return [
        ThreadLine(id, *people.shown_as(conn, person), text or f"[{kind}]", at, state)
        for id, person, text, kind, at, state in rows
    ]


def thread(conn: Connection, conversation: str) -> list[ThreadMessage]:
    """Return the newest messages of a conversation, the oldest first."""
    rows = conn.execute(
        "SELECT m.kind, m.text, m.at, coalesce(o.state, '') AS state, coalesce(o.code, 0) = ? AS late,"
        " CASE WHEN m.kind = 'scheduled' THEN 'schedule'"
        " WHEN m.direction = 'in' THEN 'person' WHEN 'business' IN (t.outcome, o.origin) THEN 'business'"
        " ELSE 'assistant' END AS by"
        " FROM messages m LEFT JOIN turns t ON t.id = m.turn_id"
        " LEFT JOIN outbox o ON o.seq = (SELECT max(seq) FROM outbox WHERE message_id = m.id)"
        " WHERE m.conversation_id = ? ORDER BY m.id DESC LIMIT ?",
        (outbox.WINDOW_CLOSED, conversation, MOST_MESSAGES),
    ).fetchall()
    return [ThreadMessage(**row) for row in reversed(rows)]
