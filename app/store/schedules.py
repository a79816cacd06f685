"""Reminders: whose, what, and when next. This table is the truth; alarm clocks only hint at it."""

from collections.abc import Collection
from dataclasses import dataclass
from sqlite3 import Connection, Row

from app.people import Conversation
from app.store import outbox
from app.store.outbox import Draft, sent_as

SOURCE = "sched:"
AT_ONCE = 200
"""Fired in one transaction."""
_OURS = f"source >= '{SOURCE}' AND source < 'sched;'"
_QUOTED = "m.payload ->> '$.quoted'"
_MAY_BE_TOLD = "access <> 'blocked' AND frozen = ''"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One reminder. `due_at` is its next time, and of one that is over (`active` False) its last."""

    id: str
    person_id: str
    conversation_id: str
    number: int
    text: str
    rule: str
    start: str
    zone: str
    due_at: float
    active: bool = True
    taint: str = ""
    told_due: float | None = None
    told_at: float | None = None
    held_at: float | None = None
    resends: int = 0
    changed_by: str = ""

    @property
    def source(self) -> str:
        """Of its next outbox row: the same time is never told twice."""
        again = f":{self.resends}" if self.resends else ""
        return f"{SOURCE}{self.id}:{self.due_at:.3f}{again}"


@dataclass(frozen=True, slots=True)
class Due:
    """A schedule whose time has come, and what is known of its person."""

    schedule: Schedule
    language: str
    conversation: Conversation
    own_zone: str = ""
    """The zone that the person said is theirs, "" where they said none."""


@dataclass(frozen=True, slots=True)
class Firing:
    """What a due schedule becomes: a message, and its next time (None: it is over)."""

    due: Due
    draft: Draft
    next_due: float | None


def due(conn: Connection, channels: Collection[str], now: float) -> list[Due]:
    """What is due on these channels and not held, the earliest first; nothing of people who are blocked or
    frozen."""
    marks = ",".join("?" * len(channels))
    rows = conn.execute(
        "SELECT s.*, p.language, p.timezone, c.channel FROM schedules s JOIN people p ON p.id = s.person_id"
        " JOIN conversations c ON c.id = s.conversation_id"
        f" WHERE s.active = 1 AND s.held_at IS NULL AND s.due_at <= ? AND {_MAY_BE_TOLD}"
        f" AND c.channel IN ({marks}) ORDER BY s.due_at, s.rowid LIMIT ?",
        (now, *channels, AT_ONCE),
    )
    return [
        Due(
            schedule_of(row),
            row["language"] or "en",
            Conversation(row["conversation_id"], row["person_id"], row["channel"]),
            row["timezone"],
        )
        for row in rows.fetchall()
    ]


def fire(conn: Connection, firing: Firing, now: float) -> bool:
    """Queues the message and sets the next time, both or neither; False where somebody else did already."""
    schedule = firing.due.schedule
    moved = conn.execute(
        "UPDATE schedules SET due_at = coalesce(?, due_at), active = ? IS NOT NULL, told_due = due_at,"
        " told_at = ?, told_as = ?, changed_at = ?"
        " WHERE id = ? AND due_at = ? AND resends = ? AND active = 1 AND held_at IS NULL"
        f" AND EXISTS (SELECT 1 FROM people WHERE id = person_id AND {_MAY_BE_TOLD})",
        (
            firing.next_due,
            firing.next_due,
            now,
            schedule.source,
            now,
            schedule.id,
            schedule.due_at,
            schedule.resends,
        ),
    ).rowcount
    if not moved:
        return False
    outbox.put_notice(conn, firing.due.conversation, schedule.source, firing.draft, now)
    return True


def hold(conn: Connection, schedule: Schedule, now: float) -> None:
    """It is due and cannot be sent now: it waits for the person to write."""
    conn.execute(
        "UPDATE schedules SET held_at = ? WHERE id = ? AND due_at = ? AND active = 1 AND held_at IS NULL",
        (now, schedule.id, schedule.due_at),
    )


def hold_unsent(conn: Connection, now: float) -> None:
    """Takes back what was told by a message that failed: it is told when the person writes next."""
    conn.execute(
        "UPDATE schedules SET active = 1, due_at = told_due, held_at = ?, resends = resends + 1, told_as = ''"
        f" WHERE told_as IN (SELECT source FROM outbox WHERE state = 'failed' AND {_OURS})",
        (now,),
    )


def release_held(conn: Connection, now: float) -> None:
    """Lets go what waited for a person who has written since, and what was held at a time that is still to
    come: the clock was set back, and nobody would be waited for until then."""
    conn.execute(
        "UPDATE schedules SET held_at = NULL WHERE held_at IS NOT NULL AND (held_at > ? OR EXISTS ("
        "SELECT 1 FROM messages m"
        " WHERE m.person_id = schedules.person_id AND m.conversation_id = schedules.conversation_id"
        f" AND m.{outbox.WRITTEN} AND m.at >= held_at))",
        (now,),
    )


def told_ahead(conn: Connection, now: float) -> list[Schedule]:
    """Those that were told at a time that is still to come: the clock was set back since."""
    return [schedule_of(row) for row in conn.execute("SELECT * FROM schedules WHERE told_at > ?", (now,))]


def set_back(conn: Connection, schedule: Schedule, due: float, now: float) -> None:
    """Follows the clock that was set back: it was told just now, and comes again when it is `due`."""
    conn.execute(
        "UPDATE schedules SET told_at = ?, due_at = ? WHERE id = ? AND told_at = ? AND due_at = ?",
        (now, due, schedule.id, schedule.told_at, schedule.due_at),
    )


def release_for_template(conn: Connection) -> None:
    """Lets go what a template may bring: all that waits but for what already failed."""
    conn.execute("UPDATE schedules SET held_at = NULL WHERE held_at IS NOT NULL AND resends = 0")


def held(conn: Connection) -> frozenset[str]:
    """Conversations in which something waits for the person to write."""
    rows = conn.execute("SELECT DISTINCT conversation_id FROM schedules WHERE held_at IS NOT NULL")
    return frozenset(row["conversation_id"] for row in rows)


def waiting(conn: Connection, now: float) -> bool:
    """Whether there is anything to tell, to hold or to set back; what could not be sent and what was waited
    for count."""
    hold_unsent(conn, now)
    release_held(conn, now)
    row = conn.execute(
        "SELECT 1 FROM schedules WHERE active = 1 AND held_at IS NULL AND due_at <= ?1"
        " UNION ALL SELECT 1 FROM schedules WHERE told_at > ?1 LIMIT 1",
        (now,),
    ).fetchone()
    return row is not None


def next_due(conn: Connection, now: float) -> float | None:
    """When the next one is due that is not yet; None where there is none."""
    row = conn.execute(
        "SELECT min(due_at) AS due FROM schedules WHERE active = 1 AND held_at IS NULL AND due_at > ?", (now,)
    ).fetchone()
    return None if row["due"] is None else float(row["due"])


def last_inbound(conn: Connection, conversation: Conversation) -> float:
    """When the person last wrote there; 0 where never."""
    row = conn.execute(
        f"SELECT at FROM messages WHERE person_id = ? AND conversation_id = ? AND {outbox.WRITTEN}"
        " ORDER BY id DESC LIMIT 1",
        (conversation.person_id, conversation.id),
    ).fetchone()
    return 0.0 if row is None else float(row["at"])


def add(conn: Connection, schedule: Schedule, most: int, now: float) -> Schedule | None:
    """Keeps a new one under the person's next number; the same id again is the one that is there.

    None where the person has `most` active ones already.
    """
    known = conn.execute("SELECT * FROM schedules WHERE id = ?", (schedule.id,)).fetchone()
    if known is not None:
        return schedule_of(known)
    if len(active(conn, schedule.person_id)) >= most:
        return None
    conn.execute(
        "INSERT INTO schedules (id, person_id, conversation_id, number, text, rule, start, zone, due_at,"
        " taint, changed_by, changed_at, created_at)"
        " SELECT ?, ?, ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM schedules"
        " WHERE person_id = ?",
        (
            schedule.id,
            schedule.person_id,
            schedule.conversation_id,
            schedule.text,
            schedule.rule,
            schedule.start,
            schedule.zone,
            schedule.due_at,
            schedule.taint,
            schedule.changed_by,
            now,
            now,
            schedule.person_id,
        ),
    )
    return schedule_of(conn.execute("SELECT * FROM schedules WHERE id = ?", (schedule.id,)).fetchone())


def change(conn: Connection, schedule: Schedule, now: float) -> bool:
    """Writes what was changed of one of the person's; it is active again. False where it is gone."""
    return bool(
        conn.execute(
            "UPDATE schedules SET text = ?, rule = ?, start = ?, zone = ?, due_at = ?, taint = ?, active = 1,"
            " told_as = '', held_at = NULL, changed_by = ?, changed_at = ? WHERE id = ? AND person_id = ?",
            (
                schedule.text,
                schedule.rule,
                schedule.start,
                schedule.zone,
                schedule.due_at,
                schedule.taint,
                schedule.changed_by,
                now,
                schedule.id,
                schedule.person_id,
            ),
        ).rowcount
    )


def cancel(conn: Connection, person: str, schedule: str, changed_by: str, now: float) -> bool:
    """Ends one of the person's; False where it was over."""
    return bool(
        conn.execute(
            "UPDATE schedules SET active = 0, told_as = '', held_at = NULL, told_at = NULL,"
            " changed_by = ?, changed_at = ? WHERE id = ? AND person_id = ? AND active = 1",
            (changed_by, now, schedule, person),
        ).rowcount
    )


def active(conn: Connection, person: str) -> list[Schedule]:
    """The person's, the next first."""
    rows = conn.execute(
        "SELECT * FROM schedules WHERE person_id = ? AND active = 1 ORDER BY due_at, number", (person,)
    )
    return [schedule_of(row) for row in rows]


def last_told(conn: Connection, person: str, since: float) -> Schedule | None:
    """The one that the person was told last, if it was after `since`; of several at once the last message."""
    row = conn.execute(
        "SELECT * FROM schedules WHERE person_id = ? AND told_at > ?"
        " ORDER BY told_at DESC, told_due DESC, rowid DESC LIMIT 1",
        (person, since),
    ).fetchone()
    return None if row is None else schedule_of(row)


def quoted(conn: Connection, conversation: str) -> Schedule | None:
    """The one whose message is quoted in the turn that runs in a conversation."""
    row = conn.execute(
        "SELECT o.source FROM turns t JOIN messages m ON m.turn_id = t.id AND m.direction = 'in'"
        f" JOIN outbox o ON o.id IN {sent_as(_QUOTED)}"
        " WHERE t.conversation_id = ? AND t.state <> 'done' AND t.state = 'running'"  # turns_open
        f" AND o.conversation_id = ? AND {_OURS} ORDER BY m.id DESC LIMIT 1",
        (conversation, conversation),
    ).fetchone()
    return None if row is None else by_id(conn, row["source"].split(":")[1])


def changed_by(conn: Connection, person: str, key: str) -> Schedule | None:
    """The one that a call changed last."""
    row = conn.execute(
        "SELECT * FROM schedules WHERE person_id = ? AND changed_by = ?", (person, key)
    ).fetchone()
    return None if row is None else schedule_of(row)


def by_id(conn: Connection, schedule: str) -> Schedule | None:
    row = conn.execute("SELECT * FROM schedules WHERE id = ?", (schedule,)).fetchone()
    return None if row is None else schedule_of(row)


def schedule_of(row: Row) -> Schedule:
    return Schedule(
        id=row["id"],
        person_id=row["person_id"],
        conversation_id=row["conversation_id"],
        number=row["number"],
        text=row["text"],
        rule=row["rule"],
        start=row["start"],
        zone=row["zone"],
        due_at=row["due_at"],
        active=bool(row["active"]),
        taint=row["taint"],
        told_due=row["told_due"],
        told_at=row["told_at"],
        held_at=row["held_at"],
        resends=row["resends"],
        changed_by=row["changed_by"],
    )


def forget_over(conn: Connection, before: float, most: int) -> int:
    """Deletes what has been over since before a time."""
    return conn.execute(
        "DELETE FROM schedules WHERE id IN"
        " (SELECT id FROM schedules WHERE active = 0 AND changed_at < ? LIMIT ?)",
        (before, most),
    ).rowcount
