"""The outbox: every message we send, from "ready" to its end. States only move forward:

ready → sending → (unknown | held) → sent | failed. A row on the wire has `sending_at`; every row that
is not at its end has `due_at`.

A text that WhatsApp took and could not deliver for a reason that passes is sent again, as a new row. Nothing
overtakes it: if anything of ours was sent or queued for the person behind it, it has failed for good. So has
a question, and so has a reminder, which waits for the person to write.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row

import orjson

from app.i18n import say
from app.messages import Address, Button, Link, MediaFile, Outgoing, Pricing, Status, Template
from app.people import Conversation
from app.store import billing, disclosure, people
from app.store.database import insert, new_id

SEND_SECONDS = 150.0  # longer than any one send may take
WINDOW_SECONDS = 24 * 3600
WRITTEN = "direction = 'in' AND kind <> 'system'"  # SQL for the messages that open the 24-hour window
HOLD_SECONDS = 300.0
PASSING = frozenset({1, 2, 4, 80007, 130429, 131000, 131016, 131056, 131057})  # Meta's codes for "try again"
AGAIN_AFTER_SECONDS = (6.0, 30.0)  # before each new send; the first is the limit of a pair of numbers
AGAIN_SECONDS = 600.0  # an answer that is older is none any more
_AGAIN = "again:"
# SQL for the conversations that a person of the business answers at a time; see `handovers`.
SILENT = "handovers WHERE state = 'human' AND until > ?"
_WAITS_IN_SILENCE = "sched:"
_SENT_IN_SILENCE = ("human:", "api:", "late:human:", "late:api:")  # the business's own words
_NEVER_AGAIN = ("approval:", "sched:")
WINDOW_CLOSED = 131047  # Meta's code: the person has not written for a day
_CALLS_BACK = "back:"
_LATE = "late:"
_NEVER_LATE = (*_NEVER_AGAIN, _CALLS_BACK)
_ARRIVED = ("delivered", "read", "played")
_PROOFS = frozenset({"sent", "delivered", "read", "played", "deleted"})
_OPEN = "state IN ('ready', 'sending', 'unknown', 'held') AND due_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Draft:
    """A text for a person, and the messages it becomes on their channel.

    `language`: of the text, where the person's own is not known yet.
    """

    text: str
    parts: tuple[Outgoing, ...]
    language: str = ""


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


@dataclass(frozen=True, slots=True)
class QueuedRow:
    """A row of the outbox by its id, its person and its source."""

    id: str
    person_id: str
    source: str


@dataclass(frozen=True, slots=True)
class NextSend:
    """The next send of a person: `row` now, or look again at `at`, or nothing."""

    row: OutboxRow | None = None
    at: float | None = None
    lost: tuple[str, ...] = ()  # rows whose outcome stays unknown for good


@dataclass(frozen=True, slots=True)
class StatusEffect:
    """The effect of a status: the person whose sends may go on, and the error if a row failed."""

    person_id: str = ""
    code: int = 0
    error: str = ""
    again: bool = False  # it failed for a reason that passes, and is sent again


def sent_as(wamid: str) -> str:
    """Return SQL for the rows of a message id: one of unknown outcome that was sent twice has two ids."""
    return (
        f"(SELECT id FROM outbox WHERE wamid = {wamid} UNION ALL"
        f" SELECT outbox_id FROM statuses WHERE wamid = {wamid} AND person_id IS NOT NULL)"
    )


def put_reply(
    conn: Connection,
    conversation: Conversation,
    source: str,
    draft: Draft,
    now: float,
    turn: str | None = None,
) -> int:
    """Queue a draft unless its source has rows already; return how many rows were added.

    Where a person of the business answers, only reminders are queued, which wait, and the business's words.
    """
    state = _state_of_new(conn, conversation.id, source, now)
    if not state:
        return 0
    rows = conn.execute("SELECT part FROM outbox WHERE source = ?", (source,))
    there = {row["part"] for row in rows.fetchall()}
    parts: Sequence[Outgoing] = draft.parts
    if not there and not source.startswith(_SENT_IN_SILENCE):  # an assistant does not answer there
        language = draft.language or people.language(conn, conversation.person_id)
        parts = disclosure.with_disclosure(conn, conversation, parts, language)
    said = [one.text for one in draft.parts] if len(parts) == len(draft.parts) else []
    added = 0
    for part, message in enumerate(parts):
        if part in there:
            continue
        message_id = insert(
            conn,
            "messages",
            person_id=conversation.person_id,
            conversation_id=conversation.id,
            direction="out",
            kind=_kind(message),
            text=said[part] if part < len(said) else message.text,
            turn_id=turn,
            at=now,
        )
        insert(
            conn,
            "outbox",
            id=new_id("out"),
            source=source,
            part=part,
            person_id=conversation.person_id,
            conversation_id=conversation.id,
            message_id=message_id,
            payload=orjson.dumps(message).decode(),
            media=message.file.path if message.file else "",
            state=state,
            due_at=now,
            created_at=now,
        )
        added += 1
    return added


def _state_of_new(conn: Connection, conversation: str, source: str, now: float) -> str:
    """Return the state in which a row is queued, "" for one that is not."""
    if source.startswith(_SENT_IN_SILENCE):
        return "ready"
    silent = conn.execute(f"SELECT 1 FROM {SILENT} AND conversation_id = ?", (now, conversation)).fetchone()
    if silent is None:
        return "ready"
    return "held" if source.startswith(_WAITS_IN_SILENCE) else ""


def is_of_business(source: str) -> bool:
    """Return whether the business wrote a row, by the console or by a system of its own."""
    return source.startswith(_SENT_IN_SILENCE)


def first_of(conn: Connection, source: str) -> QueuedRow | None:
    """Return the first row whose source is this one with a mark behind it."""
    row = conn.execute(
        "SELECT id, person_id, source FROM outbox WHERE source LIKE ? AND part = 0", (f"{source}:%",)
    ).fetchone()
    return None if row is None else QueuedRow(row["id"], row["person_id"], row["source"])


def last_source(conn: Connection, person: str, prefix: str) -> str:
    """Return the source of the person's newest row whose source begins so; "" for none."""
    row = conn.execute(
        "SELECT source FROM outbox WHERE person_id = ? AND substr(source, 1, ?) = ?"
        " ORDER BY created_at DESC, rowid DESC LIMIT 1",
        (person, len(prefix), prefix),
    ).fetchone()
    return "" if row is None else str(row["source"])


def put_files(
    conn: Connection, conversation: Conversation, turn: str, messages: Sequence[Outgoing], now: float
) -> None:
    """Queue the files, places and contacts of a turn, each as a message of its own that may fail alone."""
    for number, message in enumerate(messages):
        draft = Draft(message.text, (message,))
        put_reply(conn, conversation, f"turn:{turn}:file:{number}", draft, now, turn)


def take(conn: Connection, person: str, now: float, sendable: tuple[str, ...] | None = None) -> NextSend:
    """Return a person's next row and mark it as on the wire; rows go in order, one at a time.

    `sendable`: how the sources begin that may be sent now; None: whatever there is.
    """
    if not _may_be_sent_to(conn, person, now):
        return NextSend()
    lost: list[str] = []
    may_be_sent = "TRUE"
    if sendable is not None:  # what was refused for a while is counted already
        may_be_sent = f"({_begins_with(sendable)} OR (attempts > 0 AND state <> 'unknown'))"
    while True:
        row = conn.execute(
            f"SELECT * FROM outbox WHERE person_id = ? AND {_OPEN} AND {may_be_sent}"
            f" AND ({_begins_with(_SENT_IN_SILENCE)} OR conversation_id NOT IN"
            f" (SELECT conversation_id FROM {SILENT})) ORDER BY seq LIMIT 1",
            (person, *_patterns(sendable or ()), *_patterns(_SENT_IN_SILENCE), now),
        ).fetchone()
        if row is None:
            return NextSend(lost=tuple(lost))
        clock_set_back = not row["attempts"] and now < row["created_at"]
        if row["due_at"] > now and not clock_set_back:
            return NextSend(at=row["due_at"], lost=tuple(lost))
        if row["state"] == "unknown" and row["resends"]:
            conn.execute("UPDATE outbox SET due_at = NULL, sending_at = NULL WHERE id = ?", (row["id"],))
            lost.append(row["id"])
            continue
        if row["state"] == "held" and _window_closed(conn, row, now):
            fail(
                conn,
                row["id"],
                row["code"] or WINDOW_CLOSED,
                row["error"] or "the 24-hour window closed",
                now,
            )
            continue
        break
    conn.execute(
        "UPDATE outbox SET state = CASE state WHEN 'ready' THEN 'sending' ELSE state END, sending_at = ?,"
        " attempts = attempts + 1, resends = resends + (state = 'unknown'), due_at = ? WHERE id = ?",
        (now, now + SEND_SECONDS, row["id"]),
    )
    return NextSend(row=_outbox_row(conn, row), lost=tuple(lost))


def is_echo(conn: Connection, person: str, wamid: str, text: str, now: float) -> bool | None:
    """Return whether a message that the business is said to have sent is ours; None while that is not known.

    One of unknown outcome whose text is the same was sent, and is marked so.
    """
    ours = conn.execute("SELECT 1 FROM outbox WHERE wamid = ? LIMIT 1", (wamid,)).fetchone()
    if ours is not None:
        return True
    for row in conn.execute(
        "SELECT * FROM outbox WHERE person_id = ? AND (sending_at IS NOT NULL OR state = 'unknown')"
        f" AND {_OPEN}",
        (person,),
    ).fetchall():
        if row["sending_at"] is not None or row["due_at"] > now:
            return None
        if _outgoing(row["payload"]).text == text:
            mark_sent(conn, row["id"], wamid, now)
            return True
    return False


def drop_unsent(conn: Connection, conversation: str, now: float) -> list[str]:
    """Drop what waits to be sent in a conversation, but for the business's own words; reminders are held.

    Return the turns whose replies were dropped before anything of them was sent.
    """
    conn.execute(
        "UPDATE outbox SET state = 'held' WHERE conversation_id = ? AND state = 'ready' AND source LIKE ?"
        " AND sending_at IS NULL",
        (conversation, f"{_WAITS_IN_SILENCE}%"),
    )
    kept = (_WAITS_IN_SILENCE, *_SENT_IN_SILENCE)
    dropped = conn.execute(
        "UPDATE outbox SET state = 'failed', due_at = NULL, error = 'a person of the business answers'"
        f" WHERE conversation_id = ? AND sending_at IS NULL AND {_OPEN}"
        f" AND NOT {_begins_with(kept)} RETURNING source, part",
        (conversation, *_patterns(kept)),
    ).fetchall()
    return [
        row["source"].removeprefix("turn:")
        for row in dropped
        if row["source"].startswith("turn:") and row["part"] == 0
    ]


def _begins_with(sources: Sequence[str]) -> str:
    """Return SQL for the rows whose source begins as one of `_patterns(sources)`."""
    return f"({' OR '.join('source LIKE ?' for _ in sources) or 'FALSE'})"


def _patterns(sources: Sequence[str]) -> list[str]:
    return [f"{source}%" for source in sources]


def has_open(conn: Connection, person: str) -> bool:
    """Return whether the person has a row that is not at its end."""
    row = conn.execute(f"SELECT 1 FROM outbox WHERE person_id = ? AND {_OPEN} LIMIT 1", (person,)).fetchone()
    return row is not None


def mark_sent(conn: Connection, outbox_id: str, wamid: str, now: float) -> None:
    """Keep the id that the channel gave a message, and apply the statuses that came before it."""
    changed = conn.execute(
        "UPDATE outbox SET state = 'sent', wamid = coalesce(wamid, ?), sent_at = coalesce(sent_at, ?),"
        " sending_at = NULL, due_at = NULL, code = 0, error = '' WHERE id = ? AND state <> 'failed'",
        (wamid, now, outbox_id),
    ).rowcount
    if not changed:
        return
    conn.execute(
        "UPDATE messages SET wamid = ? WHERE wamid IS NULL"
        " AND id = (SELECT message_id FROM outbox WHERE id = ?)"
        " AND NOT EXISTS (SELECT 1 FROM messages WHERE wamid = ?)",
        (wamid, outbox_id, wamid),
    )
    early = conn.execute(
        "SELECT status, errors, pricing FROM statuses WHERE wamid = ? AND person_id IS NULL", (wamid,)
    ).fetchall()
    conn.execute(
        "UPDATE statuses SET outbox_id = ?, person_id = (SELECT person_id FROM outbox WHERE id = ?)"
        " WHERE wamid = ? AND person_id IS NULL",
        (outbox_id, outbox_id, wamid),
    )
    for status in early:
        if (pricing := billing.from_json(status["pricing"])) is not None:
            _bill(conn, wamid, outbox_id, pricing, now)
        if status["status"] == "failed":
            code, error = _first_error(status["errors"])
            _fail_after_sent(conn, outbox_id, wamid, code, error, now)


def retry(conn: Connection, outbox_id: str, due: float, code: int, error: str) -> None:
    """Leave a row that was refused before it was sent in its place until `due`."""
    conn.execute(
        "UPDATE outbox SET sending_at = NULL, resends = 0, due_at = ?, code = ?, error = ?"
        f" WHERE id = ? AND {_OPEN}",
        (due, code, error[:500], outbox_id),
    )


def hold(conn: Connection, outbox_id: str, code: int, error: str, now: float) -> None:
    """Hold a row for the operator; it is tried again now and then, and when `release_held` makes it due."""
    conn.execute(
        "UPDATE outbox SET state = CASE state WHEN 'unknown' THEN 'unknown' ELSE 'held' END,"
        " sending_at = NULL, resends = 0, due_at = ?, code = ?, error = ?"
        f" WHERE id = ? AND {_OPEN}",
        (now + HOLD_SECONDS, code, error[:500], outbox_id),
    )


def queue_late(conn: Connection, person: str, conversation: str, now: float) -> None:
    """Queue once more what failed before the person's newest message, if they were called back for it."""
    before = _written_at(conn, person, 1)
    called = conn.execute("SELECT 1 FROM outbox WHERE source = ?", (calls_back(conversation, before),))
    if called.fetchone() is None:
        return
    for row in conn.execute(
        "SELECT id, source FROM outbox WHERE person_id = ? AND conversation_id = ? AND state = 'failed'"
        f" AND code = {WINDOW_CLOSED} AND media = '' AND created_at >= ?"
        f" AND NOT {_begins_with(_NEVER_LATE)} ORDER BY seq",
        (person, conversation, before or 0.0, *_patterns(_NEVER_LATE)),
    ).fetchall():
        if _state_of_new(conn, conversation, row["source"], now):
            _copy(conn, row["id"], f"{_LATE}{row['source']}", now, now)


def calls_back(conversation: str, last: float | None) -> str:
    """Return the source of the template that asks a person to write again, who wrote last at that time."""
    return f"{_CALLS_BACK}{conversation}:{last}"


def _copy(conn: Connection, outbox_id: str, source: str, due: float, now: float) -> None:
    """Queue the message of a row again under another source."""
    conn.execute(
        "INSERT INTO outbox (id, source, part, person_id, conversation_id, message_id, payload, media,"
        " state, due_at, created_at) SELECT ?, ?, part, person_id, conversation_id, message_id, payload,"
        " '', 'ready', ?, ? FROM outbox WHERE id = ?",
        (new_id("out"), source, due, now, outbox_id),
    )


def release_held(conn: Connection, now: float) -> list[str]:
    """Make every held row due; return the people concerned."""
    rows = conn.execute(
        f"UPDATE outbox SET due_at = ? WHERE {_OPEN} AND state = 'held' AND due_at > ? RETURNING person_id",
        (now, now),
    )
    return sorted({row["person_id"] for row in rows.fetchall()})


def mark_unknown(conn: Connection, outbox_id: str, error: str, due: float) -> bool:
    """Mark a send without an answer; its status is awaited until `due`. Return True if that is its end."""
    row = conn.execute(f"SELECT resends FROM outbox WHERE id = ? AND {_OPEN}", (outbox_id,)).fetchone()
    if row is None:
        return False
    conn.execute(
        "UPDATE outbox SET state = 'unknown', sending_at = NULL, due_at = ?, error = ? WHERE id = ?",
        (due, error[:500], outbox_id),
    )
    return bool(row["resends"])


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
        conn.execute(
            "UPDATE outbox SET state = 'failed', sending_at = NULL, due_at = NULL, code = ?,"
            f" error = 'an earlier part failed' WHERE source = ? AND part > ? AND {_OPEN}",
            (code, row["source"], row["part"]),
        )
        disclosure.renew(conn, row["conversation_id"])
        if row["media"]:
            _say_not_sent(conn, row, now)


def apply_status(conn: Connection, status: Status, now: float) -> StatusEffect | None:
    """Record a status and apply it to its row; return None if it is not new or has no row."""
    errors = orjson.dumps(status.errors).decode()
    new = conn.execute(
        "INSERT INTO statuses (wamid, status, outbox_id, errors, pricing, at, received_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            status.id,
            status.status,
            status.outbox_id,
            errors,
            billing.to_json(status.pricing),
            status.at,
            now,
        ),
    ).rowcount
    if not new:
        return None
    row = conn.execute("SELECT id, person_id FROM outbox WHERE id = ?", (status.outbox_id,)).fetchone()
    if row is None:
        row = conn.execute("SELECT id, person_id FROM outbox WHERE wamid = ?", (status.id,)).fetchone()
    if row is None:
        if status.outbox_id:  # its row stood before it was sent: the person is erased
            conn.execute("DELETE FROM statuses WHERE wamid = ? AND status = ?", (status.id, status.status))
        return None
    conn.execute(
        "UPDATE statuses SET person_id = ?, outbox_id = ? WHERE wamid = ? AND status = ?",
        (row["person_id"], row["id"], status.id, status.status),
    )
    if status.pricing is not None:
        billing.record(conn, status.id, row["person_id"], status.pricing, now)
    if status.status in _PROOFS:
        mark_sent(conn, row["id"], status.id, now)
    if status.status != "failed":
        _withdraw_again(conn, row["id"], status.status)
        return StatusEffect(row["person_id"])
    code, error = _first_error(errors)
    again = _fail_after_sent(conn, row["id"], status.id, code, error, now)
    return StatusEffect(row["person_id"], code, error, again)


def _bill(conn: Connection, wamid: str, outbox_id: str, pricing: Pricing, now: float) -> None:
    row = conn.execute("SELECT person_id FROM outbox WHERE id = ?", (outbox_id,)).fetchone()
    billing.record(conn, wamid, row["person_id"], pricing, now)


def _fail_after_sent(conn: Connection, outbox_id: str, wamid: str, code: int, error: str, now: float) -> bool:
    """Apply the status that a row does not arrive; return whether it is sent again."""
    again = _queue_again(conn, outbox_id, wamid, code, now)
    fail(conn, outbox_id, code, error, now, after_sent=True)
    return again


def _queue_again(conn: Connection, outbox_id: str, wamid: str, code: int, now: float) -> bool:
    """Queue a text that is about to fail, and its later parts, once more; return whether that was done.

    One of unknown outcome that was sent twice is not: the other of the two may arrive.
    """
    row = conn.execute("SELECT * FROM outbox WHERE id = ? AND state <> 'failed'", (outbox_id,)).fetchone()
    if row is None or code not in PASSING or row["media"] or row["source"].startswith(_NEVER_AGAIN):
        return False
    if row["resends"] or row["wamid"] not in (None, wamid):
        return False
    times, source = _times_sent_again(row["source"])
    if times == len(AGAIN_AFTER_SECONDS) or now - (row["sent_at"] or now) > AGAIN_SECONDS:
        return False
    arrived = "SELECT 1 FROM statuses WHERE outbox_id = ? AND status IN (?, ?, ?)"
    if conn.execute(arrived, (outbox_id, *_ARRIVED)).fetchone() is not None:
        return False
    later = conn.execute(
        "SELECT * FROM outbox WHERE person_id = ? AND seq > ? AND state <> 'failed' ORDER BY seq",
        (row["person_id"], row["seq"]),
    ).fetchall()
    if any(one["source"] != row["source"] or one["state"] != "ready" or one["sending_at"] for one in later):
        return False
    for one in (row, *later):
        _copy(conn, one["id"], f"{_AGAIN}{times + 1}:{source}", now + AGAIN_AFTER_SECONDS[times], now)
    return True


def _withdraw_again(conn: Connection, outbox_id: str, status: str) -> None:
    """Cancel the second send of a row whose failure is taken back by a later status."""
    if status not in _ARRIVED:
        return
    row = conn.execute(
        "SELECT source, part FROM outbox WHERE id = ? AND state = 'failed'", (outbox_id,)
    ).fetchone()
    if row is None:
        return
    times, source = _times_sent_again(row["source"])
    conn.execute(
        "UPDATE outbox SET state = 'failed', due_at = NULL, error = 'it arrived before'"
        " WHERE source = ? AND part = ? AND state = 'ready' AND sending_at IS NULL",
        (f"{_AGAIN}{times + 1}:{source}", row["part"]),
    )


def _times_sent_again(source: str) -> tuple[int, str]:
    """Return how often a source was sent again, and the first source."""
    if not source.startswith(_AGAIN):
        return 0, source
    _, times, first = source.split(":", 2)
    return int(times), first


def recover(conn: Connection, due: float) -> int:
    """Mark what was on the wire when the process ended as of unknown outcome until `due`."""
    return conn.execute(
        "UPDATE outbox SET state = 'unknown', sending_at = NULL, due_at = ?"
        f" WHERE sending_at IS NOT NULL AND {_OPEN}",
        (due,),
    ).rowcount


def await_statuses(conn: Connection, due: float) -> None:
    """Give what is unknown until `due` for its status: the webhook listens from now on."""
    conn.execute(
        "UPDATE outbox SET due_at = ? WHERE state = 'unknown' AND sending_at IS NULL AND due_at < ?"
        f" AND {_OPEN}",
        (due, due),
    )


def mend_clock(conn: Connection, now: float) -> None:
    """End pauses counted by a clock that was set back, as our newest message shows.

    What would be tried again is due; an unknown send has `SEND_SECONDS` left for its status.
    """
    newest = conn.execute("SELECT at FROM messages ORDER BY id DESC LIMIT 1").fetchone()
    if newest is None or newest["at"] <= now:
        return
    conn.execute(
        "UPDATE outbox SET due_at = min(due_at, ? + (state = 'unknown') * ?)"
        f" WHERE due_at > ? AND sending_at IS NULL AND {_OPEN}",
        (now, SEND_SECONDS, now),
    )


def people_waiting(conn: Connection, channels: Collection[str], now: float, ahead: float = 0.0) -> list[str]:
    """Return the people with a row on one of these channels that is due within `ahead` seconds."""
    rows = conn.execute(
        "SELECT DISTINCT o.person_id, c.channel FROM outbox o"
        " JOIN conversations c ON c.id = o.conversation_id"
        " WHERE o.state IN ('ready', 'sending', 'unknown', 'held') AND o.due_at IS NOT NULL"
        " AND (o.due_at <= ? OR (o.attempts = 0 AND o.created_at > ?))"  # a clock that was set back
        f" AND (o.state <> 'held' OR o.conversation_id NOT IN (SELECT conversation_id FROM {SILENT}))",
        (now + ahead, now, now + ahead),
    )
    return sorted({row["person_id"] for row in rows if row["channel"] in channels})


def _may_be_sent_to(conn: Connection, person: str, now: float) -> bool:
    """Return whether a person may be sent to; rows of a frozen one wait, those of a blocked one fail."""
    row = conn.execute("SELECT access, frozen FROM people WHERE id = ?", (person,)).fetchone()
    if row is None or row["access"] != "blocked":
        return row is not None and not row["frozen"]
    waiting = conn.execute(f"SELECT id FROM outbox WHERE person_id = ? AND {_OPEN}", (person,)).fetchall()
    for one in waiting:
        fail(conn, one["id"], 0, "the person was shut out", now)
    return False


def _window_closed(conn: Connection, row: Row, now: float) -> bool:
    """Return whether the person wrote too long ago for this row; a template needs no window."""
    if _outgoing(row["payload"]).template is not None:
        return False
    since = last_written_at(conn, row["person_id"]) or row["created_at"]
    return bool(row["attempts"]) and now > since + WINDOW_SECONDS


def last_written_at(conn: Connection, person: str) -> float | None:
    """Return when the person wrote last, None if they never did."""
    return _written_at(conn, person, 0)


def _written_at(conn: Connection, person: str, later: int) -> float | None:
    """Return when the person wrote the message after which they wrote `later` others."""
    row = conn.execute(
        f"SELECT at FROM messages WHERE person_id = ? AND {WRITTEN} ORDER BY id DESC LIMIT 1 OFFSET ?",
        (person, later),
    ).fetchone()
    return None if row is None else row["at"]


def _outbox_row(conn: Connection, row: Row) -> OutboxRow:
    where = conn.execute(
        "SELECT channel, group_id FROM conversations WHERE id = ?", (row["conversation_id"],)
    ).fetchone()
    addresses = {
        alias["kind"]: alias["address"]
        for alias in conn.execute(
            "SELECT kind, address FROM aliases WHERE person_id = ? ORDER BY created_at", (row["person_id"],)
        )
    }
    return OutboxRow(
        id=row["id"],
        person_id=row["person_id"],
        channel=where["channel"],
        to=Address(addresses.get("phone", ""), addresses.get("user_id", ""), where["group_id"]),
        message=_outgoing(row["payload"]),
        attempts=row["attempts"] + 1,
        is_second_send=row["state"] == "unknown",
    )


def _outgoing(payload: str) -> Outgoing:
    data = orjson.loads(payload)
    for name in ("buttons", "rows"):
        data[name] = tuple(Button(**one) for one in data.get(name, ()))
    if found := data.get("template"):
        data["template"] = Template(**{**found, "parameters": tuple(found.get("parameters", ()))})
    if found := data.get("file"):
        data["file"] = MediaFile(**found)
    if found := data.get("link"):
        data["link"] = Link(**found)
    return Outgoing(**data)


def _kind(message: Outgoing) -> str:
    if message.file is not None:
        return message.file.kind
    if message.block is not None:
        return next(iter(message.block))
    is_interactive = message.buttons or message.rows or message.link or message.asks_location
    return "interactive" if is_interactive else "text"


def _say_not_sent(conn: Connection, row: Row, now: float) -> None:
    """Tell the person that a file which the reply spoke of does not come."""
    where = conn.execute(
        "SELECT c.*, p.language FROM conversations c JOIN people p ON p.id = c.person_id WHERE c.id = ?",
        (row["conversation_id"],),
    ).fetchone()
    conversation = Conversation(where["id"], row["person_id"], where["channel"], where["group_id"])
    name = _outgoing(row["payload"]).text
    text = say(where["language"], "I could not send you this file: {name}", name=name)
    put_reply(conn, conversation, f"unsent:{row['id']}", Draft(text, (Outgoing(text),)), now)


def _first_error(errors: str) -> tuple[int, str]:
    found: Sequence[dict[str, object]] = orjson.loads(errors)
    if not found:
        return 0, "no reason given"
    first = found[0]
    return int(str(first["code"])), str(first["detail"] or first["title"] or "no reason given")
