"""Answers to approvals: finding the waiting messages that answer a question, and taking them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import orjson

from app.messages import in_own_words
from app.store.approvals import APPROVALS, ASKS_AGAIN, BUTTON, FAILED, Approval, Choice, approval_of, settle
from app.store.conditions import MAY_TALK, UNCLAIMED
from app.store.database import Connection, Row, exists, read_row
from app.store.delivery import mark_sent
from app.store.outbox import SENT_AS
from app.store.turns import BURST_MESSAGES, Pause

MOST_MESSAGES = BURST_MESSAGES + 1  # looked at as one answer


@dataclass(frozen=True, slots=True)
class ReplyTaken:
    """Messages that were taken as a reply to a question, so that no turn gets them; `inbox` is the last one.

    `unclear`: the questions they could be for, if several; `closed`: they are for a question that is over.
    Else they answered a question, or said nothing.
    """

    inbox: int
    unclear: tuple[Approval, ...] = ()
    closed: bool = False


@dataclass(frozen=True, slots=True)
class _Message:
    """A waiting message, read as an answer.

    `choice` is None if its words say more than a yes or a no, or are not surely the person's. `written_at` is
    by WhatsApp's clock, since messages may arrive days late; None if unknown.
    """

    seq: int
    person: str
    kind: str
    choice: Choice | None
    button: str
    quoted: str
    at: float
    written_at: float | None


def take_reply(
    conn: Connection,
    conversation: str,
    now: float,
    read: Callable[[str], Choice | None],
    quiet: float = 0.0,
    longest: float = 0.0,
    *,
    only_last: bool = False,
) -> ReplyTaken | Pause | None:
    """Take waiting messages that answer a question; return None if none of them does.

    `read` returns the choice that a whole message stands for. Messages, answer and turn change together. A
    button, a reaction or a quote names its question and counts at once. Plain words count for the only
    question, if they came after it was sent, and only once their burst (see `turns.claim`) is over and all of
    it says the same: a "no" or a "but wait" may follow. `only_last`: see `_spoke_since`.
    """
    waiting = _waiting_messages(conn, conversation, read)
    for message in waiting:
        names_one = message.kind == "answer" or message.button or message.quoted
        if names_one and (reply := _take_named(conn, conversation, message, now)) is not None:
            return reply
    return _take_words(conn, conversation, waiting, now, quiet, longest, only_last)


def _waiting_messages(
    conn: Connection, conversation: str, read: Callable[[str], Choice | None]
) -> list[_Message]:
    """Return the waiting messages, buttons and reactions first."""
    rows = conn.execute(
        "SELECT inbox.seq, inbox.kind, inbox.person_id AS person, inbox.received_at AS at, m.id, m.wamid,"
        " m.kind AS said_as, m.text, m.payload FROM inbox JOIN messages m ON m.id = inbox.message_id"
        f" JOIN people ON people.id = inbox.person_id AND {MAY_TALK}"
        f" WHERE inbox.conversation_id = ? AND {UNCLAIMED}"
        " ORDER BY CASE inbox.kind WHEN 'answer' THEN 0 ELSE 1 END, inbox.seq LIMIT ?",
        (conversation, MOST_MESSAGES),
    ).fetchall()
    return [_message(conn, row, read) for row in rows]


def _message(conn: Connection, row: Row, read: Callable[[str], Choice | None]) -> _Message:
    payload = orjson.loads(row["payload"])
    is_said = row["said_as"] == "text" or (payload.get("attachment") or {}).get("voice")
    is_own = row["said_as"] == "reaction" or (
        is_said and in_own_words(row["said_as"], payload) and not _was_taken_back(conn, row)
    )
    return read_row(
        _Message,
        row,
        choice=read(row["text"]) if is_own else None,
        button=str(payload.get("button") or ""),
        quoted=str(payload.get("quoted") or ""),
        written_at=float(payload.get("sent_at") or 0) or None,
    )


def _was_taken_back(conn: Connection, message: Row) -> bool:
    sql = "SELECT payload FROM messages WHERE person_id = ? AND id > ? AND kind = 'revoke'"
    later = conn.execute(sql, (message["person"], message["id"]))
    return any(orjson.loads(row["payload"]).get("quoted") == message["wamid"] for row in later)


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
    settle(conn, meant[0], choice, message.person, now)
    return ReplyTaken(message.seq)


def _take_words(
    conn: Connection,
    conversation: str,
    waiting: Sequence[_Message],
    now: float,
    quiet: float,
    longest: float,
    only_last: bool,
) -> ReplyTaken | Pause | None:
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
        return Pause(over)
    _take(conn, burst, now)
    last = burst[-1]
    still_open = [one for one in meant if one["state"] == "open"]
    if not still_open:  # answered meanwhile by a button; words that agree with it need no reply
        answer = "no" if choice == "no" else "yes"
        return ReplyTaken(last.seq, closed=any(one["state"] != answer for one in meant))
    if len(meant) > 1:  # also where one of the two was answered while these words waited
        return ReplyTaken(last.seq, unclear=tuple(approval_of(one) for one in still_open))
    settle(conn, meant[0], choice, last.person, now)
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
        f"{APPROVALS} WHERE a.person_id = ? AND a.conversation_id = ?"
        " AND (a.state = 'open' OR a.answered_at >= ?)"
        f" AND o.state <> 'ready' AND NOT {FAILED} ORDER BY o.seq",
        (by.person, conversation, since),
    ).fetchall()
