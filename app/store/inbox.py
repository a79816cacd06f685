"""Taking messages in: dedupe, who it is, the message's text, and its place in the queue."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from sqlite3 import Connection

import orjson

from app.messages import AliasChange, Inbound, Sender, Unreadable
from app.people import Conversation, Person
from app.store import approvals, dead_letters, people
from app.store.outbox import Draft, put_notice
from app.store.ownership import Doors
from app.store.people import Admitted, TurnedAway

MOST_DEAD_LETTERS = 50
"""Of one body."""
SILENT_KINDS = frozenset({"system", "reaction", "revoke"})
"""Kinds that are recorded and answered by nobody."""


@dataclass(frozen=True, slots=True)
class Pace:
    """At most `limit` messages of a person in `window` seconds; what is over waits. 0 means no limit."""

    limit: int
    window: float


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message, with what had to be made outside the transaction."""

    message: Inbound
    kind: str
    """'message', 'answer' where it presses a question's button, or a command's name."""
    answers: bool = False
    """Its words alone would answer a question."""


@dataclass(slots=True)
class Taken:
    """What a body came to."""

    accepted: int = 0
    duplicates: int = 0
    wake: set[str] = field(default_factory=set)
    """Conversations with a command or an answer: it is obeyed at once."""
    expect: set[str] = field(default_factory=set)
    """Conversations with a message: more may follow within the burst."""
    notices: set[str] = field(default_factory=set)
    """People whose outbox got a notice."""
    turned_away: list[TurnedAway] = field(default_factory=list)
    new_owners: list[str] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Entrance:
    """How a channel's messages come in."""

    channel: str
    doors: Doors
    pace: Pace
    key: bytes
    """Key of the hash under which message ids are remembered."""
    too_fast: Callable[[Person, Inbound], Draft]
    owner_welcome: Callable[[Person, Inbound], Draft]


def take_in(
    conn: Connection,
    entrance: Entrance,
    arrivals: Sequence[Arrival],
    changes: Sequence[AliasChange],
    pairs: Sequence[Sender],
    unreadable: Sequence[Unreadable],
    now: float,
) -> Taken:
    """Everything of one body, in one transaction."""
    taken = Taken()
    told = [arrival.message.change for arrival in arrivals]
    for change in changes:
        if change not in told and _is_new(conn, entrance, f"change:{change}", now):
            people.apply_change(conn, entrance.doors.realm, change, entrance.doors, now)
    for arrival in arrivals:
        _take_one(conn, entrance, arrival, taken, now)
    for pair in pairs:
        people.pair(conn, entrance.doors, pair, now)
    for part in unreadable[:MOST_DEAD_LETTERS]:
        dead_letters.put(conn, entrance.channel, part.reason, part.part, now)
    return taken


def _take_one(conn: Connection, entrance: Entrance, arrival: Arrival, taken: Taken, now: float) -> None:
    message = arrival.message
    if not _is_new(conn, entrance, message.id, now):
        taken.duplicates += 1
        return
    if message.change is not None:
        people.apply_change(conn, entrance.doors.realm, message.change, entrance.doors, now)
    sender = message.sender if message.change is None else message.change.current
    who = people.admit(conn, entrance.doors, sender, message.text, now)
    if isinstance(who, TurnedAway):
        taken.turned_away.append(who)
        return
    taken.accepted += 1
    person = who.person
    conversation = people.conversation(conn, person.id, entrance.channel, message.group, now)
    row = _keep(conn, conversation, message, now)
    if who.became_owner:
        taken.new_owners.append(message.sender.phone or message.sender.user_id)
        put_notice(conn, conversation, f"owner:{person.id}", entrance.owner_welcome(person, message), now)
        taken.notices.add(person.id)
        return
    if (
        message.kind == "reaction"
        and arrival.answers
        and approvals.asks(conn, conversation.id, message.quoted)
    ):
        arrival = replace(arrival, kind="answer")
    elif message.kind in SILENT_KINDS:
        if message.kind == "revoke":
            _withdraw(conn, person.id, message.quoted, now)
        return
    _queue(conn, entrance, who, conversation, arrival, row, taken, now)


def _queue(
    conn: Connection,
    entrance: Entrance,
    who: Admitted,
    conversation: Conversation,
    arrival: Arrival,
    message_row: int,
    taken: Taken,
    now: float,
) -> None:
    at_once = arrival.kind in ("stop", "answer")  # neither is made to wait
    due = now if at_once else _due_at(conn, entrance.pace, who.person.id, now)
    silent = bool(conversation.group) or who.frozen
    if due > now and not silent and not _already_waiting(conn, who.person.id, now):
        source = f"rate:{who.person.id}:{int(now // entrance.pace.window)}"
        put_notice(conn, conversation, source, entrance.too_fast(who.person, arrival.message), now)
        taken.notices.add(who.person.id)
    conn.execute(
        "INSERT INTO inbox (message_id, person_id, conversation_id, kind, received_at, due_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (message_row, who.person.id, conversation.id, arrival.kind, now, due),
    )
    if who.frozen:
        taken.frozen.append(arrival.message.sender.phone or arrival.message.sender.user_id)
    elif arrival.kind == "message" and not (arrival.answers and arrival.message.quoted):
        taken.expect.add(conversation.id)
    else:
        taken.wake.add(conversation.id)


def _withdraw(conn: Connection, person: str, wamid: str, now: float) -> None:
    """The person deleted what they had written: what no turn has taken up yet is not answered any more."""
    conn.execute(
        "UPDATE inbox SET done_at = ? WHERE turn_id IS NULL AND done_at IS NULL AND person_id = ?"
        " AND message_id = (SELECT id FROM messages WHERE wamid = ? AND direction = 'in')",
        (now, person, wamid),
    )


def _is_new(conn: Connection, entrance: Entrance, message_id: str, now: float) -> bool:
    key = blake2b(message_id.encode("utf-8", "replace"), key=entrance.key, digest_size=16).digest()
    return conn.execute("INSERT INTO seen VALUES (?, ?) ON CONFLICT DO NOTHING", (key, now)).rowcount == 1


def _keep(conn: Connection, conversation: Conversation, message: Inbound, now: float) -> int:
    payload = {
        "quoted": message.quoted,
        "button": message.button,
        "forwarded": message.forwarded,
        "sent_at": message.at,
        "details": message.details,
        "attachment": message.attachment,
    }
    row = conn.execute(
        "INSERT INTO messages (person_id, conversation_id, direction, wamid, kind, text, payload, at)"
        " VALUES (?, ?, 'in', ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            conversation.person_id,
            conversation.id,
            message.id,
            message.kind,
            message.text,
            orjson.dumps(payload, default=str, option=orjson.OPT_NON_STR_KEYS).decode(),
            now,
        ),
    )
    if row.rowcount:
        return int(row.lastrowid or 0)
    known = conn.execute("SELECT id FROM messages WHERE wamid = ?", (message.id,)).fetchone()
    return int(known["id"])  # older than the dedupe keys we keep, but its text is still here


def _due_at(conn: Connection, pace: Pace, person: str, now: float) -> float:
    """When the next message of a person may be taken up: `limit` places later, a window later."""
    if not pace.limit:
        return now
    row = conn.execute(
        "SELECT due_at FROM inbox WHERE person_id = ? AND received_at <= ? ORDER BY due_at DESC"
        " LIMIT 1 OFFSET ?",  # rows of a clock that was set back since do not count
        (person, now, pace.limit - 1),
    ).fetchone()
    return now if row is None else max(now, row["due_at"] + pace.window)


def _already_waiting(conn: Connection, person: str, now: float) -> bool:
    row = conn.execute("SELECT 1 FROM inbox WHERE person_id = ? AND due_at > ?", (person, now)).fetchone()
    return row is not None


def waiting(conn: Connection, channels: Collection[str], now: float, ahead: float = 0.0) -> list[str]:
    """Conversations of these channels with something to do within `ahead` seconds: due messages unclaimed,
    or turns not done."""
    until = now + ahead
    rows = conn.execute(
        "SELECT c.id, c.channel FROM conversations c WHERE c.id IN ("
        "SELECT conversation_id FROM inbox WHERE turn_id IS NULL AND done_at IS NULL"
        " AND (due_at <= ? OR received_at > ?)"  # the latter after a clock was set back
        " UNION SELECT conversation_id FROM turns WHERE state <> 'done' AND state <> 'parked'"
        " AND (due_at IS NULL OR due_at <= ? OR created_at > ?))",
        (until, now, until, now),
    )
    return [row["id"] for row in rows if row["channel"] in channels]
