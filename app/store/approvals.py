"""Questions to a person, from the asking to the answer. What waits is a row: nothing runs for it."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row
from typing import Literal

import orjson

from app.people import Conversation
from app.store import outbox
from app.store.database import Database
from app.store.journal import TurnGone
from app.store.outbox import Draft

BUTTON = "approval:"
"""How the ids of these buttons begin; those of a model's choices never do."""
ANSWER_SECONDS = 23 * 3600.0
"""From the person's last message on: after 24 hours nothing could be said to them any more."""

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


@dataclass(frozen=True, slots=True)
class Heard:
    """What the oldest waiting message came to: it was taken, and no turn will have it.

    `unclear`: it could be for several questions; `closed`: it is for one that is over. Else it answered one,
    or said nothing.
    """

    inbox: int
    person: str
    unclear: tuple[Approval, ...] = ()
    closed: bool = False


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
        source = f"approval:{question.id}"
        outbox.put_reply(conn, conversation, source, question.draft, now, turn=turn)
        asked = conn.execute("SELECT id FROM outbox WHERE source = ? ORDER BY part DESC LIMIT 1", (source,))
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
                asked.fetchone()["id"],
                now,
                now + ANSWER_SECONDS,
            ),
        )
    waits = conn.execute("SELECT 1 FROM approvals WHERE turn_id = ? AND state = 'open'", (turn,)).fetchone()
    state = "queued" if waits is None else "parked"  # answered since the turn looked: it goes on at once
    parked = conn.execute(
        "UPDATE turns SET state = ?, due_at = NULL, attempts = 0, crowded = 0, taint = ?"
        " WHERE id = ? AND state = 'running'",
        (state, "\n".join(sources), turn),
    ).rowcount
    if not parked:
        raise TurnGone(f"turn {turn} has ended")


def of_turn(conn: Connection, turn: str) -> tuple[Approval, ...]:
    """A turn's questions, the oldest first."""
    rows = conn.execute("SELECT * FROM approvals WHERE turn_id = ? ORDER BY created_at, rowid", (turn,))
    return tuple(_approval(row) for row in rows)


def waiting(conn: Connection, conversation: str) -> tuple[Approval, ...]:
    """The open questions of a conversation, the oldest first."""
    rows = conn.execute(
        "SELECT a.*, t.taint FROM approvals a JOIN turns t ON t.id = a.turn_id"
        " WHERE a.conversation_id = ? AND a.state = 'open' ORDER BY a.created_at, a.rowid",
        (conversation,),
    )
    return tuple(_approval(row, tuple(row["taint"].splitlines())) for row in rows)


async def is_asked_on(store: Database, channel: str) -> bool:
    """Whether a question is open on a channel."""
    row = await store.one(
        "SELECT 1 FROM approvals a JOIN conversations c ON c.id = a.conversation_id"
        " WHERE a.state = 'open' AND c.channel = ?",
        channel,
    )
    return row is not None


def has_standing_consent(conn: Connection, conversation: Conversation, tool: str, tool_hash: str) -> bool:
    """Whether the person said "always here" to the tool as it is now."""
    row = conn.execute(
        "SELECT 1 FROM standing_consents WHERE conversation_id = ? AND person_id = ? AND tool = ?"
        " AND tool_hash = ?",
        (conversation.id, conversation.person_id, tool, tool_hash),
    ).fetchone()
    return row is not None


def hear(
    conn: Connection, conversation: str, now: float, read: Callable[[str], Choice | None]
) -> Heard | None:
    """Takes the oldest waiting message where it answers a question; None where it is not for us.

    `read` gives the choice that a whole message stands for. Message, answer and turn change together. Plain
    words count for the only question that is open, and only if they came after it was sent; a quote or a
    reaction names its question.
    """
    row = conn.execute(
        "SELECT i.seq, i.kind, i.person_id, i.received_at, m.kind AS said_as, m.text, m.payload,"
        " EXISTS (SELECT 1 FROM approvals a WHERE a.conversation_id = i.conversation_id AND a.state = 'open')"
        " AS open FROM inbox i JOIN messages m ON m.id = i.message_id"
        " JOIN people p ON p.id = i.person_id AND p.frozen = '' AND p.access <> 'blocked'"
        " WHERE i.conversation_id = ? AND i.turn_id IS NULL AND i.done_at IS NULL ORDER BY i.seq LIMIT 1",
        (conversation,),
    ).fetchone()
    if row is None or not (row["kind"] == "answer" or (row["open"] and row["kind"] == "message")):
        return None
    payload = orjson.loads(row["payload"])
    button, quoted = str(payload.get("button") or ""), str(payload.get("quoted") or "")
    asked = [one for one in _asked(conn, conversation) if one["person_id"] == row["person_id"]]
    if button.startswith(BUTTON):
        meant = [one for one in asked if button in orjson.loads(one["choices"])]
        choice = orjson.loads(meant[0]["choices"])[button] if meant else None
    else:
        own_words = row["said_as"] in ("text", "reaction") and not (button or payload.get("forwarded"))
        choice = read(row["text"]) if own_words else None
        meant = [one for one in asked if choice and _is_meant(conn, one, quoted, row["received_at"])]
        if len(meant) == 1 and choice not in orjson.loads(meant[0]["choices"]).values():
            meant = []
    if row["kind"] == "message" and not meant:
        return None
    conn.execute("UPDATE inbox SET done_at = ? WHERE seq = ?", (now, row["seq"]))
    if choice is None or not meant:
        return Heard(row["seq"], row["person_id"], closed=bool(button))
    if len(meant) > 1:
        return Heard(row["seq"], row["person_id"], unclear=tuple(_approval(one) for one in meant))
    _close(conn, meant[0], choice, row["person_id"], now)
    return Heard(row["seq"], row["person_id"])


def asks(conn: Connection, conversation: str, wamid: str) -> bool:
    """Whether a message of ours is a question that is open."""
    row = conn.execute(
        "SELECT 1 FROM outbox o JOIN approvals a ON o.source = 'approval:' || a.id"
        " WHERE o.wamid = ? AND a.conversation_id = ? AND a.state = 'open'",
        (wamid, conversation),
    ).fetchone()
    return row is not None


def answer_for(conn: Connection, approval: str, choice: Choice, by: str, now: float) -> str:
    """An owner's answer at the console; gives the conversation that goes on, "" where nothing was open."""
    row = conn.execute("SELECT * FROM approvals WHERE id = ? AND state = 'open'", (approval,)).fetchone()
    if row is None or choice not in _console_choices(row):
        return ""
    _close(conn, row, choice, by, now)
    return str(row["conversation_id"])


def open_questions(conn: Connection) -> list[OpenQuestion]:
    """Everybody's open questions, the oldest first."""
    rows = conn.execute(
        "SELECT a.*, p.name FROM approvals a JOIN people p ON p.id = a.person_id"
        " WHERE a.state = 'open' ORDER BY a.created_at, a.rowid"
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
        )
        for row in rows
    ]


def _console_choices(approval: Row) -> tuple[Choice, ...]:
    """What can be answered at the console: a card too long for the chat has its yes here alone."""
    return tuple(dict.fromkeys(("yes", *orjson.loads(approval["choices"]).values())))


def expire(conn: Connection, now: float) -> None:
    """Ends the questions that can no longer be answered, and lets their turns go on.

    Those that could not be sent, and those 23 hours after the person's last message.
    """
    rows = conn.execute(
        "SELECT a.*, o.state AS sent FROM approvals a LEFT JOIN outbox o ON o.id = a.outbox_id"
        " WHERE a.state = 'open' AND (a.due_at <= ? OR o.state = 'failed')",
        (now,),
    ).fetchall()
    for row in rows:
        last = conn.execute(
            "SELECT max(received_at) AS at FROM inbox WHERE person_id = ?", (row["person_id"],)
        ).fetchone()["at"]
        until = (last or row["created_at"]) + ANSWER_SECONDS
        if row["sent"] != "failed" and until > now:
            conn.execute("UPDATE approvals SET due_at = ? WHERE id = ?", (until, row["id"]))
            continue
        state = "failed" if row["sent"] == "failed" else "expired"
        conn.execute("UPDATE approvals SET state = ?, answered_at = ? WHERE id = ?", (state, now, row["id"]))
        _go_on(conn, row["turn_id"], now)


def close_all(conn: Connection, turn: str, now: float) -> None:
    """A turn has ended: nobody needs to answer its questions any more."""
    conn.execute(
        "UPDATE approvals SET state = 'expired', answered_at = ? WHERE turn_id = ? AND state = 'open'",
        (now, turn),
    )


def _asked(conn: Connection, conversation: str) -> list[Row]:
    """The open questions whose message has been on its way, with when it arrived at WhatsApp, if it did."""
    return conn.execute(
        "SELECT a.*, o.sent_at"
        " FROM approvals a JOIN outbox o ON o.id = a.outbox_id"
        " WHERE a.conversation_id = ? AND a.state = 'open' AND o.state NOT IN ('ready', 'failed')"
        " ORDER BY a.created_at, a.rowid",
        (conversation,),
    ).fetchall()


def _is_meant(conn: Connection, approval: Row, quoted: str, received_at: float) -> bool:
    """Whether words are for this question: those that quote one of its messages, or quote nothing."""
    if not quoted:
        return approval["sent_at"] is not None and bool(approval["sent_at"] <= received_at)
    row = conn.execute(
        "SELECT 1 FROM outbox WHERE wamid = ? AND source = ?", (quoted, f"approval:{approval['id']}")
    ).fetchone()
    return row is not None


def _close(conn: Connection, approval: Row, choice: Choice, by: str, now: float) -> None:
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


def _approval(row: Row, sources: tuple[str, ...] = ()) -> Approval:
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
