"""Which waiting messages answer a question, and the answer taken from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from sqlite3 import Connection, Row

import orjson

from app.people import Conversation
from app.store.approvals import BUTTON, FAILED, Approval, Choice, approval_of, settle
from app.store.outbox import sent, sent_as
from app.store.own_words import in_own_words
from app.store.turns import BURST_MESSAGES

_ANSWERS = ("yes", "no")
MOST_HEARD = BURST_MESSAGES + 1
"""Messages that are looked at as one answer: a burst has one less."""
LONGEST_UNDERWAY = 8 * 86400.0
"""WhatsApp tries for seven days to deliver what a server that was away did not take."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What waiting messages came to: they were taken, and no turn will have them. `inbox` is the last.

    `unclear`: they could be for several questions; `closed`: they are for one that is over, which had the
    `answer` "yes" or "no", or "". Else they answered one, or said nothing.
    """

    inbox: int
    person: str
    unclear: tuple[Approval, ...] = ()
    closed: bool = False
    answer: str = ""


@dataclass(frozen=True, slots=True)
class NotYet:
    """Words that may answer a question: whether they do shows at `at`, when no more can follow."""

    at: float


@dataclass(frozen=True, slots=True)
class _Said:
    """A message that waits, as an answer is read."""

    seq: int
    person: str
    kind: str
    choice: Choice | None
    """What its words stand for, None where they say more or are not surely the person's."""
    button: str
    quoted: str
    at: float
    written_at: float | None
    """By WhatsApp's clock: what could not be delivered at once comes hours or days later. None where it is
    not known, and where nothing is underway that long: such a clock tells nothing."""


def hear(
    conn: Connection,
    conversation: str,
    now: float,
    read: Callable[[str], Choice | None],
    quiet: float = 0.0,
    longest: float = 0.0,
) -> Heard | NotYet | None:
    """Takes waiting messages where they answer a question; None where nothing of them is for us.

    `read` gives the choice that a whole message stands for. Messages, answer and turn change together. A
    button, a reaction or a quote names its question and counts at once. Plain words count for the only
    question, if they came after it was sent, and only once their burst (see `turns.claim`) is over and all of
    it says the same: a "no" or a "but wait" may follow.
    """
    waiting = _waiting_words(conn, conversation, read)
    for said in waiting:
        names_one = said.kind == "answer" or said.button or said.quoted
        if names_one and (heard := _hear_named(conn, conversation, said, now)) is not None:
            return heard
    return _hear_words(conn, conversation, waiting, now, quiet, longest)


def addressee(conn: Connection, conversation: str) -> tuple[Conversation, str]:
    """The conversation as messages to it need it, and the person's language, "" where it is not known."""
    row = conn.execute(
        "SELECT c.person_id, c.channel, c.group_id, p.language FROM conversations c"
        " JOIN people p ON p.id = c.person_id WHERE c.id = ?",
        (conversation,),
    ).fetchone()
    return Conversation(conversation, row["person_id"], row["channel"], row["group_id"]), row["language"]


def _waiting_words(conn: Connection, conversation: str, read: Callable[[str], Choice | None]) -> list[_Said]:
    """What waits in a conversation, buttons and reactions first; none where no question could be meant."""
    is_needed = conn.execute(
        "SELECT 1 FROM turns WHERE conversation_id = ?1 AND state <> 'done' UNION ALL SELECT 1 FROM inbox"
        " WHERE conversation_id = ?1 AND turn_id IS NULL AND done_at IS NULL AND kind = 'answer' LIMIT 1",
        (conversation,),
    ).fetchone()
    if is_needed is None:
        return []
    rows = conn.execute(
        "SELECT i.seq, i.kind, i.person_id, i.received_at, m.id, m.wamid, m.kind AS said_as, m.text,"
        " m.payload"
        " FROM inbox i JOIN messages m ON m.id = i.message_id"
        " JOIN people p ON p.id = i.person_id AND p.frozen = '' AND p.access <> 'blocked'"
        " WHERE i.conversation_id = ? AND i.turn_id IS NULL AND i.done_at IS NULL"
        " ORDER BY i.kind = 'answer' DESC, i.seq LIMIT ?",
        (conversation, MOST_HEARD),
    ).fetchall()
    return [_said(conn, row, read) for row in rows]


def _said(conn: Connection, row: Row, read: Callable[[str], Choice | None]) -> _Said:
    payload = orjson.loads(row["payload"])
    is_own = row["said_as"] == "reaction" or (
        row["said_as"] == "text" and in_own_words("text", payload) and not _was_taken_back(conn, row)
    )
    return _Said(
        row["seq"],
        row["person_id"],
        row["kind"],
        read(row["text"]) if is_own else None,
        str(payload.get("button") or ""),
        str(payload.get("quoted") or ""),
        row["received_at"],
        _when_written(float(payload.get("sent_at") or 0), row["received_at"]),
    )


def _when_written(sent: float, received: float) -> float | None:
    return sent if sent > received - LONGEST_UNDERWAY else None


def _was_taken_back(conn: Connection, message: Row) -> bool:
    """Whether the person deleted what they had written."""
    row = conn.execute(
        "SELECT 1 FROM messages WHERE person_id = ? AND id > ? AND kind = 'revoke'"
        " AND json_extract(payload, '$.quoted') = ?",
        (message["person_id"], message["id"], message["wamid"]),
    ).fetchone()
    return row is not None


def _hear_named(conn: Connection, conversation: str, said: _Said, now: float) -> Heard | None:
    """A button, or words that quote a question; None where what is quoted is no question of theirs."""
    asked = _asked(conn, conversation, said)
    choice = said.choice
    if said.button.startswith(BUTTON):
        meant = [one for one in asked if said.button in orjson.loads(one["choices"])]
        choice = orjson.loads(meant[0]["choices"])[said.button] if meant else None
    else:
        meant = [one for one in asked if _is_quoted(conn, one, said.quoted) and _offers(one, choice)]
    if said.kind != "answer" and not meant:
        return None
    _take(conn, [said], now)
    if choice is None or not meant:
        given = _given(conn, conversation, said)
        return Heard(said.seq, said.person, closed=bool(said.button), answer=given)
    if said.button and said.quoted:  # who presses it has it, whatever became known of its sending
        sent(conn, meant[0]["outbox_id"], said.quoted, now)
    settle(conn, meant[0], choice, said.person, now)
    return Heard(said.seq, said.person)


def _given(conn: Connection, conversation: str, said: _Said) -> str:
    """The answer that the question of a button has already, "" where it has none."""
    row = conn.execute(
        "SELECT state FROM approvals WHERE person_id = ? AND conversation_id = ? AND instr(choices, ?)"
        " AND state IN ('yes', 'no')",
        (said.person, conversation, f'"{said.button}"'),
    ).fetchone()
    return "" if row is None else str(row["state"])


def _hear_words(
    conn: Connection, conversation: str, waiting: Sequence[_Said], now: float, quiet: float, longest: float
) -> Heard | NotYet | None:
    """Words that name no question, all of a burst together."""
    burst = list(takewhile(lambda said: said.kind == "message", waiting))
    if not burst or any(said.button or said.quoted for said in burst):
        return None
    choice, first = burst[0].choice, burst[0].at
    if choice is None or any(said.choice != choice for said in burst):
        return None
    asked = _asked(conn, conversation, burst[0], since=first)
    written = min((said.written_at for said in burst if said.written_at is not None), default=None)
    meant = [one for one in asked if _came_before(one, first, written)]
    if not meant:
        return None
    if len(meant) == 1 and (not _offers(meant[0], choice) or _spoke_for_others(conn, meant[0])):
        return None
    over = min(burst[-1].at + quiet, first + longest)
    if len(burst) == len(waiting) and first <= now < over:
        return NotYet(over)
    _take(conn, burst, now)
    last = burst[-1]
    still_open = [one for one in meant if one["state"] == "open"]
    if not still_open:  # answered meanwhile by a button; nothing is to be said of words that agree with it
        answer = "no" if choice == "no" else "yes"
        others = [str(one["state"]) for one in meant if one["state"] != answer]
        given = next((state for state in others if state in _ANSWERS), "")
        return Heard(last.seq, last.person, closed=bool(others), answer=given)
    if len(meant) > 1:  # also where one of the two was answered while these words waited
        return Heard(last.seq, last.person, unclear=tuple(approval_of(one) for one in still_open))
    settle(conn, meant[0], choice, last.person, now)
    return Heard(last.seq, last.person)


def _came_before(asked: Row, received: float, written: float | None) -> bool:
    """Whether a question was sent before words came in and, by WhatsApp's clock, before they were written.

    Where that clock says so surely ours is not asked: what a crash cut off on the wire is known as sent only
    once the status comes in, perhaps beside the words.
    """
    if written is not None and asked["told_at"] is not None and asked["told_at"] < written:
        return True
    if asked["sent_at"] is None or asked["sent_at"] > received:
        return False
    return written is None or asked["told_at"] is None or asked["told_at"] <= written


def _take(conn: Connection, heard: Sequence[_Said], now: float) -> None:
    conn.executemany("UPDATE inbox SET done_at = ? WHERE seq = ?", [(now, said.seq) for said in heard])


def _offers(approval: Row, choice: Choice | None) -> bool:
    return choice in orjson.loads(approval["choices"]).values()


def _spoke_for_others(conn: Connection, approval: Row) -> bool:
    """Whether the model answered since with text of others before it, if only by a receipt, or a reminder
    came, which may ask something too: the person's word may never have been meant for the question."""
    row = conn.execute(
        "SELECT 1 FROM turns WHERE conversation_id = ?1 AND done_at >= ?2 AND state = 'done'"
        " AND outcome IN ('answered', 'failed') AND taint <> '' UNION ALL"
        " SELECT 1 FROM schedules WHERE conversation_id = ?1 AND told_at >= ?2 LIMIT 1",
        (approval["conversation_id"], approval["created_at"]),
    ).fetchone()
    return row is not None


def _asked(conn: Connection, conversation: str, by: _Said, since: float | None = None) -> list[Row]:
    """A person's open questions whose message has been on its way, with when it arrived at WhatsApp, if it
    did, by our clock and by WhatsApp's; with `since` also those that were still open then."""
    return conn.execute(
        "SELECT a.*, o.sent_at,"
        " (SELECT s.at FROM statuses s WHERE s.wamid = o.wamid AND s.status = 'sent' AND s.at > 0) AS told_at"
        " FROM approvals a JOIN outbox o ON o.id = a.outbox_id"
        " WHERE a.person_id = ? AND a.conversation_id = ? AND (a.state = 'open' OR a.answered_at >= ?)"
        f" AND o.state <> 'ready' AND NOT {FAILED} ORDER BY a.created_at, a.rowid",
        (by.person, conversation, since),
    ).fetchall()


def _is_quoted(conn: Connection, approval: Row, wamid: str) -> bool:
    row = conn.execute(
        f"SELECT 1 FROM outbox WHERE id IN {sent_as('?1')} AND source = ?2",
        (wamid, f"approval:{approval['id']}"),
    ).fetchone()
    return row is not None
