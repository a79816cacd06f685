"""The inbox: deduplication, the sender, the text of a message, and its place in the queue."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from sqlite3 import Connection
from typing import Protocol

import orjson

from app.messages import AliasChange, Echo, Inbound, Sender, ThreadControl, Unreadable
from app.people import Conversation, Person, Role
from app.store import alerts, approvals, attachments, events, handovers, limits, people
from app.store.conditions import RUNNABLE, SILENT, UNCLAIMED
from app.store.database import exists, insert
from app.store.delivery import StatusEffect
from app.store.outbox import Draft, count_since, put_reply
from app.store.ownership import AccessRules
from app.store.people import Admitted, TurnedAway

MOST_DEAD_LETTERS = 50  # of one webhook body
SILENT_KINDS = frozenset({"system", "reaction", "revoke"})  # recorded, not answered
MOST_CONTACTS_TOLD = 10  # new strangers that an owner is told of in an hour


@dataclass(frozen=True, slots=True)
class ClassifiedMessage:
    """A message and its kind: 'message', 'answer' (it presses a question's button) or a command's name."""

    message: Inbound
    kind: str
    answers: bool = False  # its words alone would answer a question


@dataclass(slots=True)
class IntakeResult:
    """The outcome of one webhook body.

    `wake` are conversations that have something to do; `notices` are people whose outbox got a notice;
    `handed_over`: somebody else may answer in a conversation now, of which owners are to be told.
    """

    accepted: int = 0
    duplicates: int = 0
    wake: set[str] = field(default_factory=set)
    notices: set[str] = field(default_factory=set)
    turned_away: list[TurnedAway] = field(default_factory=list)
    new_owners: list[str] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)
    handed_over: bool = False
    applied: list[StatusEffect] = field(default_factory=list)


class IntakeNotices(Protocol):
    """The notices that are sent while messages are taken in."""

    def too_fast(self, person: Person, message: Inbound) -> Draft: ...

    def welcome(self, person: Person, message: Inbound, became: Role) -> Draft: ...

    def first_contact(self, language: str, person: Person, message: Inbound) -> Draft: ...

    def deleted_too_late(self, person: Person, message: Inbound, reply: str) -> Draft | None: ...


@dataclass(frozen=True, slots=True)
class IntakeRules:
    """The rules by which messages of a channel are taken in."""

    channel: str
    access: AccessRules
    rate_limit: int  # messages of a person in `rate_window` seconds; the others wait. 0: no limit
    rate_window: float
    key: bytes  # key of the hash under which message ids are remembered
    notices: IntakeNotices
    silent_seconds: float = 12 * 3600  # after a person of the business wrote


def take_in(
    conn: Connection,
    rules: IntakeRules,
    messages: Sequence[ClassifiedMessage],
    changes: Sequence[AliasChange],
    pairs: Sequence[Sender],
    unreadable: Sequence[Unreadable],
    now: float,
) -> IntakeResult:
    """Take in everything of one webhook body, in one transaction."""
    taken = IntakeResult()
    told = [classified.message.change for classified in messages]
    for change in changes:
        if change not in told and is_new(conn, rules, f"change:{change}", now):
            people.apply_change(conn, rules.access.realm, change, rules.access, now)
    for classified in messages:
        _take_one(conn, rules, classified, taken, now)
    for pair in pairs:
        people.pair(conn, rules.access, pair, now)
    for part in unreadable[:MOST_DEAD_LETTERS]:
        alerts.add_dead_letter(conn, rules.channel, part.reason, part.part, now)
    return taken


def _take_one(
    conn: Connection, rules: IntakeRules, classified: ClassifiedMessage, taken: IntakeResult, now: float
) -> None:
    message = classified.message
    if not is_new(conn, rules, message.id, now):
        taken.duplicates += 1
        return
    if message.change is not None:
        people.apply_change(conn, rules.access.realm, message.change, rules.access, now)
    sender = message.sender if message.change is None else message.change.current
    who = people.admit(conn, rules.access, sender, message.text, now)
    if isinstance(who, TurnedAway):
        taken.turned_away.append(who)
        return
    taken.accepted += 1
    person = who.person
    conversation = people.conversation(conn, person.id, rules.channel, message.group, now)
    if message.standby and not person.is_owner:
        handovers.begin(conn, conversation, now + rules.silent_seconds, now)
        taken.handed_over = True
        taken.wake.add(conversation.id)
    row = _keep(conn, conversation, message, now)
    if message.kind not in SILENT_KINDS:
        told = {"id": message.id, "kind": message.kind, "text": message.text}
        events.emit(conn, "message.received", person.id, told, now)
    if who.became is not None:
        limits.release(conn, person.id)
        if who.became == "owner":
            taken.new_owners.append(message.sender.phone or message.sender.user_id)
        welcome = rules.notices.welcome(person, message, who.became)
        put_reply(conn, conversation, f"{who.became}:{person.id}", welcome, now)
        taken.notices.add(person.id)
        return
    if who.is_new and person.is_guest:
        _tell_of_contact(conn, rules, person, message, now, taken)
    if (
        message.kind == "reaction"
        and classified.answers
        and approvals.is_open_question(conn, conversation.id, message.quoted)
    ):
        classified = replace(classified, kind="answer")
    elif message.kind in SILENT_KINDS:
        if message.kind == "revoke" and not _withdraw(conn, person, message.quoted, now):
            _offer_undo(conn, rules, person, conversation, message, now, taken)
        return
    elif (
        message.kind == "edit"
        and classified.kind == "message"
        and _replaces_waiting(conn, person.id, message)
    ):
        return
    attachments.expect(conn, conversation, row, message, now)
    _queue(conn, rules, who, conversation, classified, row, taken, now)


def _queue(
    conn: Connection,
    rules: IntakeRules,
    who: Admitted,
    conversation: Conversation,
    classified: ClassifiedMessage,
    message_row: int,
    taken: IntakeResult,
    now: float,
) -> None:
    at_once = classified.kind in ("stop", "answer")  # neither is made to wait
    due = now if at_once else _due_at(conn, rules, who.person.id, now)
    silent = bool(conversation.group) or who.frozen
    waits = exists(conn, "SELECT 1 FROM inbox WHERE person_id = ? AND due_at > ?", who.person.id, now)
    if due > now and not silent and not waits:
        source = f"rate:{who.person.id}:{int(now // rules.rate_window)}"
        put_reply(conn, conversation, source, rules.notices.too_fast(who.person, classified.message), now)
        taken.notices.add(who.person.id)
    insert(
        conn,
        "inbox",
        message_id=message_row,
        **conversation.columns,
        kind=classified.kind,
        received_at=now,
        due_at=due,
    )
    if who.frozen:
        taken.frozen.append(classified.message.sender.phone or classified.message.sender.user_id)
    else:
        taken.wake.add(conversation.id)


def _tell_of_contact(
    conn: Connection, rules: IntakeRules, guest: Person, message: Inbound, now: float, taken: IntakeResult
) -> None:
    """Tell the owners of a stranger who writes for the first time; a flood is in `recado people list`."""
    for owner in people.owners(conn, rules.access):
        if count_since(conn, owner, "contact:", now - 3600) < MOST_CONTACTS_TOLD:
            chat = people.conversation(conn, owner, rules.channel, "", now)
            draft = rules.notices.first_contact(people.language(conn, owner), guest, message)
            put_reply(conn, chat, f"contact:{guest.id}:{owner}", draft, now, origin="guest")
            taken.notices.add(owner)


def hear_business(
    conn: Connection,
    rules: IntakeRules,
    echoes: Sequence[Echo],
    controls: Sequence[ThreadControl],
    taken: IntakeResult,
    now: float,
) -> None:
    """Take in what the business wrote by other means, and who answers whom from now on."""
    taken.handed_over = taken.handed_over or bool(echoes or controls)
    for control in controls:
        person = people.addressee(conn, rules.access, control.person, now)
        if person is None:
            continue
        where = people.conversation(conn, person, rules.channel, "", now)
        if not control.ours:
            handovers.begin(conn, where, now + rules.silent_seconds, now)
            taken.wake.add(where.id)
        elif handovers.give_back(conn, where.id, now):
            taken.wake.add(where.id)
            taken.notices.add(person)
    for echo in echoes:
        if not is_new(conn, rules, echo.id, now):
            continue
        to = handovers.take_echo(conn, rules.access, rules.channel, echo, now + rules.silent_seconds, now)
        if to is not None:
            handovers.settle(conn, to.person_id, now)
            taken.wake.add(to.id)
            taken.notices.add(to.person_id)


def _withdraw(conn: Connection, person: Person, wamid: str, now: float) -> bool:
    """Close a message that the person deleted before a turn took it up; return False if it did not wait.

    A guest's file that is being read stays: the turn that it comes to counts against their limits.
    """
    closed = conn.execute(
        f"UPDATE inbox SET done_at = ? WHERE {UNCLAIMED} AND person_id = ?"
        " AND message_id = (SELECT id FROM messages WHERE wamid = ? AND direction = 'in')"
        " AND NOT (? AND message_id IN (SELECT message_id FROM attachments WHERE attempts > 0))",
        (now, person.id, wamid, person.is_guest),
    )
    return closed.rowcount > 0


def _offer_undo(
    conn: Connection,
    rules: IntakeRules,
    person: Person,
    conversation: Conversation,
    message: Inbound,
    now: float,
    taken: IntakeResult,
) -> None:
    """Offer, once for a turn, to undo what was done for a message that the person deleted afterwards."""
    turn = conn.execute(
        "SELECT t.id, t.reply FROM inbox i JOIN turns t ON t.id = i.turn_id"
        " JOIN messages m ON m.id = i.message_id"
        " WHERE m.wamid = ? AND m.direction = 'in' AND i.person_id = ? AND t.state = 'done'",
        (message.quoted, person.id),
    ).fetchone()
    draft = rules.notices.deleted_too_late(person, message, turn["reply"]) if turn is not None else None
    if draft is not None:
        put_reply(conn, conversation, f"deleted:{turn['id']}", draft, now)
        taken.notices.add(person.id)


def _replaces_waiting(conn: Connection, person: str, edit: Inbound) -> bool:
    """Put the new words of an edited message in place of the old ones if no turn has taken it up yet."""
    replaced = conn.execute(
        "UPDATE messages SET text = ?, recalled = 0"
        " WHERE wamid = ? AND direction = 'in' AND person_id = ? AND id IN"
        f" (SELECT message_id FROM inbox WHERE {UNCLAIMED} AND kind = 'message')",
        (edit.text, edit.quoted, person),
    )
    return replaced.rowcount > 0


def is_new(conn: Connection, rules: IntakeRules, message_id: str, now: float) -> bool:
    """Return whether a message id comes for the first time, and remember it."""
    key = blake2b(message_id.encode("utf-8", "replace"), key=rules.key, digest_size=16).digest()
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
    row = insert(
        conn,
        "messages",
        or_skip=True,
        **conversation.columns,
        direction="in",
        wamid=message.id,
        kind=message.kind,
        text=message.text,
        payload=orjson.dumps(payload, default=str, option=orjson.OPT_NON_STR_KEYS).decode(),
        at=now,
    )
    if row:
        return row
    known = conn.execute("SELECT id FROM messages WHERE wamid = ?", (message.id,)).fetchone()
    return int(known["id"])  # older than the dedupe keys we keep, but its text is still here


def _due_at(conn: Connection, rules: IntakeRules, person: str, now: float) -> float:
    """Return when a person's next message may be taken up: a window after the one `limit` places before."""
    if not rules.rate_limit:
        return now
    row = conn.execute(
        "SELECT due_at FROM inbox WHERE person_id = ? AND received_at <= ? AND kind <> 'scheduled'"
        " ORDER BY due_at DESC LIMIT 1 OFFSET ?",  # rows of a clock that was set back since do not count
        (person, now, rules.rate_limit - 1),
    ).fetchone()
    return now if row is None else max(now, row["due_at"] + rules.rate_window)


def waiting(conn: Connection, channels: Collection[str], now: float, ahead: float = 0.0) -> list[str]:
    """Return the conversations with a due message unclaimed or a turn not done within `ahead` seconds."""
    until = now + ahead
    rows = conn.execute(
        "SELECT c.id, c.channel FROM conversations c WHERE c.id IN ("
        f"SELECT conversation_id FROM inbox WHERE {UNCLAIMED}"
        " AND (due_at <= ? OR received_at > ?)"  # the latter after a clock was set back
        f" AND conversation_id NOT IN ({SILENT})"
        f" UNION SELECT conversation_id FROM turns WHERE {RUNNABLE}"
        " AND (due_at IS NULL OR due_at <= ? OR created_at > ?))",
        (until, now, until, until, now),
    )
    return [row["id"] for row in rows if row["channel"] in channels]
