"""Questions to a person about a call, from asking to the answer; a waiting question is only a row."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from app.people import Conversation
from app.store import audit, outbox
from app.store.database import Connection, Database, Row, exists, insert, read_row, scalar, update
from app.store.journal import TurnGone
from app.store.outbox import SENT_AS, Draft

BUTTON = "approval:"  # prefix of the ids of these buttons; those of a model's choices never have it
ANSWER_SECONDS = 23 * 3600.0  # from the person's last message: after 24 hours we may not write to them

# SQL about an approval `a`: a part of its card did not arrive, so what the buttons are for is unknown
FAILED = "EXISTS (SELECT 1 FROM outbox WHERE source = 'approval:' || a.id AND state = 'failed')"

# SQL for approvals with their person, the taint of their turn, and when the message with the buttons arrived
# at WhatsApp, by our clock (`sent_at`) and by WhatsApp's (`told_at`)
APPROVALS = (
    "SELECT a.*, p.name, t.taint, o.sent_at,"
    " (SELECT s.at FROM statuses s WHERE s.wamid = o.wamid AND s.status = 'sent' AND s.at > 0) AS told_at"
    " FROM approvals a JOIN people p ON p.id = a.person_id"
    " JOIN turns t ON t.id = a.turn_id LEFT JOIN outbox o ON o.id = a.outbox_id"
)

Choice = Literal["yes", "always", "trust", "no", "details", "offline"]
# Written answers that decide nothing: the question is asked again, with the whole card or without internet.
ASKS_AGAIN: frozenset[str] = frozenset(("details", "offline"))
State = Literal["open", "yes", "no", "expired", "failed"]


@dataclass(frozen=True, slots=True)
class Approval:
    """A question about a call, as it is stored."""

    id: str
    turn_id: str
    call_key: str
    tool: str
    arguments_hash: str
    tool_hash: str
    subject: str
    state: State
    choice: str
    title: str  # the question on one line
    arguments: str
    asked: str  # name or id of the person who was asked
    created_at: float
    console_choices: tuple[Choice, ...]
    sources: tuple[str, ...] = ()  # where text of others in its turn came from


@dataclass(frozen=True, slots=True)
class Question:
    """A question to be asked; the last message of `draft` has the buttons."""

    id: str
    call_key: str
    tool: str
    arguments: str  # canonical JSON
    arguments_hash: str
    tool_hash: str
    subject: str
    title: str
    choices: dict[str, Choice]  # by button id
    draft: Draft


_STORED = ("id", "call_key", "tool", "arguments", "arguments_hash", "tool_hash", "subject", "title")


def park(
    conn: Connection,
    turn: str,
    conversation: Conversation,
    questions: Sequence[Question],
    now: float,
    sources: Sequence[str] = (),
) -> None:
    """Ask the questions and park the turn, all or nothing. Raises TurnGone if it has ended.

    Without new questions it waits for those that are open. `sources` say where text of others in the turn
    came from.
    """
    for question in questions:
        _ask(conn, turn, conversation, question, now)
    waits = exists(conn, "SELECT 1 FROM approvals WHERE turn_id = ? AND state = 'open'", turn)
    state = "parked" if waits else "queued"  # answered since the turn looked: it goes on at once
    changes = {"state": state, "due_at": None, "attempts": 0, "taint": "\n".join(sources)}
    if not update(conn, "turns", "id = ? AND state = 'running'", turn, **changes):
        raise TurnGone(f"turn {turn} has ended")


def _ask(conn: Connection, turn: str, conversation: Conversation, question: Question, now: float) -> None:
    """Queue the question's messages and add its row, which names the last of them: it has the buttons."""
    source = f"approval:{question.id}"
    outbox.put_reply(conn, conversation, source, question.draft, now, turn=turn, origin="question")
    last = scalar(conn, "SELECT id FROM outbox WHERE source = ? ORDER BY part DESC LIMIT 1", source)
    insert(
        conn,
        "approvals",
        **{name: getattr(question, name) for name in _STORED},
        **conversation.columns,
        turn_id=turn,
        choices=orjson.dumps(question.choices).decode(),
        state="open",
        outbox_id=last,
        created_at=now,
        due_at=now + ANSWER_SECONDS,
    )


def of_turn(conn: Connection, turn: str) -> tuple[Approval, ...]:
    """Return a turn's questions, the oldest first."""
    rows = conn.execute(f"{APPROVALS} WHERE a.turn_id = ? ORDER BY o.seq", (turn,))
    return tuple(map(approval_of, rows))


def open_in(conn: Connection, conversation: str) -> tuple[Approval, ...]:
    """Return the open questions of a conversation, the oldest first."""
    sql = f"{APPROVALS} WHERE a.conversation_id = ? AND a.state = 'open' ORDER BY o.seq"
    rows = conn.execute(sql, (conversation,))
    return tuple(map(approval_of, rows))


def has_open_on(conn: Connection, channel: str) -> bool:
    """Return whether a question is open on a channel."""
    there = "JOIN conversations c ON c.id = a.conversation_id WHERE a.state = 'open' AND c.channel = ?"
    return exists(conn, f"SELECT 1 FROM approvals a {there}", channel)


async def open_subjects(store: Database) -> frozenset[str]:
    """Return the subjects of questions that are open, or have a yes that is still to be acted on."""
    rows = await store.all(
        "SELECT DISTINCT a.subject FROM approvals a JOIN turns t ON t.id = a.turn_id"
        " WHERE a.subject <> '' AND a.state IN ('open', 'yes') AND t.state <> 'done'"
    )
    return frozenset(row["subject"] for row in rows)


def standing_consents(conn: Connection, conversation: Conversation) -> frozenset[tuple[str, str]]:
    """Return the tools, by name and hash, to which the person said "always here"."""
    sql = "SELECT tool, tool_hash FROM standing_consents WHERE conversation_id = ? AND person_id = ?"
    return frozenset(map(tuple, conn.execute(sql, (conversation.id, conversation.person_id))))


def is_open_question(conn: Connection, conversation: str, wamid: str) -> bool:
    """Return whether a message of ours asks a question that is open."""
    is_it = f"o.id IN {SENT_AS} AND a.conversation_id = ? AND a.state = 'open'"
    sql = f"SELECT 1 FROM outbox o JOIN approvals a ON o.source = 'approval:' || a.id WHERE {is_it}"
    return exists(conn, sql, wamid, wamid, conversation)


def answer_in_console(conn: Connection, approval: str, choice: Choice, by: str, now: float) -> str:
    """Give an owner's answer; return the conversation that goes on, "" if the question was not open."""
    row = conn.execute("SELECT * FROM approvals WHERE id = ? AND state = 'open'", (approval,)).fetchone()
    if row is None or choice not in _console_choices(row):
        return ""
    settle(conn, row, choice, by, now)
    return str(row["conversation_id"])


def all_open(conn: Connection) -> list[Approval]:
    """Return everybody's open questions, the oldest first."""
    return list(map(approval_of, conn.execute(f"{APPROVALS} WHERE a.state = 'open' ORDER BY o.seq")))


def _console_choices(approval: Row) -> tuple[Choice, ...]:
    """Return the choices of the console: a card too long for the chat has its yes only here."""
    choices = ("yes", *orjson.loads(approval["choices"]).values())
    return tuple(dict.fromkeys(choice for choice in choices if choice not in ASKS_AGAIN))


def expire(conn: Connection, now: float) -> None:
    """End the questions that could not be sent whole, or are 23 hours past the person's last message.

    Their turns go on.
    """
    is_over = f"a.state = 'open' AND (a.due_at <= ? OR {FAILED})"
    sql = f"SELECT a.*, {FAILED} AS failed FROM approvals a WHERE {is_over}"
    rows = conn.execute(sql, (now,)).fetchall()
    for row in rows:
        last = scalar(conn, "SELECT max(received_at) FROM inbox WHERE person_id = ?", row["person_id"])
        until = (last or row["created_at"]) + ANSWER_SECONDS
        if not row["failed"] and until > now:
            conn.execute("UPDATE approvals SET due_at = ? WHERE id = ?", (until, row["id"]))
            continue
        state = "failed" if row["failed"] else "expired"
        update(conn, "approvals", "id = ?", row["id"], state=state, answered_at=now)
        _resume(conn, row["turn_id"], now)


def expire_of_turn(conn: Connection, turn: str, now: float) -> None:
    """Expire the open questions of a turn that has ended."""
    update(conn, "approvals", "turn_id = ? AND state = 'open'", turn, state="expired", answered_at=now)


def settle(conn: Connection, approval: Row, choice: Choice, by: str, now: float) -> None:
    """Close a question with an answer, and let its turn go on."""
    state: State = "expired" if choice in ASKS_AGAIN else "no" if choice == "no" else "yes"
    answer = {"choice": choice, "answered_at": now, "answered_by": by}
    update(conn, "approvals", "id = ? AND state = 'open'", approval["id"], state=state, **answer)
    if choice == "always":
        conn.execute(
            "INSERT INTO standing_consents SELECT person_id, conversation_id, tool, tool_hash, ?"
            " FROM approvals WHERE id = ? ON CONFLICT DO NOTHING",
            (now, approval["id"]),
        )
    audit.record(conn, by, f"answered {choice}: {approval['tool'][:80]}", approval["id"], now)
    _resume(conn, approval["turn_id"], now)


def _resume(conn: Connection, turn: str, now: float) -> None:
    update(conn, "turns", "id = ? AND state = 'parked'", turn, state="queued", due_at=now)


def approval_of(row: Row) -> Approval:
    """Return a row of `APPROVALS` as an `Approval`."""
    asked, sources = row["name"] or row["person_id"], tuple(row["taint"].splitlines())
    return read_row(Approval, row, asked=asked, console_choices=_console_choices(row), sources=sources)


def new_button() -> str:
    """Return a new id for a button that answers a question."""
    return BUTTON + secrets.token_hex(16)
