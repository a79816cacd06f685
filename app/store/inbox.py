"""The inbox: deduplication, the sender, the text of a message, and its place in the queue."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Protocol

import orjson

from app.messages import Echo, Inbound, Sender, ThreadControl, Webhook
from app.people import Conversation, Person, Role
from app.store import alerts, approvals, delivery, events, handovers, limits, media, people
from app.store.conditions import RUNNABLE, SILENT, UNCLAIMED
from app.store.database import Connection, exists, insert, scalar, update
from app.store.delivery import StatusEffect
from app.store.outbox import Draft, Origin, add_message, count_since, put_reply
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
    """The outcome of one webhook body."""

    accepted: int = 0
    duplicates: int = 0
    wake: set[str] = field(default_factory=set)  # conversations that have something to do
    notices: set[str] = field(default_factory=set)  # people whose outbox got a notice
    turned_away: list[TurnedAway] = field(default_factory=list)
    new_owners: list[str] = field(default_factory=list)
    frozen: list[str] = field(default_factory=list)
    handed_over: bool = False  # somebody else may answer in a conversation now: owners are to be told
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
    conn: Connection, rules: IntakeRules, messages: Sequence[ClassifiedMessage], webhook: Webhook, now: float
) -> IntakeResult:
    """Take in everything of one webhook body, in one transaction; `messages` are its messages."""
    taken = IntakeResult()
    intake = _Intake(conn, rules, taken, now)
    told = [classified.message.change for classified in messages]
    for change in webhook.changes:
        if change not in told and intake.is_new(f"change:{change}"):
            people.apply_change(conn, rules.access.realm, change, rules.access, now)
    for classified in messages:
        intake.take(classified)
    for pair in webhook.pairs:
        people.pair(conn, rules.access, pair, now)
    for part in webhook.unreadable[:MOST_DEAD_LETTERS]:
        alerts.add_dead_letter(conn, rules.channel, part.reason, part.part, now)
    for control in webhook.controls:
        intake.hand_over(control)
    for echo in webhook.echoes:
        intake.take_echo(echo)
    taken.handed_over = taken.handed_over or bool(webhook.echoes or webhook.controls)
    effects = (delivery.apply_status(conn, status, now) for status in webhook.statuses)
    taken.applied = [effect for effect in effects if effect is not None]
    taken.notices |= {effect.person_id for effect in taken.applied}  # their sends may go on
    return taken


@dataclass(frozen=True, slots=True)
class _Intake:
    """The transaction of one webhook body."""

    conn: Connection
    rules: IntakeRules
    taken: IntakeResult
    now: float

    def is_new(self, message_id: str) -> bool:
        """Return whether a message id comes for the first time, and remember it."""
        key = blake2b(message_id.encode("utf-8", "replace"), key=self.rules.key, digest_size=16).digest()
        sql = "INSERT INTO seen VALUES (?, ?) ON CONFLICT DO NOTHING"
        return self.conn.execute(sql, (key, self.now)).rowcount == 1

    def take(self, classified: ClassifiedMessage) -> None:
        conn, rules, taken, now, message = self.conn, self.rules, self.taken, self.now, classified.message
        if not self.is_new(message.id):
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
        where = people.conversation(conn, person.id, rules.channel, message.group, now)
        if message.standby and not person.is_owner:
            handovers.begin(conn, where, now + rules.silent_seconds, now)
            taken.handed_over = True
            taken.wake.add(where.id)
        row = self._keep(where, message)
        if message.kind not in SILENT_KINDS:
            told = {"id": message.id, "kind": message.kind, "text": message.text}
            events.emit(conn, "message.received", person.id, told, now)
        if who.became is not None:
            limits.release(conn, person.id)
            if who.became == "owner":
                taken.new_owners.append(message.sender.phone or message.sender.user_id)
            welcome = rules.notices.welcome(person, message, who.became)
            self._notify(where, f"{who.became}:{person.id}", welcome)
            return
        if who.is_new and person.is_guest:
            self._tell_of_contact(person, message)
        answers = message.kind == "reaction" and classified.answers
        if answers and approvals.is_open_question(conn, where.id, message.quoted):
            classified = replace(classified, kind="answer")
        elif message.kind in SILENT_KINDS:
            if message.kind == "revoke" and not self._withdraw(person, message.quoted):
                self._offer_undo(person, where, message)
            return
        is_edit = message.kind == "edit" and classified.kind == "message"
        if is_edit and self._replaces_waiting(message, person):
            return
        media.expect_file(conn, where, row, message, now)
        self._queue(who, where, classified, row)

    def hand_over(self, control: ThreadControl) -> None:
        """Follow a change of who answers a person from now on."""
        conn, now, where = self.conn, self.now, self._chat_of(control.person)
        if where is None:
            return
        if not control.ours:
            handovers.begin(conn, where, now + self.rules.silent_seconds, now)
            self.taken.wake.add(where.id)
        elif handovers.give_back(conn, where.id, now):
            self.taken.wake.add(where.id)
            self.taken.notices.add(where.person_id)

    def take_echo(self, echo: Echo) -> None:
        """Take in what the business wrote by other means."""
        if self.is_new(echo.id) and (where := self._chat_of(echo.to)) is not None:
            handovers.keep_echo(self.conn, where, echo, self.now + self.rules.silent_seconds, self.now)
            handovers.settle(self.conn, where.person_id, self.now)
            self.taken.wake.add(where.id)
            self.taken.notices.add(where.person_id)

    def _chat_of(self, to: Sender) -> Conversation | None:
        """Return the chat of one whom the business wrote to; None for an owner, whose chat stays theirs."""
        person = people.addressee(self.conn, self.rules.access, to, self.now)
        channel = self.rules.channel
        return None if person is None else people.conversation(self.conn, person, channel, "", self.now)

    def _notify(self, where: Conversation, source: str, draft: Draft, origin: Origin = "assistant") -> None:
        put_reply(self.conn, where, source, draft, self.now, origin=origin)
        self.taken.notices.add(where.person_id)

    def _queue(self, who: Admitted, where: Conversation, classified: ClassifiedMessage, row: int) -> None:
        conn, rules, now, person = self.conn, self.rules, self.now, who.person
        at_once = classified.kind in ("stop", "answer")  # neither is made to wait
        due = now if at_once else self._due_at(person.id)
        silent = bool(where.group) or who.frozen
        waits = exists(conn, "SELECT 1 FROM inbox WHERE person_id = ? AND due_at > ?", person.id, now)
        if due > now and not silent and not waits:
            source = f"rate:{person.id}:{int(now // rules.rate_window)}"
            self._notify(where, source, rules.notices.too_fast(person, classified.message))
        kind = classified.kind
        insert(conn, "inbox", message_id=row, **where.columns, kind=kind, received_at=now, due_at=due)
        if who.frozen:
            sender = classified.message.sender
            self.taken.frozen.append(sender.phone or sender.user_id)
        else:
            self.taken.wake.add(where.id)

    def _tell_of_contact(self, guest: Person, message: Inbound) -> None:
        """Tell the owners of a stranger who writes for the first time; a flood is in `recado people list`."""
        conn, rules = self.conn, self.rules
        for owner in people.owners(conn, rules.access):
            if count_since(conn, owner, "contact:", self.now - 3600) < MOST_CONTACTS_TOLD:
                chat = people.conversation(conn, owner, rules.channel, "", self.now)
                draft = rules.notices.first_contact(people.language(conn, owner), guest, message)
                self._notify(chat, f"contact:{guest.id}:{owner}", draft, "guest")

    def _withdraw(self, person: Person, wamid: str) -> bool:
        """Close a message that the person deleted before a turn took it up; False if it did not wait."""
        waits = (
            f"{UNCLAIMED} AND person_id = ?"
            " AND message_id = (SELECT id FROM messages WHERE wamid = ? AND direction = 'in')"
        )
        return bool(update(self.conn, "inbox", waits, person.id, wamid, done_at=self.now))

    def _offer_undo(self, person: Person, where: Conversation, message: Inbound) -> None:
        """Offer, once for a turn, to undo what was done for a message that the person deleted afterwards."""
        turn = self.conn.execute(
            "SELECT t.id, t.reply FROM inbox i JOIN turns t ON t.id = i.turn_id"
            " JOIN messages m ON m.id = i.message_id"
            " WHERE m.wamid = ? AND m.direction = 'in' AND i.person_id = ? AND t.state = 'done'",
            (message.quoted, person.id),
        ).fetchone()
        draft = turn and self.rules.notices.deleted_too_late(person, message, turn["reply"])
        if draft:
            self._notify(where, f"deleted:{turn['id']}", draft)

    def _replaces_waiting(self, edit: Inbound, person: Person) -> bool:
        """Put the new words of an edited message in place of the old ones if no turn has taken it up yet."""
        waits = (
            "wamid = ? AND direction = 'in' AND person_id = ? AND id IN"
            f" (SELECT message_id FROM inbox WHERE {UNCLAIMED} AND kind = 'message')"
        )
        return bool(update(self.conn, "messages", waits, edit.quoted, person.id, text=edit.text, recalled=0))

    def _keep(self, where: Conversation, message: Inbound) -> int:
        payload = {
            "quoted": message.quoted,
            "button": message.button,
            "forwarded": message.forwarded,
            "sent_at": message.at,
            "details": message.details,
            "attachment": message.attachment,
        }
        written = orjson.dumps(payload, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        kind, text, wamid = message.kind, message.text, message.id
        row = add_message(self.conn, where, "in", kind, text, self.now, wamid=wamid, payload=written)
        # A known one is older than the dedupe keys we keep, but its text is still here.
        return row or int(scalar(self.conn, "SELECT id FROM messages WHERE wamid = ?", message.id))

    def _due_at(self, person: str) -> float:
        """Return when a person's next message may be taken up: a window after the `rate_limit`th before."""
        if not self.rules.rate_limit:
            return self.now
        before: float | None = scalar(
            self.conn,
            "SELECT due_at FROM inbox WHERE person_id = ? AND received_at <= ? AND kind <> 'scheduled'"
            " ORDER BY due_at DESC LIMIT 1 OFFSET ?",  # rows of a clock that was set back since do not count
            *(person, self.now, self.rules.rate_limit - 1),
        )
        return self.now if before is None else max(self.now, before + self.rules.rate_window)


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
