"""In whose name whoever holds the administrator's token acts, and what is kept of the calls made in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection, Row

import orjson

from app.messages import JSON, Sender
from app.people import Conversation
from app.store import people
from app.store.ownership import Doors
from app.store.uncertain import UncertainCall

OUTCOME = "mcp"
"""Of a turn that is one call, and nothing of a conversation."""
_OPEN = Doors("terminal", open=True)


@dataclass(frozen=True, slots=True)
class Entered:
    """Who calls, and where they are told what comes later; `uncertain`: such a call was made before, and
    may have happened or not."""

    person: Row
    names: Sequence[str]
    conversation: Conversation
    uncertain: bool


def enter(conn: Connection, doors: Doors, call: UncertainCall, now: float) -> Entered:
    """The owner who has been known for longest. Without one: an owner of the configuration who has not
    written yet, else one whom nobody is."""
    person = _owner(conn, doors) or _make_owner(conn, doors, now)
    row = conn.execute("SELECT * FROM people WHERE id = ?", (person,)).fetchone()
    names = conn.execute("SELECT value FROM aliases WHERE person_id = ? ORDER BY kind", (person,))
    found = conn.execute(
        "SELECT 1 FROM uncertain_calls WHERE person_id = ? AND tool = ? AND arguments_hash = ?",
        (person, *call),
    )
    return Entered(
        row,
        [name["value"] for name in names],
        people.conversation(conn, person, row["realm"], "", now),
        found.fetchone() is not None,
    )


def record(
    conn: Connection, turn: str, conversation: Conversation, kind: str, row: dict[str, JSON], now: float
) -> None:
    """Keeps what was called or what it came to, in a turn that is over from its beginning: nothing takes it
    up after a crash."""
    conn.execute(
        "INSERT INTO turns (id, person_id, conversation_id, state, outcome, created_at, done_at)"
        " VALUES (?, ?, ?, 'done', ?, ?, ?) ON CONFLICT (id) DO UPDATE SET done_at = excluded.done_at",
        (turn, conversation.person_id, conversation.id, OUTCOME, now, now),
    )
    conn.execute(
        "INSERT INTO journal (turn_id, key, person_id, kind, payload, at) VALUES (?, ?, ?, ?, ?, ?)",
        (turn, f"{kind}:0:call", conversation.person_id, kind, orjson.dumps(row).decode(), now),
    )


def _owner(conn: Connection, doors: Doors) -> str | None:
    marks = ",".join("?" * len(doors.owners))
    row = conn.execute(
        "SELECT id FROM people WHERE realm = ? AND frozen = '' AND access <> 'blocked' AND (role = 'owner'"
        f" OR id IN (SELECT person_id FROM aliases WHERE realm = ? AND value IN ({marks})))"
        " ORDER BY created_at, id LIMIT 1",
        (doors.realm, doors.realm, *doors.owners),
    ).fetchone()
    return None if row is None else str(row["id"])


def _make_owner(conn: Connection, doors: Doors, now: float) -> str:
    known = {
        row["value"] for row in conn.execute("SELECT value FROM aliases WHERE realm = ?", (doors.realm,))
    }
    phones = sorted(name for name in doors.owners - known if name.isdigit())
    if phones:
        admitted = people.admit(conn, doors, Sender(phone=phones[0]), "", now)
    else:  # no message comes from this name
        admitted = people.admit(conn, _OPEN, Sender(user_id=OUTCOME), "", now)
    assert isinstance(admitted, people.Admitted)  # the doors let them in
    if not phones:
        conn.execute("UPDATE people SET role = 'owner' WHERE id = ?", (admitted.person.id,))
    return admitted.person.id
