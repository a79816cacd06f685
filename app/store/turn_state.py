"""The state that a turn starts from, read from the rows in the transaction that counts the attempt.

A part of it is the running summary of what was said before the last exchanges.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import orjson
from pydantic import TypeAdapter

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON, FollowUp, in_own_words, retold
from app.people import Conversation
from app.store import approvals
from app.store.database import Connection, Row, delete, exists, placeholders, read_row, scalar, update
from app.store.journal import TurnGone, UncertainCall, tokens_used, uncertain_calls
from app.store.outbox import SENT_AS
from app.store.people import KnownPerson, by_id
from app.store.schedules import SOURCE
from app.store.skill_data import Fact, facts
from app.text import on_one_line

RETRY_SECONDS = 600.0  # between two attempts to write a summary
MOST_ATTEMPTS = 3
MOST_EXCHANGES = 100
MOST_FACTS = 200
_ANSWERED_BEFORE = (
    "SELECT 1 FROM turns WHERE person_id = ? AND id <> ? AND (outcome = 'answered' OR state = 'parked')"
)
# SQL for the taint of a message of ours: that of its turn or its reminder, else unknown
_SOURCES = (
    "coalesce(t.taint, (SELECT s.taint FROM schedules s JOIN outbox o ON o.message_id = m.id"
    f" WHERE s.person_id = m.person_id AND o.source LIKE '{SOURCE}' || s.id || ':%' LIMIT 1), 'unknown')"
)
_CALL_CHARACTERS = 160
_VALUE_CHARACTERS = 60
_FOLLOW_UP = TypeAdapter(FollowUp)

Parts = Mapping[str, Sequence[str]]  # of a summary: lines by the name of their part


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A message of the turn: its text, and what came with it."""

    row: int
    wamid: str
    kind: str
    text: str
    payload: JSON
    at: float
    command: str
    received_at: float = 0.0


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call of an earlier turn; `changed`: its result told of a change; `ok` is False without a result."""

    tool: str
    arguments: dict[str, JSON]
    ok: bool = False
    changed: bool = False
    follow_up: FollowUp = field(default_factory=FollowUp)

    def __str__(self) -> str:
        """Return its short form: "add_to_list(items: milk)"."""
        values = []
        for name, value in self.arguments.items():
            text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
            values.append(f"{name}: {on_one_line(text, _VALUE_CHARACTERS)}")
        return f"{self.tool}({', '.join(values)})"[:_CALL_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier turn of a conversation: what the person said and what they were answered."""

    said: str
    reply: str
    at: float
    sources: tuple[str, ...] = ()  # where text of others in it came from
    found: tuple[str, ...] = ()  # addresses that a search listed in it
    own: str = ""  # what the person said in their own words
    calls: tuple[PastCall, ...] = ()  # behind the reply
    by_business: bool = False  # a person of the business wrote the reply


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A summary and the exchanges since it, the oldest first; `since` is where the window begins."""

    conversation: str
    person: str
    parts: Parts
    zone: str
    since: float
    exchanges: Sequence[Exchange]


class Quoted(NamedTuple):
    """A quoted message: whose it is, and whether it may hold text of others."""

    text: str
    by_person: bool
    outside: bool


@dataclass(frozen=True, slots=True)
class TurnState:
    """Everything in the database that a turn starts from."""

    id: str
    attempts: int
    created_at: float
    person: KnownPerson
    conversation: Conversation
    sticky_tools: tuple[str, ...]
    sticky_categories: tuple[str, ...]
    active_skills: tuple[str, ...]
    members: tuple[InboxMessage, ...]
    journal: Mapping[str, JSON]  # by key: `route`, `llm:N`, `intent:N:ID`, `tool:N:ID`
    exchanges: tuple[Exchange, ...]
    quoted: dict[str, Quoted]  # by wamid
    tokens_today: int
    first_contact: bool
    open_questions: tuple[str, ...] = ()  # their lines, in this conversation
    # Where text of others came from when this turn was parked: its prompt may have lost that text since,
    # but what the model made of it stays.
    taint: tuple[str, ...] = ()
    asked_after: tuple[str, ...] = ()  # the same, of the turns that asked the open questions
    uncertain: frozenset[UncertainCall] = frozenset()  # the person's calls of unknown outcome
    facts: tuple[Fact, ...] = ()  # that the person asked to be remembered, the newest first; none in a group
    has_asked: bool = False  # this turn asked the person whether a call may run
    summary: Parts = field(default_factory=dict)  # of what was said before the exchanges

    @property
    def received_at(self) -> float | None:
        """Return when the newest message of the turn came in."""
        return max((member.received_at for member in self.members), default=None)


def load_turn(conn: Connection, turn: str, history: int, day: str) -> TurnState:
    """Count an attempt and read the state of the turn. Raises TurnGone if it has ended."""
    row = conn.execute(
        "UPDATE turns SET state = 'running', attempts = attempts + 1 WHERE id = ?"
        " AND state IN ('queued', 'running') RETURNING *",
        (turn,),
    ).fetchone()
    if row is None:
        raise TurnGone(f"turn {turn} has ended")
    return _read_turn(conn, row, history, day)


def replayed_turn(conn: Connection, turn: str, history: int, day: str) -> TurnState:
    """Read the state of a turn as if it began now, and write nothing. Raises RecadoError if there is none."""
    row = conn.execute("SELECT * FROM turns WHERE id = ?", (turn,)).fetchone()
    if row is None:
        raise RecadoError(lazy("there is no turn {id!r}", id=turn[:100]))
    state = _read_turn(conn, row, history, day)
    before = tuple(one for one in state.exchanges if one.at < state.created_at)
    return replace(state, journal={}, exchanges=before, open_questions=(), taint=(), has_asked=False)


def _read_turn(conn: Connection, row: Row, history: int, day: str) -> TurnState:
    turn = row["id"]
    person = by_id(conn, row["person_id"])
    sql = "SELECT * FROM conversations WHERE id = ?"
    conversation = conn.execute(sql, (row["conversation_id"],)).fetchone()
    members = _members(conn, turn)
    exchanges = _window(conn, conversation, turn, history)
    waiting = approvals.open_in(conn, conversation["id"])
    return read_row(
        TurnState,
        row,
        person=person,
        conversation=Conversation(
            conversation["id"], person.id, conversation["channel"], conversation["group_id"]
        ),
        sticky_tools=tuple(orjson.loads(conversation["tools"])),
        sticky_categories=tuple(orjson.loads(conversation["categories"])),
        active_skills=tuple(orjson.loads(conversation["skills"])),
        members=members,
        journal=_journals(conn, [turn])[turn],
        exchanges=exchanges,
        quoted=_quoted(conn, conversation["id"], members),
        tokens_today=tokens_used(conn, person.id, day),
        first_contact=not exchanges and not exists(conn, _ANSWERED_BEFORE, person.id, turn),
        open_questions=tuple(one.title for one in waiting),
        taint=tuple(row["taint"].splitlines()),
        asked_after=tuple(source for one in waiting for source in one.sources),
        uncertain=uncertain_calls(conn, person.id),
        facts=() if conversation["group_id"] else tuple(reversed(facts(conn, person.id)[-MOST_FACTS:])),
        summary=summary_of(conn, conversation["id"]),
        has_asked=exists(conn, "SELECT 1 FROM approvals WHERE turn_id = ?", turn),
    )


def summary_of(conn: Connection, conversation: str) -> Parts:
    """Return the running summary of a conversation, {} if there is none."""
    sql = "SELECT parts FROM summaries WHERE conversation_id = ?"
    parts: Parts = orjson.loads(scalar(conn, sql, conversation) or "{}")
    return parts


def _members(conn: Connection, turn: str) -> tuple[InboxMessage, ...]:
    rows = conn.execute(
        "SELECT m.id AS row, CASE m.kind WHEN 'scheduled' THEN '' ELSE coalesce(m.wamid, '') END AS wamid,"
        " m.kind, m.text, m.payload, m.at, i.received_at,"
        " CASE WHEN i.kind IN ('message', 'scheduled') THEN '' ELSE i.kind END AS command FROM inbox i"
        " JOIN messages m ON m.id = i.message_id WHERE i.turn_id = ? ORDER BY i.seq",
        (turn,),
    )
    return tuple(InboxMessage(**{**row, "payload": orjson.loads(row["payload"])}) for row in rows)


def _window(conn: Connection, conversation: Row, turn: str, limit: int) -> tuple[Exchange, ...]:
    """Return the newest exchanges of the conversation, the oldest first.

    Past `limit` the older half goes at once, so that the start of the prompt stays the same for many turns
    and a provider's prompt cache keeps hitting. Mostly a summary has taken in what is old before that.
    """
    since = conversation["history_from"]
    exchanges = exchanges_since(conn, conversation["id"], since, but=turn, limit=limit + 1)
    if len(exchanges) > limit:
        exchanges = exchanges[-(limit // 2) :]
        update(conn, "conversations", "id = ?", conversation["id"], history_from=exchanges[0].at)
    return exchanges


def exchanges_since(
    conn: Connection, conversation: str, since: float, *, but: str = "", limit: int = MOST_EXCHANGES
) -> tuple[Exchange, ...]:
    """Return the newest exchanges of a conversation from `since` on, the oldest first, without turn `but`."""
    rows = conn.execute(
        "SELECT t.id, t.reply, t.outcome, t.created_at, t.taint FROM turns t WHERE t.conversation_id = ?"
        " AND t.created_at >= ? AND t.state = 'done' AND t.outcome IN ('answered', 'business') AND t.id <> ?"
        " ORDER BY t.created_at DESC, t.id DESC LIMIT ?",
        (conversation, since, but, limit),
    ).fetchall()
    shown = [row["id"] for row in rows]
    said, journals = _said(conn, shown), _journals(conn, shown)
    results = {turn: [row.get("facts", {}) for row in kept.values()] for turn, kept in journals.items()}
    return tuple(
        Exchange(
            "\n".join(text for text, _ in said[row["id"]]),
            row["reply"],
            row["created_at"],
            tuple(row["taint"].splitlines()),
            tuple(address for facts in results[row["id"]] for address in facts.get("found", ())),
            "\n".join(text for text, is_own in said[row["id"]] if is_own),
            tuple(_past_calls(journals[row["id"]])),
            row["outcome"] == "business",
        )
        for row in reversed(rows)
    )


def _said(conn: Connection, turns: Sequence[str]) -> dict[str, list[tuple[str, bool]]]:
    """Return the person's messages by turn, each with whether it is in their own words."""
    rows = conn.execute(
        "SELECT turn_id, kind, text, payload FROM messages"
        f" WHERE turn_id IN ({placeholders(turns)}) AND direction = 'in' ORDER BY id",
        turns,
    )
    said: dict[str, list[tuple[str, bool]]] = {turn: [] for turn in turns}
    for turn, kind, text, written in rows:
        payload = orjson.loads(written)
        said[turn].append((retold(kind, text, payload), in_own_words(kind, payload)))
    return said


def _journals(conn: Connection, turns: Sequence[str]) -> dict[str, dict[str, JSON]]:
    """Return the rows of the turns' journals that are still kept, by turn and key."""
    sql = f"SELECT turn_id, key, payload FROM journal WHERE turn_id IN ({placeholders(turns)}) ORDER BY key"
    rows = conn.execute(sql, turns)
    kept: dict[str, dict[str, JSON]] = {turn: {} for turn in turns}
    for row in rows:
        kept[row["turn_id"]][row["key"]] = orjson.loads(row["payload"])
    return kept


def _past_calls(journal: dict[str, JSON]) -> Iterator[PastCall]:
    for key, answer in journal.items():
        for call in answer["calls"] if key.startswith("llm:") else ():
            given, number = call["arguments"], key.removeprefix("llm:")
            with suppress(ValueError):
                given = orjson.loads(given) if isinstance(given, str) else given
            arguments = given if isinstance(given, dict) else {}
            facts = journal.get(f"tool:{number}:{call['id']}", {}).get("facts", {})
            follow_up = _FOLLOW_UP.validate_python(facts.get("follow_up", {}))
            changed = bool(facts.get("receipt"))
            yield PastCall(call["name"], arguments, facts.get("ok", False), changed, follow_up)


def _quoted(conn: Connection, conversation: str, members: Sequence[InboxMessage]) -> dict[str, Quoted]:
    found: dict[str, Quoted] = {}
    for wamid in {str(member.payload.get("quoted") or "") for member in members} - {""}:
        row = conn.execute(
            f"SELECT m.kind, m.text, m.payload, m.direction, {_SOURCES} AS sources FROM messages m"
            " LEFT JOIN turns t ON t.id = m.turn_id WHERE m.conversation_id = ?"
            f" AND (m.wamid = ? OR m.id IN (SELECT message_id FROM outbox WHERE id IN {SENT_AS}))",
            (conversation, wamid, wamid, wamid),
        ).fetchone()
        if row is not None:
            payload, by_person = orjson.loads(row["payload"]), row["direction"] == "in"
            outside = not in_own_words(row["kind"], payload) if by_person else bool(row["sources"])
            found[wamid] = Quoted(retold(row["kind"], row["text"], payload), by_person, outside)
    return found


def request_summary(conn: Connection, conversation: Conversation, zone: str, now: float) -> None:
    """Note that a conversation outgrows its window, unless that is known."""
    conn.execute(
        "INSERT INTO summaries (conversation_id, person_id, due_at, zone) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (conversation_id) DO UPDATE SET due_at = excluded.due_at, zone = excluded.zone,"
        " attempts = 0 WHERE summaries.due_at IS NULL",
        (conversation.id, conversation.person_id, now, zone),
    )


def recover_summaries(conn: Connection, now: float) -> None:
    """Take up at once what a crash cut off."""
    conn.execute("UPDATE summaries SET due_at = ? WHERE due_at IS NOT NULL", (now,))


def take_due_summary(conn: Connection, now: float) -> Unfolded | None:
    """Take the next summary that is due, for one attempt; None if none is."""
    row = conn.execute(
        "SELECT s.conversation_id AS conversation, s.person_id AS person, s.parts, s.zone, s.attempts,"
        " c.history_from AS since FROM summaries s JOIN conversations c ON c.id = s.conversation_id"
        " WHERE s.due_at <= ? ORDER BY s.due_at LIMIT 1",
        (now,),
    ).fetchone()
    if row is None:
        return None
    is_last = row["attempts"] + 1 >= MOST_ATTEMPTS
    tried = {"attempts": row["attempts"] + 1, "due_at": None if is_last else now + RETRY_SECONDS}
    update(conn, "summaries", "conversation_id = ?", row["conversation"], **tried)
    exchanges = exchanges_since(conn, row["conversation"], row["since"])
    return read_row(Unfolded, row, parts=orjson.loads(row["parts"]), exchanges=exchanges)


def keep_summary(conn: Connection, taken: Unfolded, parts: Parts, since: float) -> bool:
    """Keep the new summary and move the window, unless either changed since it was taken."""
    id, unchanged = taken.conversation, "id = ? AND history_from = ?"
    if not update(conn, "conversations", unchanged, id, taken.since, history_from=since):
        return False
    folded = {"parts": orjson.dumps(parts).decode(), "due_at": None, "attempts": 0}
    return bool(update(conn, "summaries", "conversation_id = ?", id, **folded))


def drop_summary_line(conn: Connection, conversation: str, number: int) -> str | None:
    """Take the line of a number, counted through all parts, out of a summary; return it, None if none is."""
    parts = summary_of(conn, conversation)
    lines = [(name, line) for name, listed in parts.items() for line in listed]
    if not 0 < number <= len(lines):
        return None
    gone = lines.pop(number - 1)
    left = {name: [line for part, line in lines if part == name] for name in parts}
    update(conn, "summaries", "conversation_id = ?", conversation, parts=orjson.dumps(left).decode())
    return gone[1]


def forget_summary(conn: Connection, conversation: str) -> None:
    """Delete the summary of a conversation."""
    delete(conn, "summaries", "conversation_id = ?", conversation)
