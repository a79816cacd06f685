"""Schedules: a person's reminders, tasks and watches; alarm clocks only hint at this table.

A reminder tells its text. A task runs a turn with its text as if the person had just asked for it; a watch
does too, and may end without a word.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import orjson

from app.people import Conversation
from app.store import outbox
from app.store.conditions import MAY_TALK, RUNNING, UNCLAIMED, WRITTEN
from app.store.database import Connection, Row, delete, exists, insert, placeholders, read_row, scalar, update
from app.store.outbox import SENT_AS, Draft

SOURCE = "sched:"
_IS_RUN = "messages.wamid >= ? AND messages.wamid < ?"  # of the schedule that `_runs` names
AT_ONCE = 200  # fired in one transaction
_OURS = f"source >= '{SOURCE}' AND source < 'sched;'"
_WRITTEN = ("text", "rule", "start", "zone", "due_at", "taint", "paused_at", "changed_by")  # by a change
_WAITS = "schedules.active = 1 AND schedules.held_at IS NULL AND schedules.paused_at IS NULL"
_DUE = f"{_WAITS} AND schedules.due_at <= ? AND coalesce(schedules.put_off_until, 0) <= ?"  # the time, twice
LONGEST_PUT_OFF = 86_400.0  # seconds: what waits longer was put off by a clock that was ahead

Kind = Literal["reminder", "task", "watch"]

RESTORED_SECONDS = 7 * 24 * 3600.0  # that a cancelled reminder can be set again


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule; `due_at` is its next time, or its last if it is over (`active` False)."""

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
    kind: Kind = "reminder"
    paused_at: float | None = None
    put_off_until: float | None = None

    @property
    def next_at(self) -> float:
        """Return when it comes: at its time, or at the end of quiet hours."""
        return max(self.due_at, self.put_off_until or 0.0)

    @property
    def runs_turn(self) -> bool:
        """Return True if its time starts a turn; False if it is only told."""
        return self.kind != "reminder"

    @property
    def source(self) -> str:
        """Return the source of its next outbox row or message, which fires at the same time only once."""
        again = f":{self.resends}" if self.resends else ""
        return f"{SOURCE}{self.id}:{self.due_at:.3f}{again}"


@dataclass(frozen=True, slots=True)
class Due:
    """A reminder whose time has come, with its person's language and conversation."""

    schedule: Schedule
    language: str
    conversation: Conversation
    own_zone: str = ""  # the time zone that the person said
    quiet_hours: str = ""


@dataclass(frozen=True, slots=True)
class Firing:
    """A due schedule with its message (None: it starts a turn), and its next time (None: it is over)."""

    due: Due
    draft: Draft | None
    next_due: float | None


@dataclass(frozen=True, slots=True)
class LastRun:
    """A turn that a task or a watch started; `outcome` is that of the turn, or its state if it is open."""

    at: float
    outcome: str
    reply: str
    tokens: int
    outside: bool  # its reply may hold text of others


def due(conn: Connection, channels: Collection[str], now: float) -> list[Due]:
    """Return what is due on these channels and not held, the earliest first; nothing of people shut out."""
    rows = conn.execute(
        "SELECT schedules.*, coalesce(nullif(people.language, ''), 'en') AS language,"
        " people.timezone AS own_zone, people.quiet_hours, c.channel FROM schedules"
        " JOIN people ON people.id = schedules.person_id"
        " JOIN conversations c ON c.id = schedules.conversation_id"
        f" WHERE {_DUE} AND {MAY_TALK} AND c.channel IN ({placeholders(tuple(channels))})"
        " ORDER BY schedules.due_at, schedules.created_at, schedules.id LIMIT ?",
        (now, now, *channels, AT_ONCE),
    )
    found = []
    for row in rows.fetchall():
        where = Conversation(row["conversation_id"], row["person_id"], row["channel"])
        found.append(read_row(Due, row, schedule=_of(row), conversation=where))
    return found


def fire(conn: Connection, firing: Firing, now: float) -> bool:
    """Queue the message or the turn and set the next time; return False if that was done already.

    A repeated one whose run before is open skips this time: that may be waiting for a yes.
    """
    schedule = firing.due.schedule
    is_open = f"SELECT 1 FROM messages JOIN inbox ON inbox.message_id = messages.id WHERE {_IS_RUN}"
    is_open += " AND inbox.done_at IS NULL"
    runs = firing.draft is None and not exists(conn, is_open, *_runs(schedule.id))
    if firing.draft is None and not runs and firing.next_due is None:
        return False  # it waits, still due, until its run before has ended
    may_talk = f"EXISTS (SELECT 1 FROM people WHERE id = person_id AND {MAY_TALK})"
    is_it = f"id = ? AND due_at = ? AND resends = ? AND {_WAITS} AND {may_talk}"
    moved = update(
        conn,
        "schedules",
        is_it,
        *(schedule.id, schedule.due_at, schedule.resends),
        due_at=schedule.due_at if firing.next_due is None else firing.next_due,
        active=int(firing.next_due is not None),
        told_due=schedule.due_at,
        told_at=now,
        told_as=schedule.source,
        changed_at=now,
        put_off_until=None,
    )
    if not moved:
        return False
    if runs:
        _queue_turn(conn, firing.due, now)
    elif firing.draft is not None:
        outbox.put_reply(conn, firing.due.conversation, schedule.source, firing.draft, now, origin="reminder")
    return True


def _queue_turn(conn: Connection, due: Due, now: float) -> None:
    """Put its text in the inbox, as if its person had written it now."""
    schedule, where = due.schedule, due.conversation
    details = {
        "schedule": schedule.kind,
        "number": schedule.number,
        "late": round(max(now - schedule.next_at, 0)),  # quiet hours make none late
        "taint": schedule.taint.splitlines(),
    }
    columns = {
        "wamid": schedule.source,
        "payload": orjson.dumps({"details": details}).decode(),
        "recalled": 1,  # as if it were indexed: recall looks in what was said
    }
    row = outbox.add_message(conn, where, "in", "scheduled", schedule.text, now, **columns)
    if row:
        insert(conn, "inbox", message_id=row, **where.columns, kind="scheduled", received_at=now, due_at=now)


def _runs(schedule: str) -> tuple[str, str]:
    return f"{SOURCE}{schedule}:", f"{SOURCE}{schedule};"


def run_that_waits(conn: Connection, conversation: str) -> Row | None:
    """Return the zone and quiet hours of a person for whom nothing but runs of tasks and watches waits."""
    row: Row | None = conn.execute(
        "SELECT people.quiet_hours, coalesce(nullif(people.timezone, ''), schedules.zone) AS zone"
        " FROM inbox JOIN messages ON messages.id = inbox.message_id"
        " JOIN people ON people.id = inbox.person_id"
        f" JOIN schedules ON messages.wamid >= '{SOURCE}' || schedules.id || ':'"
        f" AND messages.wamid < '{SOURCE}' || schedules.id || ';'"
        f" WHERE inbox.conversation_id = ? AND inbox.kind = 'scheduled' AND {UNCLAIMED}"
        " AND schedules.person_id = inbox.person_id AND people.quiet_hours <> ''"
        " AND NOT EXISTS (SELECT 1 FROM inbox other WHERE other.conversation_id = inbox.conversation_id"
        " AND other.kind <> 'scheduled' AND other.turn_id IS NULL AND other.done_at IS NULL)"
        " LIMIT 1",
        (conversation,),
    ).fetchone()
    return row


def is_scheduled_turn(conn: Connection, conversation: str) -> bool:
    """Return True if the turn that runs in a conversation was begun by a task or a watch."""
    is_run = f"turns.conversation_id = ? AND {RUNNING} AND messages.kind = 'scheduled'"
    sql = f"SELECT 1 FROM turns JOIN messages ON messages.turn_id = turns.id WHERE {is_run}"
    return exists(conn, sql, conversation)


def _drop_waiting(conn: Connection, schedule: str, now: float) -> None:
    """Drop a run that no turn has taken up."""
    waits = f"{UNCLAIMED} AND kind = 'scheduled' AND message_id IN (SELECT id FROM messages WHERE {_IS_RUN})"
    update(conn, "inbox", waits, *_runs(schedule), done_at=now)


def put_off(conn: Connection, due: Due, until: float) -> None:
    """Put off one that is due in its person's quiet hours, if neither has changed since."""
    same_hours = "EXISTS (SELECT 1 FROM people WHERE id = person_id AND quiet_hours = ?)"
    is_it, one = f"id = ? AND due_at = ? AND active = 1 AND {same_hours}", due.schedule
    update(conn, "schedules", is_it, one.id, one.due_at, due.quiet_hours, put_off_until=until)


def hold(conn: Connection, schedule: Schedule, now: float) -> None:
    """Hold a reminder that is due and cannot be sent until the person writes."""
    is_it = "id = ? AND due_at = ? AND active = 1 AND held_at IS NULL"
    update(conn, "schedules", is_it, schedule.id, schedule.due_at, held_at=now)


def settle_held(conn: Connection, now: float) -> None:
    """Hold what fired with a message that failed, and release what its person has written for since.

    Release also what carries a time in the future, because the clock was set back.
    """
    conn.execute(
        "UPDATE schedules SET active = 1, due_at = told_due, held_at = ?, resends = resends + 1, told_as = ''"
        f" WHERE told_as IN (SELECT source FROM outbox WHERE state = 'failed' AND {_OURS})",
        (now,),
    )
    update(conn, "schedules", "put_off_until > ?", now + LONGEST_PUT_OFF, put_off_until=None)
    has_written = (
        "SELECT 1 FROM messages WHERE messages.conversation_id = schedules.conversation_id"
        f" AND {WRITTEN} AND messages.at >= held_at"
    )
    may_go = f"held_at IS NOT NULL AND (held_at > ? OR EXISTS ({has_written}))"
    update(conn, "schedules", may_go, now, held_at=None)


def fired_in_future(conn: Connection, now: float) -> list[Schedule]:
    """Return those that fired at a time in the future: the clock was set back since."""
    return [_of(row) for row in conn.execute("SELECT * FROM schedules WHERE told_at > ?", (now,))]


def follow_clock(conn: Connection, schedule: Schedule, due: float, now: float) -> None:
    """Follow a clock that was set back: it counts as fired just now, and comes again when it is `due`."""
    unchanged = (schedule.id, schedule.told_at, schedule.due_at)
    update(conn, "schedules", "id = ? AND told_at = ? AND due_at = ?", *unchanged, told_at=now, due_at=due)


def next_due(conn: Connection, now: float) -> float | None:
    """Return the time of the next reminder that is not due yet; None if there is none."""
    at = "CASE WHEN put_off_until > due_at THEN put_off_until ELSE due_at END"
    sql = f"SELECT min({at}) FROM schedules WHERE {_WAITS} AND (due_at > ? OR put_off_until > ?)"
    due: float | None = scalar(conn, sql, now, now)
    return due


def add(conn: Connection, schedule: Schedule, most: int, now: float) -> Schedule | None:
    """Keep a new reminder under the person's next number; for a known id return the one that is stored.

    Reminders count against `most` together, and so do tasks and watches; return None if there are that many.
    """
    if (known := by_id(conn, schedule.id)) is not None:
        return known
    if sum(one.runs_turn == schedule.runs_turn for one in active(conn, schedule.person_id)) >= most:
        return None
    values = {
        name: getattr(schedule, name) for name in ("id", "person_id", "conversation_id", "kind", *_WRITTEN)
    }
    newest = scalar(conn, "SELECT max(number) FROM schedules WHERE person_id = ?", schedule.person_id) or 0
    insert(conn, "schedules", **values, number=newest + 1, changed_at=now, created_at=now)
    return by_id(conn, schedule.id)


def change(conn: Connection, schedule: Schedule, now: float) -> bool:
    """Write what was changed, which makes it active again; return False if it is gone."""
    written = {name: getattr(schedule, name) for name in _WRITTEN}
    anew = {"active": 1, "told_as": "", "held_at": None, "put_off_until": None, "changed_at": now}
    whose = (schedule.id, schedule.person_id)
    changed = update(conn, "schedules", "id = ? AND person_id = ?", *whose, **written, **anew)
    _drop_waiting(conn, schedule.id, now)
    return bool(changed)


def cancel(conn: Connection, person: str, schedule: str, changed_by: str, now: float) -> bool:
    """End a person's reminder; return False if it was over."""
    over = {"active": 0, "told_as": "", "held_at": None, "told_at": None}
    is_it, by = "id = ? AND person_id = ? AND active = 1", {"changed_by": changed_by, "changed_at": now}
    ended = update(conn, "schedules", is_it, schedule, person, **over, **by)
    _drop_waiting(conn, schedule, now)
    return bool(ended)


def restore(conn: Connection, person: str, changed_by: str, now: float) -> list[Schedule]:
    """Set the reminders again that were cancelled last, together, in the week before; return them.

    Those whose time has passed stay cancelled, but for repeated ones, which the caller moves on.
    """
    cancelled = "person_id = ? AND active = 0 AND told_at IS NULL"
    newest = "changed_by <> '' AND changed_at > ? ORDER BY changed_at DESC LIMIT 1"
    sql = f"SELECT changed_by FROM schedules WHERE {cancelled} AND {newest}"
    last = scalar(conn, sql, person, now - RESTORED_SECONDS)
    rows = conn.execute(
        f"UPDATE schedules SET active = 1, changed_by = ?, changed_at = ? WHERE {cancelled}"
        " AND changed_by = ? AND (rule <> '' OR due_at > ?) RETURNING *",
        (changed_by, now, person, last, now),
    )
    return [_of(row) for row in rows.fetchall()]


def active(conn: Connection, person: str, since: float = 0.0) -> list[Schedule]:
    """Return the person's active reminders, the next first; only those that were set after `since`."""
    theirs = "person_id = ? AND active = 1 AND created_at > ?"
    rows = conn.execute(f"SELECT * FROM schedules WHERE {theirs} ORDER BY due_at, number", (person, since))
    return [_of(row) for row in rows]


def everybodys(conn: Connection, page: int, size: int) -> list[Schedule]:
    """Return a page of the schedules that are to come, and one more where there are further ones."""
    sql = "SELECT * FROM schedules WHERE active = 1 ORDER BY due_at LIMIT ? OFFSET ?"
    return list(map(_of, conn.execute(sql, (size + 1, (page - 1) * size))))


def last_fired(conn: Connection, person: str, since: float) -> Schedule | None:
    """Return the reminder that fired last after `since`; of several at once the last message."""
    told = (
        "person_id = ? AND told_at > ? AND kind <> 'watch' ORDER BY told_at DESC, told_due DESC, number DESC"
    )
    return _first(conn, told, person, since)


def quoted(conn: Connection, conversation: str) -> Schedule | None:
    """Return the reminder whose message is quoted in the turn that runs in a conversation."""
    members = conn.execute(
        "SELECT messages.payload FROM turns JOIN messages ON messages.turn_id = turns.id"
        f" WHERE turns.conversation_id = ? AND {RUNNING} AND messages.direction = 'in'"
        " ORDER BY messages.id DESC",
        (conversation,),
    ).fetchall()
    for member in members:
        wamid = orjson.loads(member["payload"]).get("quoted")
        sql = f"SELECT source FROM outbox WHERE id IN {SENT_AS} AND conversation_id = ? AND {_OURS}"
        row = conn.execute(sql, (wamid, wamid, conversation)).fetchone()
        if row is not None:
            return by_id(conn, row["source"].split(":")[1])
    return None


def changed_by(conn: Connection, person: str, key: str) -> Schedule | None:
    """Return the reminder that a call changed last; None for a call without a key."""
    return _first(conn, "person_id = ? AND changed_by = ? AND changed_by <> ''", person, key)


def last_run(conn: Connection, schedule: str) -> LastRun | None:
    """Return the newest turn that it started; None if there was none or it is no longer kept."""
    row = conn.execute(
        "SELECT turns.created_at AS at, turns.reply, turns.taint <> '' AS outside,"
        " CASE turns.state WHEN 'done' THEN turns.outcome ELSE turns.state END AS outcome,"
        " turns.prompt_tokens + turns.completion_tokens AS tokens"
        f" FROM messages JOIN turns ON turns.id = messages.turn_id WHERE {_IS_RUN}"
        " ORDER BY messages.id DESC LIMIT 1",
        _runs(schedule),
    ).fetchone()
    return None if row is None else LastRun(**row)


def by_id(conn: Connection, schedule: str) -> Schedule | None:
    return _first(conn, "id = ?", schedule)


def _first(conn: Connection, which: str, *parameters: object) -> Schedule | None:
    row = conn.execute(f"SELECT * FROM schedules WHERE {which} LIMIT 1", parameters).fetchone()
    return None if row is None else _of(row)


def _of(row: Row) -> Schedule:
    return read_row(Schedule, row, active=bool(row["active"]))


def delete_over(conn: Connection, before: float, most: int) -> int:
    """Delete at most `most` reminders that were over before a time; return how many went."""
    over = "SELECT id FROM schedules WHERE active = 0 AND changed_at < ? LIMIT ?"
    return delete(conn, "schedules", f"id IN ({over})", before, most)
