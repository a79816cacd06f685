"""The rows that a turn starts from, read where its attempt is counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row

import orjson

from app.messages import JSON
from app.people import Conversation
from app.store import approvals, facts, uncertain
from app.store.facts import Fact
from app.store.journal import TurnGone, tokens_used
from app.store.outbox import sent_as
from app.store.own_words import in_own_words, told_later
from app.store.uncertain import UncertainCall


@dataclass(frozen=True, slots=True)
class Entry:
    """One journal row; its key says what it is (docs/architecture.md)."""

    key: str
    payload: JSON


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message as the turn reads it: what was said, and what came with it."""

    row: int
    wamid: str
    kind: str
    text: str
    payload: JSON
    at: float
    command: str
    waited: bool = False
    """It came faster than the person's pace, and so was taken up later than it came."""
    received_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Exchange:
    """One earlier turn of a conversation: what the person said and what they were answered."""

    said: str
    reply: str
    at: float
    sources: tuple[str, ...] = ()
    """Where text of others in it came from."""
    found: tuple[str, ...] = ()
    """Addresses that a search listed in it."""
    own: str = ""
    """What the person said in their own words (see `own_words.py`)."""


@dataclass(frozen=True, slots=True)
class TurnState:
    """What the rows say that a turn starts from, read in the transaction that counts the attempt."""

    id: str
    attempts: int
    created_at: float
    person: Row
    aliases: tuple[str, ...]
    """Phones, then business-scoped ids."""
    conversation: Conversation
    sticky_tools: tuple[str, ...]
    sticky_categories: tuple[str, ...]
    active_skills: tuple[str, ...]
    members: tuple[InboxMessage, ...]
    journal: tuple[Entry, ...]
    exchanges: tuple[Exchange, ...]
    quoted: dict[str, tuple[str, str]]
    """Text of the quoted messages by wamid, with their direction."""
    tokens_today: int
    first_contact: bool
    open_questions: tuple[str, ...] = ()
    """What the person was asked in this conversation and has not answered, a line each."""
    taint: tuple[str, ...] = ()
    """Where text of others in the turn itself came from when it was laid aside: its prompt may have lost it
    since, what the model made of it stays."""
    asked_after: tuple[str, ...] = ()
    """Where text of others in the turns of those questions came from: it may stand in these lines."""
    uncertain: frozenset[UncertainCall] = frozenset()
    """The person's calls that may have happened or not."""
    facts: tuple[Fact, ...] = ()
    """What the person asked to be remembered, the newest first; nothing of it where others read along."""
    tried_before: bool = False
    """Earlier attempts, or crashes beside other turns, speak against it."""

    @property
    def received_at(self) -> float | None:
        """When its newest message came in."""
        return max((member.received_at for member in self.members), default=None)


def begin(conn: Connection, turn: str, now: float, history: int, day: str) -> TurnState:
    """Counts an attempt and reads what the turn starts from. Raises TurnGone where it has ended."""
    row = conn.execute(
        "UPDATE turns SET state = 'running', attempts = attempts + 1 WHERE id = ?"
        " AND state IN ('queued', 'running') RETURNING *",
        (turn,),
    ).fetchone()
    if row is None:
        raise TurnGone(f"turn {turn} has ended")
    person = conn.execute("SELECT * FROM people WHERE id = ?", (row["person_id"],)).fetchone()
    conversation = conn.execute(
        "SELECT * FROM conversations WHERE id = ?", (row["conversation_id"],)
    ).fetchone()
    members = _members(conn, turn)
    exchanges = _exchanges(conn, conversation, turn, history)
    waiting = approvals.waiting(conn, conversation["id"])
    return TurnState(
        id=turn,
        attempts=row["attempts"],
        created_at=row["created_at"],
        person=person,
        aliases=_aliases(conn, person["id"]),
        conversation=Conversation(
            conversation["id"], person["id"], conversation["channel"], conversation["group_id"]
        ),
        sticky_tools=tuple(orjson.loads(conversation["tools"])),
        sticky_categories=tuple(orjson.loads(conversation["categories"])),
        active_skills=tuple(orjson.loads(conversation["skills"])),
        members=members,
        journal=_journal(conn, turn),
        exchanges=exchanges,
        quoted=_quoted(conn, conversation["id"], members),
        tokens_today=tokens_used(conn, person["id"], day),
        first_contact=not exchanges and _is_first(conn, person["id"], turn),
        open_questions=tuple(one.title for one in waiting),
        taint=tuple(row["taint"].splitlines()),
        asked_after=tuple(source for one in waiting for source in one.sources),
        uncertain=uncertain.of_person(conn, person["id"]),
        facts=() if conversation["group_id"] else facts.of_person(conn, person["id"]),
        tried_before=row["attempts"] > 1 or row["crowded"] > 0,
    )


def _aliases(conn: Connection, person: str) -> tuple[str, ...]:
    rows = conn.execute("SELECT value FROM aliases WHERE person_id = ? ORDER BY kind", (person,))
    return tuple(row["value"] for row in rows)


def _journal(conn: Connection, turn: str) -> tuple[Entry, ...]:
    rows = conn.execute("SELECT key, payload FROM journal WHERE turn_id = ?", (turn,))
    return tuple(Entry(row["key"], orjson.loads(row["payload"])) for row in rows)


def _members(conn: Connection, turn: str) -> tuple[InboxMessage, ...]:
    rows = conn.execute(
        "SELECT m.id, m.wamid, m.kind, m.text, m.payload, m.at, i.kind AS command, i.received_at,"
        " i.due_at > i.received_at AS waited FROM inbox i"
        " JOIN messages m ON m.id = i.message_id WHERE i.turn_id = ? ORDER BY i.seq",
        (turn,),
    )
    return tuple(
        InboxMessage(
            row["id"],
            row["wamid"] or "",
            row["kind"],
            row["text"],
            orjson.loads(row["payload"]),
            row["at"],
            "" if row["command"] == "message" else row["command"],
            bool(row["waited"]),
            row["received_at"],
        )
        for row in rows
    )


def _exchanges(conn: Connection, conversation: Row, turn: str, limit: int) -> tuple[Exchange, ...]:
    """The window of earlier turns. Past `limit` its older half goes at once, so that the start of the
    prompt stays the same for many turns and a provider's prompt cache keeps hitting."""
    rows = conn.execute(
        "SELECT t.id, t.reply, t.created_at, t.taint FROM turns t WHERE t.conversation_id = ?"
        " AND t.created_at >= ? AND t.state = 'done' AND t.outcome = 'answered' AND t.id <> ?"
        " ORDER BY t.created_at DESC, t.rowid DESC LIMIT ?",
        (conversation["id"], conversation["history_from"], turn, limit + 1),
    ).fetchall()
    if len(rows) > limit:
        rows = rows[: limit // 2]
        conn.execute(
            "UPDATE conversations SET history_from = ? WHERE id = ?",
            (rows[-1]["created_at"], conversation["id"]),
        )
    said = _said(conn, [row["id"] for row in rows])
    found = _found(conn, [row["id"] for row in rows])
    return tuple(
        Exchange(
            "\n".join(text for text, _ in said[row["id"]]),
            row["reply"],
            row["created_at"],
            tuple(row["taint"].splitlines()),
            tuple(found.get(row["id"], ())),
            "\n".join(text for text, is_own in said[row["id"]] if is_own),
        )
        for row in reversed(rows)
    )


def _said(conn: Connection, turns: Sequence[str]) -> dict[str, list[tuple[str, bool]]]:
    """What the person sent, by turn, and whether it is in their own words."""
    marks = ",".join("?" * len(turns))
    rows = conn.execute(
        f"SELECT turn_id, kind, text, payload FROM messages WHERE turn_id IN ({marks}) AND direction = 'in'"
        " ORDER BY id",
        turns,
    )
    said: dict[str, list[tuple[str, bool]]] = {turn: [] for turn in turns}
    for row in rows:
        kind, payload = row["kind"], orjson.loads(row["payload"])
        said[row["turn_id"]].append((told_later(kind, row["text"], payload), in_own_words(kind, payload)))
    return said


def _found(conn: Connection, turns: Sequence[str]) -> dict[str, list[str]]:
    """The addresses that searches listed, by turn; forgotten with the journal."""
    rows = conn.execute(
        f"SELECT turn_id, payload FROM journal WHERE turn_id IN ({','.join('?' * len(turns))})"
        " AND key > 'found:' AND key < 'found;'",
        turns,
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["turn_id"], []).extend(orjson.loads(row["payload"]))
    return found


def _quoted(
    conn: Connection, conversation: str, members: Sequence[InboxMessage]
) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for wamid in {str(member.payload.get("quoted") or "") for member in members} - {""}:
        row = conn.execute(
            "SELECT kind, text, payload, direction FROM messages WHERE conversation_id = ?2"
            " AND (wamid = ?1 OR id IN"
            f" (SELECT message_id FROM outbox WHERE id IN {sent_as('?1')}))",
            (wamid, conversation),
        ).fetchone()
        if row is not None:
            text = told_later(row["kind"], row["text"], orjson.loads(row["payload"]))
            found[wamid] = (text, row["direction"])
    return found


def _is_first(conn: Connection, person: str, turn: str) -> bool:
    row = conn.execute(
        "SELECT 1 FROM turns WHERE person_id = ? AND id <> ? AND (outcome = 'answered' OR state = 'parked')"
        " LIMIT 1",
        (person, turn),
    ).fetchone()
    return row is None
