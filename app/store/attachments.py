"""Files that came with messages: what is still to be fetched or read, and what was found in each.

A file is taken up before its message is: `new` → `kept` (its bytes are here) → `read`, or `failed` with a
reason. What was found is written into the message itself, where prompts, answers to questions and the
history read it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson
from pydantic import TypeAdapter

from app.messages import JSON, Attachment, Inbound
from app.people import Conversation
from app.store.conditions import MAY_TALK, UNCLAIMED
from app.store.database import Connection, Row, exists, insert, placeholders, read_row, scalar, update
from app.store.people import KnownPerson, by_id

READABLE = frozenset({"audio", "voice", "image", "sticker", "document"})
MOST_ATTEMPTS = 3
_ATTACHMENT = TypeAdapter(Attachment)

Reason = Literal[
    "away", "damaged", "empty", "gone", "locked", "no_room", "too_large", "too_many", "too_slow", "unheard"
]


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file whose message waits for it; `path` is where its bytes are, "" before they were fetched."""

    message: int
    kind: str
    path: str
    channel: str
    attachment: Attachment
    person: KnownPerson


# SQL for files `a` with their messages
_FILES = (
    "SELECT m.id AS message, m.kind, m.payload, a.path, a.person_id,"
    " c.channel FROM attachments a JOIN messages m ON m.id = a.message_id"
    " JOIN conversations c ON c.id = a.conversation_id"
)


def expect(conn: Connection, conversation: Conversation, row: int, message: Inbound, now: float) -> None:
    """Note that a message's file is to be fetched and read before the message is taken up."""
    if message.attachment is None or message.kind not in READABLE:
        return
    insert(
        conn, "attachments", or_skip=True, message_id=row, **conversation.columns, state="new", created_at=now
    )


def is_waited_for(conn: Connection, messages: Sequence[int]) -> bool:
    """Return whether one of these messages has a file that is still to be read."""
    marks = placeholders(messages)
    sql = f"SELECT 1 FROM attachments WHERE message_id IN ({marks}) AND state IN ('new', 'kept')"
    return exists(conn, sql, *messages)


def waiting(conn: Connection, messages: Sequence[int]) -> list[WaitingFile]:
    """Return the files of these messages that are still to be read."""
    rows = conn.execute(
        f"{_FILES} JOIN inbox ON inbox.message_id = a.message_id"
        f" JOIN people ON people.id = a.person_id AND {MAY_TALK}"
        f" WHERE a.message_id IN ({placeholders(messages)}) AND a.state IN ('new', 'kept')"
        f" AND {UNCLAIMED} ORDER BY a.message_id",
        tuple(messages),
    )
    return [_file(conn, row) for row in rows.fetchall()]


def count_read(conn: Connection, messages: Sequence[int]) -> int:
    """Return how many files of these messages were read, or tried in vain."""
    is_read = "state NOT IN ('new', 'kept') AND reason <> 'too_many'"
    sql = f"SELECT count(*) FROM attachments WHERE message_id IN ({placeholders(messages)}) AND {is_read}"
    return int(scalar(conn, sql, *messages))


def begin(conn: Connection, message: int) -> bool:
    """Count one more attempt to read a file; return False if `MOST_ATTEMPTS` had no end, which fails it."""
    sql = "UPDATE attachments SET attempts = attempts + 1 WHERE message_id = ? AND attempts < ?"
    counted = conn.execute(sql, (message, MOST_ATTEMPTS))
    if not counted.rowcount:
        fail(conn, message, "damaged")
    return counted.rowcount > 0


def waiting_file(conn: Connection, message: int) -> WaitingFile:
    """Return a file with its message and its person."""
    return _file(conn, conn.execute(f"{_FILES} WHERE a.message_id = ?", (message,)).fetchone())


def _file(conn: Connection, row: Row) -> WaitingFile:
    attachment = _ATTACHMENT.validate_python(orjson.loads(row["payload"])["attachment"])
    return read_row(WaitingFile, row, attachment=attachment, person=by_id(conn, row["person_id"]))


def keep(conn: Connection, message: int, path: str) -> None:
    """Note that the bytes of a file are at `path` below DATA_DIR/media."""
    update(conn, "attachments", "message_id = ? AND state = 'new'", message, state="kept", path=path)


def finish(conn: Connection, message: int, found: Mapping[str, JSON], transcript: str = "") -> bool:
    """Write what was found in a file into its message; return False if that was done before.

    The transcript of a voice note becomes the message's text.
    """
    if not _end(conn, message, "read"):
        return False
    _tell(conn, message, {**found, "state": "read"})
    if transcript:
        update(conn, "messages", "id = ?", message, text=transcript, recalled=0)
    return True


def fail(conn: Connection, message: int, reason: Reason) -> None:
    """End a file that cannot be had or read; its message says why."""
    if _end(conn, message, "failed", reason):
        _tell(conn, message, {"state": "failed", "reason": reason})


def _end(conn: Connection, message: int, state: Literal["read", "failed"], reason: str = "") -> bool:
    is_open = "message_id = ? AND state IN ('new', 'kept', 'unheard')"
    return bool(update(conn, "attachments", is_open, message, state=state, reason=reason, path=""))


def give_up_old(conn: Connection, before: float, most: int) -> int:
    """End files whose messages nobody waits for any more, and voice notes that an earlier version kept.

    Their bytes go with the next sweep of DATA_DIR/media. Return how many there were.
    """
    rows = conn.execute(
        "SELECT a.message_id FROM attachments a WHERE a.state IN ('new', 'kept', 'unheard')"
        " AND a.created_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.message_id = a.message_id AND i.done_at IS NULL)"
        " LIMIT ?",
        (before, most),
    ).fetchall()
    for row in rows:
        fail(conn, row["message_id"], "gone")
    return len(rows)


def _tell(conn: Connection, message: int, found: Mapping[str, JSON]) -> None:
    """Add what was found to the attachment in the message's own row."""
    payload = orjson.loads(scalar(conn, "SELECT payload FROM messages WHERE id = ?", message))
    payload["attachment"] = {**(payload.get("attachment") or {}), **found}
    update(conn, "messages", "id = ?", message, payload=orjson.dumps(payload).decode(), recalled=0)
