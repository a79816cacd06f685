"""The table of reminders: told once, by whoever is first, and to nobody who may not be told."""

from dataclasses import replace
from sqlite3 import Connection

import pytest

from app.messages import Outgoing
from app.people import Conversation
from app.store import outbox, personal_data, schedules
from app.store.outbox import Draft
from app.store.schedules import Firing, Schedule
from tests.store.rows import T, begun, conversation, inbound, sent_twice, take, value

DAY = 86_400.0
WHATSAPP = ["whatsapp"]


def reminder(where: Conversation, id: str = "rem_1", due: float = T, **more: object) -> Schedule:
    made = Schedule(id, where.person_id, where.id, 0, "llamar", "", "2027-01-15T08:00:00", "UTC", due)
    return replace(made, **more)  # type: ignore[arg-type]


def set_one(conn: Connection, where: Conversation, id: str = "rem_1", **more: object) -> Schedule:
    kept = schedules.add(conn, reminder(where, id, **more), 200, T)  # type: ignore[arg-type]
    assert kept is not None
    return kept


def fire(conn: Connection, now: float = T, next_due: float | None = None) -> list[bool]:
    draft = Draft("⏰", (Outgoing("⏰"),))
    return [
        schedules.fire(conn, Firing(due, draft, next_due), now) for due in schedules.due(conn, WHATSAPP, now)
    ]


def test_a_due_one_becomes_one_message_and_is_over(conn: Connection) -> None:
    set_one(conn, conversation(conn))
    due = schedules.due(conn, WHATSAPP, T)[0]
    firing = Firing(due, Draft("⏰", (Outgoing("⏰"),)), None)
    assert [schedules.fire(conn, firing, T), schedules.fire(conn, firing, T)] == [True, False]
    assert value(conn, "SELECT count(*) FROM outbox") == 1
    assert schedules.due(conn, WHATSAPP, T + DAY) == []


def test_one_that_comes_again_is_told_once_each_time(conn: Connection) -> None:
    set_one(conn, conversation(conn), rule="FREQ=DAILY")
    assert fire(conn, T, T + DAY) == [True]
    assert fire(conn, T, T + DAY) == []
    assert fire(conn, T + DAY, T + 2 * DAY) == [True]
    assert value(conn, "SELECT count(DISTINCT source) FROM outbox") == 2


@pytest.mark.parametrize("change", ["access = 'blocked'", "frozen = 'two people'"])
def test_nothing_is_told_to_who_is_blocked_or_frozen(conn: Connection, change: str) -> None:
    set_one(conn, conversation(conn))
    firing = Firing(schedules.due(conn, WHATSAPP, T)[0], Draft("⏰", (Outgoing("⏰"),)), None)
    conn.execute(f"UPDATE people SET {change}")
    assert schedules.due(conn, WHATSAPP, T) == []
    assert not schedules.fire(conn, firing, T)  # also where it was found before
    assert value(conn, "SELECT count(*) FROM outbox") == 0


def test_nothing_is_told_on_a_channel_that_is_not_served(conn: Connection) -> None:
    set_one(conn, conversation(conn))
    assert schedules.due(conn, ["simulator", "terminal"], T) == []


def test_one_that_was_changed_meanwhile_is_not_told_at_its_old_time(conn: Connection) -> None:
    kept = set_one(conn, conversation(conn))
    firing = Firing(schedules.due(conn, WHATSAPP, T)[0], Draft("⏰", (Outgoing("⏰"),)), None)
    schedules.change(conn, replace(kept, due_at=T + DAY), T)
    assert not schedules.fire(conn, firing, T)


def test_the_same_call_sets_one_and_the_limit_counts_active_ones(conn: Connection) -> None:
    where = conversation(conn)
    first, again = (schedules.add(conn, reminder(where), 2, T) for _ in range(2))
    assert first == again
    assert schedules.add(conn, reminder(where, "rem_2"), 2, T)
    assert schedules.add(conn, reminder(where, "rem_3"), 2, T) is None
    schedules.cancel(conn, where.person_id, "rem_1", "key", T)
    third = schedules.add(conn, reminder(where, "rem_3"), 2, T)
    assert third is not None
    assert third.number == 3


def has_work(conn: Connection, now: float) -> bool:
    """Whether there is something to tell, once what is held was looked at."""
    schedules.settle_held(conn, now)
    return bool(schedules.due(conn, WHATSAPP, now))


def test_what_failed_is_told_by_a_new_message_once_the_person_writes(conn: Connection) -> None:
    where = conversation(conn)
    set_one(conn, where, rule="FREQ=DAILY")
    fire(conn, T, T + DAY)
    sent = value(conn, "SELECT id FROM outbox")
    outbox.fail(conn, sent, 131047, "the window is closed", T + 1, after_sent=True)
    assert not has_work(conn, T + 2)
    take(conn, inbound("w1"), now=T + 3)
    assert has_work(conn, T + 4)
    assert fire(conn, T + 4, T + DAY) == [True]
    assert value(conn, "SELECT count(DISTINCT source) FROM outbox") == 2
    assert not has_work(conn, T + 5)  # and it is not taken back again


def test_a_changed_number_is_no_word_of_the_person(conn: Connection) -> None:
    """WhatsApp tells of it itself: free text reaches nobody for that."""
    where = conversation(conn)
    take(conn, inbound("w1"), now=T)
    set_one(conn, where, due=T + DAY)
    schedules.hold(conn, schedules.due(conn, WHATSAPP, T + DAY)[0].schedule, T + DAY)
    take(conn, inbound("w2", "changed their number", kind="system"), now=T + DAY + 1)
    assert not has_work(conn, T + DAY + 2)
    assert outbox.written_at(conn, where.id) == T
    take(conn, inbound("w3"), now=T + DAY + 3)
    assert has_work(conn, T + DAY + 4)


@pytest.mark.parametrize("quoted", ["wamid.1", "wamid.2"])
def test_one_that_was_sent_twice_is_quoted_by_either_copy(conn: Connection, quoted: str) -> None:
    where = conversation(conn)
    kept = set_one(conn, where)
    fire(conn)
    sent_twice(conn, kept.source)
    take(conn, inbound("w1", "in ten minutes", quoted=quoted), now=T + 1)
    begun(conn, where, "t1", T + 1)
    found = schedules.quoted(conn, where.id)
    assert found is not None
    assert found.id == kept.id


def test_what_was_held_by_a_clock_that_was_set_back_since_waits_for_nobody(conn: Connection) -> None:
    kept = set_one(conn, conversation(conn))
    schedules.hold(conn, kept, T + 2 * DAY)
    assert not has_work(conn, T + 2 * DAY)
    assert has_work(conn, T)
    assert fire(conn) == [True]


def test_of_several_told_at_once_the_last_message_is_the_one_told_last(conn: Connection) -> None:
    where = conversation(conn)
    for id, minutes in (("rem_1", 2), ("rem_2", 3), ("rem_3", 3), ("rem_4", 1)):
        set_one(conn, where, id, due=T + 60 * minutes)
    fire(conn, T + 300)
    last = schedules.last_fired(conn, where.person_id, T)
    assert last is not None
    assert last.source == value(conn, "SELECT source FROM outbox ORDER BY seq DESC")


def test_what_is_over_is_forgotten_and_what_is_to_come_stays(conn: Connection) -> None:
    where = conversation(conn)
    set_one(conn, where)
    set_one(conn, where, "rem_2", due=T + 365 * DAY)
    fire(conn)
    kept = []
    for days in (29, 31):
        personal_data.delete_old(conn, T + days * DAY)
        kept.append(value(conn, "SELECT count(*) FROM schedules"))
    assert kept == [2, 1]
