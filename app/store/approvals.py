"""Questions to a person, from the asking to the answer. What waits is a row: nothing runs for it."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row
from typing import Literal

import orjson

from app.people import Conversation
from app.store import outbox
from app.store.database import Database
from app.store.journal import TurnGone
from app.store.outbox import Draft, sent_as

BUTTON = "approval:"
"""How the ids of these buttons begin; those of a model's choices never do."""
ANSWER_SECONDS = 23 * 3600.0
"""From the person's last message on: after 24 hours nothing could be said to them any more."""

FAILED = "EXISTS (SELECT 1 FROM outbox WHERE source = 'approval:' || a.id AND state = 'failed')"
"""Of approvals `a`: a part of the card did not arrive, so nobody knows what the buttons are for."""

Choice = Literal["yes", "always", "trust", "no"]
State = Literal["open", "yes", "no", "expired", "failed"]


@dataclass(frozen=True, slots=True)
class Approval:
    """One question about one call."""

    id: str
    turn_id: str
    call_key: str
    tool: str
    arguments_hash: str
    tool_hash: str
    subject: str
    state: State
    choice: str
    title: str
    """What is asked, on one line."""
    sources: tuple[str, ...] = ()
    """Where text of others in its turn came from."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to be asked: the call, what an answer holds for, and how it is put."""

    id: str
    call_key: str
    tool: str
    arguments: str
    """Canonical JSON."""
    arguments_hash: str
    tool_hash: str
    subject: str
    title: str
    choices: dict[str, Choice]
    """By button id."""
    draft: Draft
    """Its last message has the buttons."""


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question that waits, as the console shows it."""

    id: str
    tool: str
    arguments: str
    subject: str
    asked: str
    """Who was asked: a name, or an id."""
    created_at: float
    choices: tuple[Choice, ...]
    sources: tuple[str, ...] = ()
    """Where text of others in its turn came from."""


def park(
    conn: Connection,
    turn: str,
    conversation: Conversation,
    questions: Sequence[Question],
    now: float,
    sources: Sequence[str] = (),
) -> None:
    """Puts the questions and lays the turn aside, all or nothing. Raises TurnGone where it has ended.

    With no new question it waits for those that are open. `sources` say where text of others in the turn
    came from.
    """
    for question in questions:
        _put(conn, turn, conversation, question, now)
    waits = conn.execute("SELECT 1 FROM approvals WHERE turn_id = ? AND state = 'open'", (turn,)).fetchone()
    state = "queued" if waits is None else "parked"  # answered since the turn looked: it goes on at once
    parked = conn.execute(
        "UPDATE turns SET state = ?, due_at = NULL, attempts = 0, crowded = 0, taint = ?"
        " WHERE id = ? AND state = 'running'",
        (state, "\n".join(sources), turn),
    ).rowcount
    if not parked:
        raise TurnGone(f"turn {turn} has ended")


def _put(conn: Connection, turn: str, conversation: Conversation, question: Question, now: float) -> None:
    """The question's messages and its row, which names the last of them: the one with the buttons."""
    source = f"approval:{question.id}"
    outbox.put_reply(conn, conversation, source, question.draft, now, turn=turn)
    last = conn.execute("SELECT id FROM outbox WHERE source = ? ORDER BY part DESC LIMIT 1", (source,))
    conn.execute(
        "INSERT INTO approvals (id, turn_id, person_id, conversation_id, call_key, tool, arguments,"
        " arguments_hash, tool_hash, subject, title, choices, state, outbox_id, created_at, due_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?)",
        (
            question.id,
            turn,
            conversation.person_id,
            conversation.id,
            question.call_key,
            question.tool,
            question.arguments,
            question.arguments_hash,
            question.tool_hash,
            question.subject,
            question.title,
            orjson.dumps(question.choices).decode(),
            last.fetchone()["id"],
            now,
            now + ANSWER_SECONDS,
        ),
    )


def of_turn(conn: Connection, turn: str) -> tuple[Approval, ...]:
    """A turn's questions, the oldest first."""
    rows = conn.execute("SELECT * FROM approvals WHERE turn_id = ? ORDER BY created_at, rowid", (turn,))
    return tuple(approval_of(row) for row in rows)


def waiting(conn: Connection, conversation: str) -> tuple[Approval, ...]:
    """The open questions of a conversation, the oldest first."""
    rows = conn.execute(
        "SELECT a.*, t.taint FROM approvals a JOIN turns t ON t.id = a.turn_id"
        " WHERE a.conversation_id = ? AND a.state = 'open' ORDER BY a.created_at, a.rowid",
        (conversation,),
    )
    return tuple(approval_of(row, tuple(row["taint"].splitlines())) for row in rows)


def is_asked_on(conn: Connection, channel: str) -> bool:
    """Whether a question is open on a channel."""
    row = conn.execute(
        "SELECT 1 FROM approvals a JOIN conversations c ON c.id = a.conversation_id"
        " WHERE a.state = 'open' AND c.channel = ?",
        (channel,),
    ).fetchone()
    return row is not None


async def subjects(store: Database) -> frozenset[str]:
    """What the questions are about that are open, or were answered with a yes that is yet to be acted on."""
    rows = await store.all(
        "SELECT DISTINCT a.subject FROM approvals a JOIN turns t ON t.id = a.turn_id"
        " WHERE a.subject <> '' AND a.state IN ('open', 'yes') AND t.state <> 'done'"
    )
    return frozenset(row["subject"] for row in rows)


def has_standing_consent(conn: Connection, conversation: Conversation, tool: str, tool_hash: str) -> bool:
    """Whether the person said "always here" to the tool as it is now."""
    row = conn.execute(
        "SELECT 1 FROM standing_consents WHERE conversation_id = ? AND person_id = ? AND tool = ?"
        " AND tool_hash = ?",
        (conversation.id, conversation.person_id, tool, tool_hash),
    ).fetchone()
    return row is not None


def asks(conn: Connection, conversation: str, wamid: str) -> bool:
    """Whether a message of ours is a question that is open."""
    row = conn.execute(
        "SELECT 1 FROM outbox o JOIN approvals a ON o.source = 'approval:' || a.id"
        f" WHERE o.id IN {sent_as('?1')} AND a.conversation_id = ?2 AND a.state = 'open'",
        (wamid, conversation),
    ).fetchone()
    return row is not None


def answer_for(conn: Connection, approval: str, choice: Choice, by: str, now: float) -> str:
    """An owner's answer at the console; gives the conversation that goes on, "" where nothing was open."""
    row = conn.execute("SELECT * FROM approvals WHERE id = ? AND state = 'open'", (approval,)).fetchone()
    if row is None or choice not in _console_choices(row):
        return ""
    settle(conn, row, choice, by, now)
    return str(row["conversation_id"])


def open_questions(conn: Connection) -> list[OpenQuestion]:
    """Everybody's open questions, the oldest first."""
    rows = conn.execute(
        "SELECT a.*, p.name, t.taint FROM approvals a JOIN people p ON p.id = a.person_id"
        " JOIN turns t ON t.id = a.turn_id WHERE a.state = 'open' ORDER BY a.created_at, a.rowid"
    )
    return [
        OpenQuestion(
            row["id"],
            row["tool"],
            row["arguments"],
            row["subject"],
            row["name"] or row["person_id"],
            row["created_at"],
            _console_choices(row),
            tuple(row["taint"].splitlines()),
        )
        for row in rows
    ]


def _console_choices(approval: Row) -> tuple[Choice, ...]:
    """What can be answered at the console: a card too long for the chat has its yes here alone."""
    return tuple(dict.fromkeys(("yes", *orjson.loads(approval["choices"]).values())))


def expire(conn: Connection, now: float) -> None:
    """Ends the questions that can no longer be answered, and lets their turns go on.

    Those that could not be sent as a whole, and those 23 hours after the person's last message.
    """
    rows = conn.execute(
        f"SELECT a.*, {FAILED} AS failed FROM approvals a"
        f" WHERE a.state = 'open' AND (a.due_at <= ? OR {FAILED})",
        (now,),
    ).fetchall()
    for row in rows:
        last = conn.execute(
            "SELECT max(received_at) AS at FROM inbox WHERE person_id = ?", (row["person_id"],)
        ).fetchone()["at"]
        until = (last or row["created_at"]) + ANSWER_SECONDS
        if not row["failed"] and until > now:
            conn.execute("UPDATE approvals SET due_at = ? WHERE id = ?", (until, row["id"]))
            continue
        state = "failed" if row["failed"] else "expired"
        conn.execute("UPDATE approvals SET state = ?, answered_at = ? WHERE id = ?", (state, now, row["id"]))
        _go_on(conn, row["turn_id"], now)


def close_all(conn: Connection, turn: str, now: float) -> None:
    """A turn has ended: nobody needs to answer its questions any more."""
    conn.execute(
        "UPDATE approvals SET state = 'expired', answered_at = ? WHERE turn_id = ? AND state = 'open'",
        (now, turn),
    )


def settle(conn: Connection, approval: Row, choice: Choice, by: str, now: float) -> None:
    """Closes a question with an answer, and lets its turn go on."""
    conn.execute(
        "UPDATE approvals SET state = ?, choice = ?, answered_at = ?, answered_by = ?"
        " WHERE id = ? AND state = 'open'",
        ("no" if choice == "no" else "yes", choice, now, by, approval["id"]),
    )
    if choice == "always":
        conn.execute(
            "INSERT INTO standing_consents VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                approval["person_id"],
                approval["conversation_id"],
                approval["tool"],
                approval["tool_hash"],
                now,
            ),
        )
    _go_on(conn, approval["turn_id"], now)


def _go_on(conn: Connection, turn: str, now: float) -> None:
    conn.execute(
        "UPDATE turns SET state = 'queued', due_at = ? WHERE id = ? AND state = 'parked'", (now, turn)
    )


def approval_of(row: Row, sources: tuple[str, ...] = ()) -> Approval:
    """A question as its row says it."""
    return Approval(
        id=row["id"],
        turn_id=row["turn_id"],
        call_key=row["call_key"],
        tool=row["tool"],
        arguments_hash=row["arguments_hash"],
        tool_hash=row["tool_hash"],
        subject=row["subject"],
        state=row["state"],
        choice=row["choice"],
        title=row["title"],
        sources=sources,
    )


def new_button() -> str:
    """The id of a button that answers a question."""
    return BUTTON + secrets.token_hex(16)
