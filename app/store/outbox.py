"""The outbox: every message we send, from "ready" to its end. States only move forward:

ready → sending → (unknown | held) → sent | failed. A row on the wire has `sending_at`; every row that
is not at its end has `due_at`.

What WhatsApp says of it afterwards stands in `delivery`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import orjson
from pydantic import TypeAdapter

from app.i18n import detect_language, lazy, say
from app.messages import Address, Outgoing
from app.people import Conversation, Realm
from app.store import alerts, ownership, people
from app.store.conditions import SILENT, UNSENT, WRITTEN
from app.store.database import Connection, Row, exists, insert, meta, new_id, placeholders, scalar, update

SEND_SECONDS = 150.0  # longer than any one send may take
WINDOW_SECONDS = 24 * 3600
HOLD_SECONDS = 300.0
LONGEST_PAUSE = 2 * 3600.0  # of a row; Meta may ask for an hour
CLOCK_SECONDS = 30.0  # by which clocks of several processes may differ
# SQL for the rows that a message id belongs to (given twice): a row that was sent twice has two ids
SENT_AS = (
    "(SELECT id FROM outbox WHERE wamid = ? UNION ALL"
    " SELECT outbox_id FROM statuses WHERE wamid = ? AND person_id IS NOT NULL)"
)
OWN_WORDS, NO_MODEL = "disclosure", "no_model"  # keys: the operator's own sentence; no model reads along
LONGEST_TEXT, LONGEST_QUESTION = 4_096, 1_024  # characters of a message, and beside buttons (Meta's limits)
WINDOW_CLOSED = 131047  # Meta's code: the person has not written for a day

Origin = Literal["assistant", "reminder", "question", "business", "guest", "alert"]
"""The origin of a message: the assistant (answers, notices), a reminder, a question that waits for a yes, a
person or a system of the business, a guest of whom owners are told, or an alert for owners that little may be
sent."""
_IS_SENT_IN_SILENCE = "origin = 'business'"  # SQL: an assistant does not answer there
_OUTGOING = TypeAdapter(Outgoing)
_BEGINS_SO = "source >= ? AND source < ?"  # SQL for a source with a prefix; see `_range`


@dataclass(frozen=True, slots=True)
class Draft:
    """A text for a person, and the messages it becomes on their channel."""

    text: str
    parts: tuple[Outgoing, ...]


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A row of the outbox that is to be sent now."""

    id: str
    person_id: str
    channel: str
    to: Address
    message: Outgoing
    attempts: int
    is_second_send: bool = False  # the outcome of the first is not known


def put_reply(
    conn: Connection,
    conversation: Conversation,
    source: str,
    draft: Draft,
    now: float,
    turn: str | None = None,
    origin: Origin = "assistant",
) -> bool:
    """Queue a draft unless its source has rows already; return whether that was done.

    While a person of the business answers, what the assistant says is not queued, and reminders are held.
    """
    state = state_of_new(conn, conversation.id, origin, now)
    if not state or exists(conn, "SELECT 1 FROM outbox WHERE source = ?", source):
        return False
    for part, message in enumerate(draft.parts):
        text = ownership.without_link(message.text)
        message_id = add_message(conn, conversation, "out", _kind(message), text, now, turn_id=turn)
        insert(
            conn,
            "outbox",
            id=new_id("out"),
            source=source,
            origin=origin,
            part=part,
            **conversation.columns,
            message_id=message_id,
            payload=orjson.dumps(message).decode(),
            media=message.file.path if message.file else "",
            state=state,
            due_at=now,
            created_at=now,
        )
    return bool(draft.parts)


def add_message(
    conn: Connection,
    where: Conversation,
    direction: Literal["in", "out"],
    kind: str,
    text: str,
    now: float,
    **columns: object,
) -> int:
    """Keep a message, with more `columns` of its row; return its id, 0 if its `wamid` is known already."""
    values = {"direction": direction, "kind": kind, "text": text, "at": now, **columns}
    return insert(conn, "messages", or_skip=True, **where.columns, **values)


def put_for(conn: Connection, realm: Realm, to: str, source: str, draft: Draft, now: float) -> str:
    """Queue what the business writes to a phone or user id; return whose it is. Raises RecadoError."""
    person = people.reachable(conn, realm, to, now)
    where = people.conversation(conn, person, realm, "", now)
    put_reply(conn, where, source, draft, now, origin="business")
    return person


def state_of_new(conn: Connection, conversation: str, origin: Origin, now: float) -> str:
    """Return the state in which a row is queued, "" for one that is not."""
    if origin == "business" or not is_silent(conn, conversation, now):
        return "ready"
    return "held" if origin == "reminder" else ""


def is_silent(conn: Connection, conversation: str, now: float) -> bool:
    """Return whether a person of the business answers a conversation now."""
    return exists(conn, f"{SILENT} AND conversation_id = ?", now, conversation)


def first_of(conn: Connection, source: str) -> Row | None:
    """Return the first row whose source is `source:` and a suffix."""
    sql = f"SELECT id, person_id, source FROM outbox WHERE {_BEGINS_SO} AND part = 0"
    row: Row | None = conn.execute(sql, _range(f"{source}:")).fetchone()
    return row


def last_source(conn: Connection, person: str, prefix: str) -> str:
    """Return the source of the person's newest row whose source begins so; "" for none."""
    sql = f"SELECT source FROM outbox WHERE person_id = ? AND {_BEGINS_SO} ORDER BY seq DESC LIMIT 1"
    return scalar(conn, sql, person, *_range(prefix)) or ""


def count_since(conn: Connection, person: str, prefix: str, since: float) -> int:
    """Return how many rows of a person were queued since then whose source begins so."""
    sql = f"SELECT count(*) FROM outbox WHERE person_id = ? AND {_BEGINS_SO} AND created_at > ?"
    return int(scalar(conn, sql, person, *_range(prefix), since))


def _range(prefix: str) -> tuple[str, str]:
    """Return what `_BEGINS_SO` compares the source with: an index answers a range, but no LIKE or substr."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def take(
    conn: Connection,
    person: str,
    now: float,
    sendable: Sequence[Origin] | None = None,
    worker: int | None = None,
    statuses_by: float = 0.0,
) -> OutboxRow | float | None:
    """Return a person's next row, marked as on the wire; when to look again; or None if there is none.

    - Rows go in order, one at a time.
    - Only the origins in `sendable` may be sent now; None for all.
    - While an echo waits, a person of the business may be answering, so only what is sent in silence goes.
    - A row that `worker` itself marked was not sent: the commit that marked it seemed to have failed.
    - Until `statuses_by` nothing is sent again: statuses that could not be written may still come.
    """
    if not _may_be_sent_to(conn, person, now):
        return None
    row = _choose_row(conn, person, now, sendable, worker, statuses_by)
    if row is None or isinstance(row, float):
        return row
    return _mark_sending(conn, _disclosing(conn, row, now), now, worker)


def _choose_row(
    conn: Connection,
    person: str,
    now: float,
    sendable: Sequence[Origin] | None,
    worker: int | None,
    statuses_by: float,
) -> Row | float | None:
    """Return the row to be sent now, or when to look again; settle those before it that may not go."""
    while (row := _next_unsent(conn, person, now, sendable)) is not None:
        clock_set_back = not row["attempts"] and now < row["created_at"]
        on_wire = row["sending_at"] is not None
        due = max(row["due_at"], statuses_by) if row["attempts"] and not on_wire else row["due_at"]
        if on_wire and worker is not None and row["worker"] == worker:
            retry(conn, row["id"], now, row["code"], row["error"])
        elif due > now and not clock_set_back:
            return float(due)
        elif on_wire:  # longer than a send may take
            mark_unknown(conn, row["id"], row["error"], now)
        elif row["state"] == "unknown" and row["resends"]:
            update(conn, "outbox", "id = ?", row["id"], due_at=None, sending_at=None)
            text = lazy(
                "message {id} was sent twice without an answer: whether it arrived is not known", id=row["id"]
            )
            alerts.raise_alert(conn, "undelivered:unknown", text, now)
        elif row["state"] == "held" and _window_closed(conn, row, now):
            error = row["error"] or "the 24-hour window closed"
            fail(conn, row["id"], row["code"] or WINDOW_CLOSED, error, now)
        else:
            return row
    return None


def _next_unsent(conn: Connection, person: str, now: float, sendable: Sequence[Origin] | None) -> Row | None:
    may_be_sent = "TRUE"
    if sendable is not None:  # a row that was tried before was counted against the limits then
        listed = placeholders(sendable)
        may_be_sent = f"(origin IN ({listed}) OR (attempts > 0 AND state <> 'unknown'))"
    if exists(conn, "SELECT 1 FROM echoes WHERE person_id = ?", person):
        may_be_sent += f" AND {_IS_SENT_IN_SILENCE}"
    row: Row | None = conn.execute(
        f"SELECT * FROM outbox WHERE person_id = ? AND {UNSENT} AND {may_be_sent}"
        f" AND ({_IS_SENT_IN_SILENCE} OR conversation_id NOT IN ({SILENT}))"
        " ORDER BY substr(source, 1, 11) = 'disclosure:' DESC, seq LIMIT 1",
        (person, *(sendable or ()), now),
    ).fetchone()
    return row


def _window_closed(conn: Connection, row: Row, now: float) -> bool:
    if not row["attempts"] or outgoing(row["payload"]).template is not None:  # a template needs no window
        return False
    written = written_at(conn, row["conversation_id"]) or row["created_at"]
    return bool(now > written + WINDOW_SECONDS)


def _mark_sending(conn: Connection, row: Row, now: float, worker: int | None) -> OutboxRow:
    conn.execute(
        "UPDATE outbox SET state = CASE state WHEN 'ready' THEN 'sending' ELSE state END, sending_at = ?,"
        " attempts = attempts + 1, resends = CASE state WHEN 'unknown' THEN resends + 1 ELSE resends END,"
        " due_at = ?, worker = ? WHERE id = ?",
        (now, now + SEND_SECONDS, worker, row["id"]),
    )
    where = people.conversation_by_id(conn, row["conversation_id"])
    aliases = "SELECT kind, address FROM aliases WHERE person_id = ? ORDER BY created_at"
    addresses = dict(conn.execute(aliases, (row["person_id"],)).fetchall())
    return OutboxRow(
        id=row["id"],
        person_id=row["person_id"],
        channel=where.channel,
        to=Address(addresses.get("phone", ""), addresses.get("user_id", ""), where.group),
        message=outgoing(row["payload"]),
        attempts=row["attempts"] + 1,
        is_second_send=row["state"] == "unknown",
    )


def _disclosing(conn: Connection, row: Row, now: float) -> Row:
    """Put the sentence that an automatic assistant answers into a row, or return one that goes before it."""
    message = outgoing(row["payload"])
    by_others = row["origin"] == "business" or row["state"] == "unknown"
    if by_others or message.template is not None:  # a template has words of its own
        return row
    untold = "id = ? AND disclosed = 0 AND channel <> 'terminal'"
    if not update(conn, "conversations", untold, row["conversation_id"], disclosed=1):
        return row
    language = people.by_id(conn, row["person_id"]).row["language"] or detect_language(message.text) or "en"
    sentence = meta(conn, OWN_WORDS) or _built_in_sentence(language, reads=not meta(conn, NO_MODEL))
    together, id = f"{sentence}\n\n{message.text}", row["id"]
    is_plain = message == Outgoing(message.text, quoted=message.quoted)  # without buttons, rows or a link
    fits = len(together) <= (LONGEST_TEXT if is_plain else LONGEST_QUESTION)
    if fits and message.text and message.file is None:
        changed = replace(message, text=together)
    else:
        where, source = people.conversation_by_id(conn, row["conversation_id"]), f"disclosure:{id}"
        draft = Draft(sentence, (Outgoing(sentence),))
        if not put_reply(conn, where, source, draft, now, origin=row["origin"]):
            # It failed before: the next one tells it.
            update(conn, "conversations", "id = ?", row["conversation_id"], disclosed=0)
            return row
        changed, id = Outgoing(sentence), scalar(conn, "SELECT id FROM outbox WHERE source = ?", source)
    update(conn, "outbox", "id = ?", id, payload=orjson.dumps(changed).decode(), discloses=1)
    told: Row = conn.execute("SELECT * FROM outbox WHERE id = ?", (id,)).fetchone()
    return told


def _built_in_sentence(language: str, *, reads: bool) -> str:
    """Return it as the EU's AI Act asks for it (article 50, in force since 2026-08-02)."""
    if not reads:
        return say(
            language,
            "I am an automatic assistant (AI). What you write is kept on the server of whoever runs me.",
        )
    return say(
        language,
        "I am an automatic assistant (AI). What you write is kept on the server of whoever runs me, "
        "and their language model reads it.",
    )


def _disclose_again(conn: Connection, conversation: str) -> None:
    """Have the next message hold the sentence again if each that held it has failed."""
    held = "SELECT 1 FROM outbox WHERE conversation_id = conversations.id AND discloses = 1 AND state"
    lost = f"id = ? AND EXISTS ({held} = 'failed') AND NOT EXISTS ({held} <> 'failed')"
    update(conn, "conversations", lost, conversation, disclosed=0)


def drop_unsent(conn: Connection, conversation: str, now: float) -> list[str]:
    """Drop what waits to be sent in a conversation, but for the business's own words; reminders are held.

    Return the turns whose replies were dropped before anything of them was sent.
    """
    reminders = "conversation_id = ? AND state = 'ready' AND origin = 'reminder' AND sending_at IS NULL"
    update(conn, "outbox", reminders, conversation, state="held")
    dropped = conn.execute(
        "UPDATE outbox SET state = 'failed', due_at = NULL, error = 'a person of the business answers'"
        f" WHERE conversation_id = ? AND sending_at IS NULL AND {UNSENT}"
        f" AND NOT ({_IS_SENT_IN_SILENCE} OR origin = 'reminder') RETURNING source, part",
        (conversation,),
    ).fetchall()
    if dropped:
        _disclose_again(conn, conversation)
    return [
        row["source"].removeprefix("turn:")
        for row in dropped
        if row["source"].startswith("turn:") and row["part"] == 0
    ]


def has_open(conn: Connection, person: str) -> bool:
    """Return whether the person has a row that is not at its end."""
    return exists(conn, f"SELECT 1 FROM outbox WHERE person_id = ? AND {UNSENT} LIMIT 1", person)


def is_attempt(conn: Connection, row: OutboxRow) -> bool:
    """Return whether this is still the newest attempt to send a row."""
    return exists(conn, "SELECT 1 FROM outbox WHERE id = ? AND attempts = ?", row.id, row.attempts)


def retry(conn: Connection, outbox_id: str, due: float, code: int, error: str) -> None:
    """Leave a row that was refused before it was sent in its place until `due`."""
    cause = {"code": code, "error": error[:500]}
    update(conn, "outbox", f"id = ? AND {UNSENT}", outbox_id, sending_at=None, resends=0, due_at=due, **cause)


def hold(conn: Connection, outbox_id: str, code: int, error: str, now: float) -> None:
    """Hold a row for the operator; it is tried again now and then, and when `release_held` makes it due."""
    retry(conn, outbox_id, now + HOLD_SECONDS, code, error)
    update(conn, "outbox", f"id = ? AND state <> 'unknown' AND {UNSENT}", outbox_id, state="held")


def release_held(conn: Connection, now: float) -> list[str]:
    """Make every held row due; return the people concerned."""
    is_later = f"{UNSENT} AND state = 'held' AND due_at > ?"
    rows = conn.execute(f"UPDATE outbox SET due_at = ? WHERE {is_later} RETURNING person_id", (now, now))
    return sorted({row["person_id"] for row in rows.fetchall()})


def mark_unknown(conn: Connection, outbox_id: str, error: str, due: float) -> None:
    """Mark a send without an answer; its status is awaited until `due`."""
    changes = {"sending_at": None, "due_at": due, "error": error[:500]}
    update(conn, "outbox", f"id = ? AND {UNSENT}", outbox_id, state="unknown", **changes)


def fail(
    conn: Connection, outbox_id: str, code: int, error: str, now: float, *, after_sent: bool = False
) -> None:
    """End a row and the later parts of its text as failed; if it is a file, the person is told."""
    allowed = "" if after_sent else "AND state <> 'sent'"
    row = conn.execute(
        "UPDATE outbox SET state = 'failed', sending_at = NULL, due_at = NULL, code = ?, error = ?"
        f" WHERE id = ? AND state <> 'failed' {allowed}"
        " RETURNING id, source, part, person_id, conversation_id, payload, media",
        (code, error[:500], outbox_id),
    ).fetchone()
    if row is not None:
        later = f"source = ? AND part > ? AND {UNSENT}"
        over = {"sending_at": None, "due_at": None, "code": code, "error": "an earlier part failed"}
        update(conn, "outbox", later, row["source"], row["part"], state="failed", **over)
        _disclose_again(conn, row["conversation_id"])
        if row["media"]:  # the reply spoke of it
            where = people.conversation_by_id(conn, row["conversation_id"])
            language, name = people.language(conn, where.person_id), outgoing(row["payload"]).text
            text = say(language, "I could not send you this file: {name}", name=name)
            put_reply(conn, where, f"unsent:{row['id']}", Draft(text, (Outgoing(text),)), now)


def recover(conn: Connection, due: float, living: Sequence[int] = ()) -> int:
    """Mark what no `living` worker has on the wire any more as of unknown outcome until `due`."""
    is_alone = f"(worker IS NULL OR worker NOT IN ({placeholders(living)}))"
    on_the_wire = f"sending_at IS NOT NULL AND {UNSENT} AND {is_alone}"
    return update(conn, "outbox", on_the_wire, *living, state="unknown", sending_at=None, due_at=due)


def await_statuses(conn: Connection, due: float) -> None:
    """Give what is unknown until `due` for its status: the webhook listens from now on."""
    sooner = f"state = 'unknown' AND sending_at IS NULL AND due_at < ? AND {UNSENT}"
    update(conn, "outbox", sooner, due, due_at=due)


def mend_clock(conn: Connection, now: float) -> None:
    """End pauses counted by a clock that was set back, as our newest message shows, or was far ahead.

    What would be tried again is due; an unknown send has `SEND_SECONDS` left for its status.
    """
    newest = scalar(conn, "SELECT at FROM messages ORDER BY id DESC LIMIT 1") or 0
    longest = 0.0 if newest > now + CLOCK_SECONDS else LONGEST_PAUSE
    conn.execute(
        "UPDATE outbox SET due_at ="
        " CASE WHEN state <> 'unknown' THEN ? WHEN due_at < ? THEN due_at ELSE ? END"
        f" WHERE due_at > ? AND sending_at IS NULL AND {UNSENT}",
        (now, now + SEND_SECONDS, now + SEND_SECONDS, now + longest),
    )


def people_waiting(conn: Connection, channels: Collection[str], now: float, ahead: float = 0.0) -> list[str]:
    """Return the people with a row on one of these channels that is due within `ahead` seconds."""
    rows = conn.execute(
        "SELECT DISTINCT outbox.person_id, c.channel FROM outbox"
        " JOIN conversations c ON c.id = outbox.conversation_id"
        f" WHERE {UNSENT}"
        " AND (outbox.due_at <= ? OR (outbox.attempts = 0 AND outbox.created_at > ?))"  # a clock set back
        f" AND (outbox.state <> 'held' OR outbox.conversation_id NOT IN ({SILENT}))",
        (now + ahead, now, now + ahead),
    )
    return sorted({row["person_id"] for row in rows if row["channel"] in channels})


def _may_be_sent_to(conn: Connection, person: str, now: float) -> bool:
    """Return whether a person may be sent to; rows of a frozen one wait, those of a blocked one fail."""
    row = conn.execute("SELECT access, frozen FROM people WHERE id = ?", (person,)).fetchone()
    if row is None or row["access"] != "blocked":
        return row is not None and not row["frozen"]
    waiting = conn.execute(f"SELECT id FROM outbox WHERE person_id = ? AND {UNSENT}", (person,)).fetchall()
    for one in waiting:
        fail(conn, one["id"], 0, "the person was shut out", now)
    return False


def written_at(conn: Connection, conversation: str) -> float | None:
    """Return when the person wrote their newest message there, None for none."""
    sql = f"SELECT at FROM messages WHERE conversation_id = ? AND {WRITTEN} ORDER BY id DESC LIMIT 1"
    at: float | None = scalar(conn, sql, conversation)
    return at


def outgoing(payload: str) -> Outgoing:
    return _OUTGOING.validate_json(payload)


def _kind(message: Outgoing) -> str:
    if message.file is not None:
        return message.file.kind
    is_interactive = message.buttons or message.rows or message.link or message.asks_location
    return "interactive" if is_interactive else "text"
