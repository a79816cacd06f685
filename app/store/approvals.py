"""Questions to a person about a call, from asking to the answer; a waiting question is only a row.

Their words, buttons and reactions answer them: waiting messages that do are taken out of the queue.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

import orjson

from app.messages import in_own_words
from app.people import Conversation
from app.store import audit, outbox
from app.store.conditions import MAY_TALK, UNCLAIMED
from app.store.database import Connection, Database, Row, exists, insert, read_row, scalar, update
from app.store.delivery import mark_sent
from app.store.journal import TurnGone
from app.store.outbox import SENT_AS, Draft

BUTTON = "approval:"  # prefix of the ids of these buttons; those of a model's choices never have it
BURST_MESSAGES = 50  # that one turn takes up, or that are looked at as one answer
ANSWER_SECONDS = 23 * 3600.0  # from the person's last message: after 24 hours we may not write to them

# SQL about an approval `a`: a part of its card did not arrive, so what the buttons are for is unknown
_FAILED = "EXISTS (SELECT 1 FROM outbox WHERE source = 'approval:' || a.id AND state = 'failed')"

# SQL for approvals with their person, the taint of their turn, and when the message with the buttons arrived
# at WhatsApp, by our clock (`sent_at`) and by WhatsApp's (`told_at`)
_APPROVALS = (
    "SELECT a.*, p.name, t.taint, o.sent_at,"
    " (SELECT s.at FROM statuses s WHERE s.wamid = o.wamid AND s.status = 'sent' AND s.at > 0) AS told_at"
    " FROM approvals a JOIN people p ON p.id = a.person_id"
    " JOIN turns t ON t.id = a.turn_id LEFT JOIN outbox o ON o.id = a.outbox_id"
)

Choice = Literal["yes", "always", "trust", "no", "details", "offline"]
# Written answers that decide nothing: the question is asked again, with the whole card or without internet.
ASKS_AGAIN: frozenset[str] = frozenset(("details", "offline"))
State = Literal["open", "yes", "no", "expired", "failed"]
Reader = Callable[[str], Choice | None]  # of a whole message


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


@dataclass(frozen=True, slots=True)
class ReplyTaken:
    """Messages that were taken as a reply to a question, so that no turn gets them.

    By the defaults they answered a question, or said nothing.
    """

    inbox: int  # the last one
    unclear: tuple[Approval, ...] = ()  # the questions they could be for, if several
    closed: bool = False  # they are for a question that is over


@dataclass(frozen=True, slots=True)
class _Message:
    """A waiting message, read as an answer."""

    seq: int
    person: str
    kind: str
    choice: Choice | None  # None if its words say more than a yes or a no, or are not surely the person's
    button: str
    quoted: str
    at: float
    written_at: float | None  # by WhatsApp's clock, since it may arrive days late; None if unknown


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

    Without new questions it waits for those that are open. `sources`: of text of others in the turn.
    """
    for question in questions:
        _ask(conn, turn, conversation, question, now)
    waits = exists(conn, "SELECT 1 FROM approvals WHERE turn_id = ? AND state = 'open'", turn)
    state = "parked" if waits else "queued"  # answered since the turn looked: it goes on at once
    changes = {"state": state, "due_at": None, "attempts": 0, "taint": "\n".join(sources)}
    if not update(conn, "turns", "id = ? AND state = 'running'", turn, **changes):
        raise TurnGone(f"turn {turn} has ended")


def of_turn(conn: Connection, turn: str) -> tuple[Approval, ...]:
    """Return a turn's questions, the oldest first."""
    return _find(conn, "a.turn_id = ?", turn)


def open_in(conn: Connection, conversation: str) -> tuple[Approval, ...]:
    """Return the open questions of a conversation, the oldest first."""
    return _find(conn, "a.conversation_id = ? AND a.state = 'open'", conversation)


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


def answer_in_console(conn: Connection, approval: str, choice: str, by: str, now: float) -> str:
    """Give an owner's answer; return the conversation that goes on, "" if it cannot be given (any more)."""
    row = conn.execute("SELECT * FROM approvals WHERE id = ? AND state = 'open'", (approval,)).fetchone()
    for one in _console_choices(row) if row is not None else ():
        if one == choice:
            _settle(conn, row, one, by, now)
            return str(row["conversation_id"])
    return ""


def all_open(conn: Connection) -> tuple[Approval, ...]:
    """Return everybody's open questions, the oldest first."""
    return _find(conn, "a.state = 'open'")


def expire(conn: Connection, now: float) -> None:
    """End questions not sent whole, or 23 hours past the person's last message; their turns go on."""
    is_over = f"a.state = 'open' AND (a.due_at <= ? OR {_FAILED})"
    sql = f"SELECT a.*, {_FAILED} AS failed FROM approvals a WHERE {is_over}"
    for row in conn.execute(sql, (now,)).fetchall():
        last = scalar(conn, "SELECT max(received_at) FROM inbox WHERE person_id = ?", row["person_id"])
        until = (last or row["created_at"]) + ANSWER_SECONDS
        if not row["failed"] and until > now:
            update(conn, "approvals", "id = ?", row["id"], due_at=until)
            continue
        state = "failed" if row["failed"] else "expired"
        update(conn, "approvals", "id = ?", row["id"], state=state, answered_at=now)
        _resume(conn, row["turn_id"], now)


def expire_of_turn(conn: Connection, turn: str, now: float) -> None:
    """Expire the open questions of a turn that has ended."""
    update(conn, "approvals", "turn_id = ? AND state = 'open'", turn, state="expired", answered_at=now)


def new_button() -> str:
    """Return a new id for a button that answers a question."""
    return BUTTON + secrets.token_hex(16)


def take_reply(
    conn: Connection,
    conversation: str,
    now: float,
    read: Reader,
    quiet: float = 0.0,
    longest: float = 0.0,
    *,
    only_last: bool = False,
) -> ReplyTaken | float | None:
    """Take waiting messages that answer a question; return None if none of them does.

    Return when to look again where words may still become an answer. `read` returns the choice that a whole
    message stands for. Messages, answer and turn change together. A button, a reaction or a quote names its
    question and counts at once. Plain words count for the only question, if they came after it was sent, and
    only once their burst (see `turns.claim`) is over and all of it says the same: a "no" or a "but wait" may
    follow. `only_last`: see `_spoke_since`.
    """
    waiting = _waiting_messages(conn, conversation, read)
    for message in waiting:
        names_one = message.kind == "answer" or message.button or message.quoted
        if names_one and (reply := _take_named(conn, conversation, message, now)) is not None:
            return reply
    return _take_words(conn, conversation, waiting, now, quiet, longest, only_last)


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


def _find(conn: Connection, which: str, *parameters: object) -> tuple[Approval, ...]:
    rows = conn.execute(f"{_APPROVALS} WHERE {which} ORDER BY o.seq", parameters)
    return tuple(map(_approval, rows))


def _console_choices(approval: Row) -> tuple[Choice, ...]:
    """Return the choices of the console: a card too long for the chat has its yes only here."""
    choices = ("yes", *orjson.loads(approval["choices"]).values())
    return tuple(dict.fromkeys(choice for choice in choices if choice not in ASKS_AGAIN))


def _settle(conn: Connection, approval: Row, choice: Choice, by: str, now: float) -> None:
    """Close a question with an answer, and let its turn go on."""
    state: State = "no" if choice == "no" else "yes"
    if choice in ASKS_AGAIN:
        state = "expired"
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


def _approval(row: Row) -> Approval:
    asked, sources = row["name"] or row["person_id"], tuple(row["taint"].splitlines())
    return read_row(Approval, row, asked=asked, console_choices=_console_choices(row), sources=sources)


def _waiting_messages(conn: Connection, conversation: str, read: Reader) -> list[_Message]:
    """Return the waiting messages, buttons and reactions first."""
    rows = conn.execute(
        "SELECT inbox.seq, inbox.kind, inbox.person_id AS person, inbox.received_at AS at,"
        " m.kind AS said_as, m.text, m.payload FROM inbox JOIN messages m ON m.id = inbox.message_id"
        f" JOIN people ON people.id = inbox.person_id AND {MAY_TALK}"
        f" WHERE inbox.conversation_id = ? AND {UNCLAIMED}"
        " ORDER BY CASE inbox.kind WHEN 'answer' THEN 0 ELSE 1 END, inbox.seq LIMIT ?",
        (conversation, BURST_MESSAGES + 1),
    ).fetchall()
    found = []
    for row in rows:
        payload, said_as = orjson.loads(row["payload"]), row["said_as"]
        is_said = said_as == "text" or (payload.get("attachment") or {}).get("voice")
        is_own = said_as == "reaction" or (is_said and in_own_words(said_as, payload))
        message = read_row(
            _Message,
            row,
            choice=read(row["text"]) if is_own else None,
            button=str(payload.get("button") or ""),
            quoted=str(payload.get("quoted") or ""),
            written_at=float(payload.get("sent_at") or 0) or None,
        )
        found.append(message)
    return found


def _take_named(conn: Connection, conversation: str, message: _Message, now: float) -> ReplyTaken | None:
    """Take a button, or words that quote a question; None if what is quoted is no question of theirs."""
    asked = _asked(conn, conversation, message)
    choice = message.choice
    if message.button.startswith(BUTTON):
        meant = [one for one in asked if message.button in orjson.loads(one["choices"])]
        choice = orjson.loads(meant[0]["choices"])[message.button] if meant else None
    else:
        quoted = f"SELECT 1 FROM outbox WHERE id IN {SENT_AS} AND source = 'approval:' || ?"
        ids = (message.quoted, message.quoted)
        meant = [one for one in asked if _offers(one, choice) and exists(conn, quoted, *ids, one["id"])]
    if message.kind != "answer" and not meant:
        return None
    _take(conn, [message], now)
    if choice is None or not meant:
        return ReplyTaken(message.seq, closed=bool(message.button))
    if message.button and message.quoted:  # a pressed button proves that the question arrived
        mark_sent(conn, meant[0]["outbox_id"], message.quoted, now)
    _settle(conn, meant[0], choice, message.person, now)
    return ReplyTaken(message.seq)


def _take_words(
    conn: Connection,
    conversation: str,
    waiting: Sequence[_Message],
    now: float,
    quiet: float,
    longest: float,
    only_last: bool,
) -> ReplyTaken | float | None:
    """Take words that name no question, all of a burst together."""
    burst = list(takewhile(lambda one: one.kind == "message", waiting))
    if not burst or any(one.button or one.quoted for one in burst):
        return None
    choice, first = burst[0].choice, burst[0].at
    if choice is None or any(one.choice != choice for one in burst):
        return None
    asked = _asked(conn, conversation, burst[0], since=first)
    written = min((one.written_at for one in burst if one.written_at is not None), default=None)
    meant = [one for one in asked if _came_before(one, first, written)]
    if choice in ASKS_AGAIN:
        meant = [one for one in meant if _offers(one, choice)]
    if not meant:
        return None
    if len(meant) == 1 and (not _offers(meant[0], choice) or _spoke_since(conn, meant[0], only_last, choice)):
        return None
    over = min(burst[-1].at + quiet, first + longest)
    if len(burst) == len(waiting) and first <= now < over:
        return over
    _take(conn, burst, now)
    last = burst[-1]
    still_open = [one for one in meant if one["state"] == "open"]
    if not still_open:  # answered meanwhile by a button; words that agree with it need no reply
        answer = "no" if choice == "no" else "yes"
        return ReplyTaken(last.seq, closed=any(one["state"] != answer for one in meant))
    if len(meant) > 1:  # also where one of the two was answered while these words waited
        return ReplyTaken(last.seq, unclear=tuple(_approval(one) for one in still_open))
    _settle(conn, meant[0], choice, last.person, now)
    return ReplyTaken(last.seq)


def _came_before(asked: Row, received: float, written: float | None) -> bool:
    """Return whether a question was sent before words came in and, by WhatsApp's clock, were written.

    If that clock is sure, ours is not asked: a send that a crash cut off is known as sent only once its
    status comes in, perhaps together with the words.
    """
    told, sent = asked["told_at"], asked["sent_at"]
    if written is None or told is None or told == written:
        return sent is not None and sent <= received
    return bool(told < written)


def _take(conn: Connection, messages: Sequence[_Message], now: float) -> None:
    conn.executemany("UPDATE inbox SET done_at = ? WHERE seq = ?", [(now, one.seq) for one in messages])


def _offers(approval: Row, choice: Choice | None) -> bool:
    return choice in orjson.loads(approval["choices"]).values()


def _spoke_since(conn: Connection, approval: Row, only_last: bool, choice: Choice) -> bool:
    """Return whether another message since may be what the person's words answer.

    That is an answer of the model with text of others in its prompt, or a reminder; with `only_last` also one
    that called no tool, for what it answered may have been a no. A no may always be said.
    """
    may_be = "taint <> ''"
    if only_last and choice != "no":
        may_be += " OR NOT EXISTS (SELECT 1 FROM journal j WHERE j.turn_id = turns.id AND j.kind = 'intent')"
    where, since = approval["conversation_id"], approval["created_at"]
    answers = (
        "SELECT 1 FROM turns WHERE conversation_id = ? AND done_at >= ? AND state = 'done'"
        f" AND outcome IN ('answered', 'failed') AND ({may_be})"
    )
    reminders = "SELECT 1 FROM schedules WHERE conversation_id = ? AND told_at >= ? AND kind = 'reminder'"
    return exists(conn, answers, where, since) or exists(conn, reminders, where, since)


def _asked(conn: Connection, conversation: str, by: _Message, since: float | None = None) -> list[Row]:
    """Return a person's open questions that were sent; with `since` also those that were open then.

    Each has when it arrived at WhatsApp, by our clock (`sent_at`) and by WhatsApp's (`told_at`).
    """
    return conn.execute(
        f"{_APPROVALS} WHERE a.person_id = ? AND a.conversation_id = ?"
        " AND (a.state = 'open' OR a.answered_at >= ?)"
        f" AND o.state <> 'ready' AND NOT {_FAILED} ORDER BY o.seq",
        (by.person, conversation, since),
    ).fetchall()
