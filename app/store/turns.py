"""Turns: claiming a burst, stopping, ending, and recovery after a crash or a fault."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import dropwhile
from typing import Literal

import orjson

from app.errors import RecadoError
from app.i18n import lazy
from app.people import Conversation
from app.store import alerts, approvals, choices, events, media, outbox, ownership, turn_state
from app.store.approvals import BURST_MESSAGES
from app.store.conditions import RUNNABLE, RUNNING, SILENT, UNCLAIMED
from app.store.database import Connection, Database, Row, exists, insert, placeholders, update
from app.store.journal import TurnGone
from app.store.outbox import Draft

MAX_ATTEMPTS = 3

TAKEN_OVER = "a person of the business answers"

# "business": a person of the business answered themselves; "silent": a watch had nothing to tell
Outcome = Literal["answered", "business", "command", "silent", "stopped", "failed", "refused"]


@dataclass(frozen=True, slots=True)
class UnreadFiles:
    """Files of the next burst, whose messages these are, are to be fetched and read first."""

    messages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """A turn to run now."""

    id: str
    attempts: int = 0  # that were cut off before they came any further
    more: bool = field(default=False, compare=False)  # something may be to do after it
    for_guest: bool = field(default=False, compare=False)

    @property
    def runs_alone(self) -> bool:
        """Return whether it was cut off twice; if it happens again, it must be sure which turn it was."""
        return self.attempts >= 2


@dataclass(frozen=True, slots=True)
class StickySelection:
    """The tools, categories and loaded skills (the oldest first) that a conversation goes on with."""

    tools: Sequence[str] = ()
    categories: Sequence[str] = ()
    skills: Sequence[str] = ()


def claim(
    conn: Connection, conversation: str, turn: str, now: float, quiet: float, longest: float
) -> Ready | float | UnreadFiles | None:
    """Return the turn to run next in a conversation: an open one, or a new one over a complete burst.

    Return UnreadFiles while the burst waits for a file; when to look again until it has been quiet for
    `quiet` seconds (at most `longest` after its first message); None if there is nothing to do.
    """
    if not _may_go_on(conn, conversation, now):
        return None
    open_turn = conn.execute(
        "SELECT id, created_at, due_at, attempts FROM turns"
        f" WHERE conversation_id = ? AND {RUNNABLE} ORDER BY created_at, id LIMIT 1",
        (conversation,),
    ).fetchone()
    if open_turn is not None:
        if (open_turn["due_at"] or 0) > now >= open_turn["created_at"]:
            return float(open_turn["due_at"])
        return Ready(open_turn["id"], open_turn["attempts"], more=True)
    rows = conn.execute(
        "SELECT seq, kind, message_id, person_id, received_at, due_at FROM inbox"
        f" WHERE conversation_id = ? AND {UNCLAIMED} ORDER BY kind = 'scheduled', seq LIMIT ?",
        (conversation, BURST_MESSAGES + 1),
    ).fetchall()
    if not rows:
        return None
    members = _burst(rows, now)
    if isinstance(members, float):
        return members
    if members[0]["kind"] == "message" and all(row["kind"] == "scheduled" for row in rows[len(members) :]):
        first, last = members[0]["received_at"], members[-1]["received_at"]
        complete = min(last + quiet, first + longest)
        if first <= now < complete:
            return float(complete)
    messages = tuple(row["message_id"] for row in members)
    if media.is_file_awaited(conn, messages):
        return UnreadFiles(messages)
    _open_turn(conn, conversation, turn, members, now)
    return Ready(turn, more=len(members) < len(rows))


def _may_go_on(conn: Connection, conversation: str, now: float) -> bool:
    """Return whether the person may be answered by us now.

    What a frozen person wrote waits, and what comes while the business answers; a blocked one's is closed.
    """
    if exists(conn, f"{SILENT} AND conversation_id = ?", now, conversation):
        return False
    person = conn.execute(
        "SELECT p.id, p.access, p.frozen FROM conversations c JOIN people p ON p.id = c.person_id"
        " WHERE c.id = ?",
        (conversation,),
    ).fetchone()
    if person is None or person["access"] != "blocked":
        return person is not None and not person["frozen"]
    _close_all(conn, "person_id = ?", person["id"], now, "the person was shut out")
    update(conn, "inbox", "person_id = ? AND done_at IS NULL", person["id"], done_at=now)
    return False


def _burst(rows: Sequence[Row], now: float) -> list[Row] | float:
    """Return the leading rows that belong together: a command alone, or messages up to the next command."""
    members: list[Row] = []
    for row in rows[:BURST_MESSAGES]:
        if row["due_at"] > now >= row["received_at"]:  # a clock set back must not delay it
            break
        if row["kind"] != "message":
            return members or [row]
        members.append(row)
    return members or float(rows[0]["due_at"])


def _open_turn(conn: Connection, conversation: str, turn: str, rows: Sequence[Row], now: float) -> None:
    seqs, person = [row["seq"] for row in rows], rows[0]["person_id"]
    insert(
        conn,
        "turns",
        id=turn,
        person_id=person,
        conversation_id=conversation,
        state="queued",
        created_at=now,
        due_at=now,
    )
    members, unclaimed = f"seq IN ({placeholders(seqs)})", f"{UNCLAIMED} AND person_id = ?"
    claimed = update(conn, "inbox", f"{members} AND {unclaimed}", *seqs, person, turn_id=turn)
    if claimed != len(seqs):
        raise RecadoError(f"claimed {claimed} of {len(seqs)} messages")
    update(conn, "messages", f"id IN (SELECT message_id FROM inbox WHERE {members})", *seqs, turn_id=turn)


def stop(conn: Connection, conversation: str, turn: str, now: float) -> Ready | None:
    """End what runs and waits before a /stop; return the turn of the /stop itself, None if none waits."""
    if not _may_go_on(conn, conversation, now):
        return None
    waiting = conn.execute(
        f"SELECT seq, kind, person_id FROM inbox WHERE conversation_id = ? AND {UNCLAIMED} ORDER BY seq DESC",
        (conversation,),
    ).fetchall()
    members = list(dropwhile(lambda row: row["kind"] != "stop", waiting))
    if not members:
        return None
    _close_all(conn, "conversation_id = ?", conversation, now)
    _open_turn(conn, conversation, turn, members, now)
    return Ready(turn, more=True)


async def is_stopped(store: Database, conversation: str, turn: str) -> bool:
    """Tell whether a turn is to stop: /stop came, the business answers itself, or the person was erased."""
    row = await store.one(
        f"SELECT 1 FROM inbox WHERE conversation_id = ? AND kind = 'stop' AND {UNCLAIMED}"
        " UNION ALL SELECT 1 FROM turns WHERE id = ? AND state = 'done' AND error = ?"
        " UNION ALL SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM turns WHERE id = ?)",
        *(conversation, turn, TAKEN_OVER, turn),
    )
    return row is not None


def end(
    conn: Connection,
    turn: str,
    conversation: Conversation,
    outcome: Outcome,
    draft: Draft | None,
    now: float,
    *,
    error: str = "",
    sticky: StickySelection | None = None,
    source: str = "",
    sources: Sequence[str] = (),
) -> None:
    """Close a turn and its messages and queue the reply, all or nothing. Raises TurnGone if it ended.

    Without a `draft` nothing is said. `source` names a reply that is sent once for several turns ("": the
    turn's own). `sources` say where text of others in its prompt came from.
    """
    reply = ownership.without_link(draft.text) if draft is not None else ""
    if not _close(conn, turn, outcome, reply, error, now, "\n".join(sources)):
        raise TurnGone(f"turn {turn} has ended")
    if draft is None:
        return
    outbox.put_reply(conn, conversation, source or f"turn:{turn}", draft, now, turn=turn)
    events.emit(conn, "message.replied", conversation.person_id, {"turn": turn, "text": reply}, now)
    if sticky is not None:
        lists = {name: orjson.dumps(listed).decode() for name, listed in asdict(sticky).items()}
        update(conn, "conversations", "id = ?", conversation.id, **lists)


def drop_unsent(conn: Connection, conversation: str, now: float) -> None:
    """End a conversation's turns without a reply, and drop the replies that were not sent."""
    _close_all(conn, "conversation_id = ?", conversation, now, TAKEN_OVER)
    choices.withdraw(conn, conversation)
    dropped = outbox.drop_unsent(conn, conversation, now)
    over = {"outcome": "stopped", "reply": "", "error": TAKEN_OVER}
    update(conn, "turns", f"id IN ({placeholders(dropped)})", *dropped, **over)


def answered_by_business(
    conn: Connection,
    conversation: Conversation,
    turn: str,
    said: str,
    now: float,
    *,
    takes_what_waits: bool = True,
) -> None:
    """Keep what a person of the business wrote as a turn of its own, with the id `turn`.

    It answers what waits, unless the conversation was given back to the assistant since.
    """
    insert(
        conn,
        "turns",
        id=turn,
        **conversation.columns,
        state="done",
        outcome="business",
        reply=said,
        created_at=now,
        done_at=now,
    )
    if takes_what_waits:
        waiting = f"conversation_id = ? AND {UNCLAIMED} AND inbox.kind <> 'scheduled'"
        answered = (
            "direction = 'in' AND (turn_id IN (SELECT id FROM turns WHERE conversation_id = ?"
            " AND state = 'done' AND outcome = 'stopped' AND error = ?)"
            f" OR id IN (SELECT message_id FROM inbox WHERE {waiting}))"
        )
        where = conversation.id
        update(conn, "messages", answered, where, TAKEN_OVER, where, turn_id=turn)
        update(conn, "inbox", waiting, where, turn_id=turn, done_at=now)


def new_conversation(conn: Connection, conversation: str, now: float) -> None:
    """Leave what was said so far out of later prompts, and withdraw open questions; the messages stay."""
    _close_all(conn, "state = 'parked' AND conversation_id = ?", conversation, now)
    choices.withdraw(conn, conversation)
    turn_state.forget_summary(conn, conversation)
    nothing = dict.fromkeys(("tools", "categories", "skills"), "[]")
    update(conn, "conversations", "id = ?", conversation, history_from=now, **nothing)


def recover(conn: Connection) -> int:
    """Queue again the turns that ran when the server crashed; return how many there were."""
    return update(conn, "turns", RUNNING, state="queued")


def release(conn: Connection, conversations: Sequence[str]) -> None:
    """Queue again what ran in conversations, at an orderly stop: that run counts as no attempt."""
    uncounted = "CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END"
    for conversation in conversations:
        conn.execute(
            f"UPDATE turns SET state = 'queued', attempts = {uncounted}"
            f" WHERE conversation_id = ? AND {RUNNING}",
            (conversation,),
        )


def postpone(conn: Connection, turn: str, due: float, error: str, *, is_its_own: bool = True) -> bool:
    """Leave a turn that failed to a later attempt; return True if it was ended instead.

    A turn whose rows cannot be read ends here with a dead letter, an alert and no reply, rather than never.
    Its attempt was undone with the reading and is counted here, unless the error is the disk's and not
    `is_its_own`.
    """
    row = conn.execute(
        "UPDATE turns SET attempts = CASE state WHEN 'queued' THEN attempts + ? ELSE attempts END,"
        " state = 'queued', due_at = ?, error = ? WHERE id = ? AND state IN ('queued', 'running')"
        " RETURNING attempts, person_id",
        (int(is_its_own), due, error[:500], turn),
    ).fetchone()
    if row is None or row["attempts"] <= MAX_ATTEMPTS + 1:
        return False
    _close(conn, turn, "failed", "", error, due)
    alerts.add_dead_letter(conn, "turn", error, {"turn": turn}, due, person=row["person_id"])
    alerts.raise_alert(conn, "turn", lazy("a turn was ended without a reply: {error}", error=error), due)
    return True


def _close_all(conn: Connection, which: str, value: str, now: float, error: str = "") -> None:
    """Stop the open turns that a condition with one parameter names."""
    rows = conn.execute(f"SELECT id FROM turns WHERE state <> 'done' AND {which}", (value,)).fetchall()
    for row in rows:
        _close(conn, row["id"], "stopped", "", error, now)


def _close(
    conn: Connection, turn: str, outcome: Outcome, reply: str, error: str, now: float, taint: str = ""
) -> bool:
    """Close an open turn; an empty `taint` keeps the row's, for its questions quote text of others."""
    changed = conn.execute(
        "UPDATE turns SET state = 'done', outcome = ?, reply = ?, error = ?,"
        " taint = coalesce(nullif(?, ''), taint), done_at = ?, due_at = NULL"
        " WHERE id = ? AND state <> 'done'",
        (outcome, reply, error[:500], taint, now, turn),
    ).rowcount
    if changed:
        update(conn, "inbox", "turn_id = ?", turn, done_at=now)
        approvals.expire_of_turn(conn, turn, now)
    return bool(changed)
