"""A text that WhatsApp took and failed to deliver for a passing reason: sent again, in order, a few times."""

from sqlite3 import Connection

import pytest

from app.messages import GraphError, Status
from app.store import outbox
from app.store.outbox import AGAIN_AFTER_SECONDS, AGAIN_SECONDS
from tests.store.rows import ANA, T, conversation, queue, states, value

BUSY = 131016


def send(conn: Connection, person: str, wamid: str, now: float) -> str:
    """Sends the next row; gives its id."""
    parcel = outbox.take(conn, person, now).row
    assert parcel is not None
    outbox.mark_sent(conn, parcel.id, wamid, now)
    return parcel.id


def status(
    conn: Connection, wamid: str, what: str, row: str = "", code: int = BUSY, now: float = T
) -> outbox.StatusEffect | None:
    errors = (GraphError(code, "Service unavailable", ""),) if what == "failed" else ()
    return outbox.apply_status(conn, Status(wamid, what, T, ANA, row, errors), now)


def waiting(conn: Connection) -> list[tuple[str, str]]:
    """What is still to be sent: the source and the text of each row."""
    rows = conn.execute(
        "SELECT source, payload ->> '$.text' AS text FROM outbox WHERE state = 'ready' ORDER BY seq"
    )
    return [(row["source"], row["text"]) for row in rows]


def test_a_text_that_failed_for_a_passing_reason_is_sent_again(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    first = send(conn, where.person_id, "wamid.1", T)
    applied = status(conn, "wamid.1", "failed", first)
    assert applied is not None
    assert applied.again
    assert outbox.take(conn, where.person_id, T).at == T + AGAIN_AFTER_SECONDS[0]
    assert send(conn, where.person_id, "wamid.2", T + AGAIN_AFTER_SECONDS[0]) != first
    assert states(conn) == ["failed", "sent"]


def test_it_is_sent_again_only_a_few_times(conn: Connection) -> None:
    where, now = conversation(conn), T
    queue(conn, where, "turn:1", "a")
    for attempt, pause in enumerate((0.0, *AGAIN_AFTER_SECONDS)):
        now += pause
        row = send(conn, where.person_id, f"wamid.{attempt}", now)
        applied = status(conn, f"wamid.{attempt}", "failed", row, now=now)
    assert applied is not None
    assert not applied.again
    assert (states(conn), waiting(conn)) == (["failed"] * 3, [])


def test_a_redelivered_failure_queues_nothing_more(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = send(conn, where.person_id, "wamid.1", T)
    for _ in range(2):
        status(conn, "wamid.1", "failed", row)
    assert waiting(conn) == [("again:1:turn:1", "a")]


def test_the_parts_behind_it_come_after_it(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a", "b", "c")
    send(conn, where.person_id, "wamid.1", T)
    second = send(conn, where.person_id, "wamid.2", T)
    status(conn, "wamid.2", "failed", second)
    assert states(conn) == ["sent", "failed", "failed", "ready", "ready"]
    assert waiting(conn) == [("again:1:turn:1", "b"), ("again:1:turn:1", "c")]


@pytest.mark.parametrize("behind", ["sent", "sending", "queued"])
def test_nothing_overtakes_what_came_after_it(conn: Connection, behind: str) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a", *(["b"] if behind == "sending" else []))
    first = send(conn, where.person_id, "wamid.1", T)
    if behind == "sending":
        outbox.take(conn, where.person_id, T)
    else:
        queue(conn, where, "turn:2", "b")
    if behind == "sent":
        send(conn, where.person_id, "wamid.2", T)
    applied = status(conn, "wamid.1", "failed", first)
    assert applied is not None
    assert not applied.again
    assert value(conn, "SELECT count(*) FROM outbox") == 2


@pytest.mark.parametrize("code", [131026, 131047, 131049, 0])
def test_what_would_fail_again_is_not_sent_again(conn: Connection, code: int) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = send(conn, where.person_id, "wamid.1", T)
    status(conn, "wamid.1", "failed", row, code)
    assert states(conn) == ["failed"]


@pytest.mark.parametrize("source", ["approval:1", "sched:1:2"])
def test_questions_and_reminders_end_as_their_own_rules_say(conn: Connection, source: str) -> None:
    where = conversation(conn)
    queue(conn, where, source, "a")
    row = send(conn, where.person_id, "wamid.1", T)
    status(conn, "wamid.1", "failed", row)
    assert states(conn) == ["failed"]


def test_what_arrived_is_not_sent_again(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = send(conn, where.person_id, "wamid.1", T)
    status(conn, "wamid.1", "delivered", row)
    status(conn, "wamid.1", "failed", row)
    assert waiting(conn) == []


def test_what_arrives_after_all_is_not_sent_again(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a", "b")
    row = send(conn, where.person_id, "wamid.1", T)
    status(conn, "wamid.1", "failed", row)
    status(conn, "wamid.1", "sent", row)
    assert len(waiting(conn)) == 2
    status(conn, "wamid.1", "delivered", row)
    assert waiting(conn) == [("again:1:turn:1", "b")]


def test_an_answer_of_long_ago_is_not_sent_again(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = send(conn, where.person_id, "wamid.1", T)
    status(conn, "wamid.1", "failed", row, now=T + AGAIN_SECONDS + 1)
    assert waiting(conn) == []


def test_of_a_text_that_was_sent_twice_the_failure_of_one_is_not_that_of_both(conn: Connection) -> None:
    where = conversation(conn)
    (row,) = queue(conn, where, "turn:1", "a")
    outbox.take(conn, where.person_id, T)
    outbox.mark_unknown(conn, row, "time-out", T + 15)
    send(conn, where.person_id, "wamid.2", T + 15)
    status(conn, "wamid.1", "failed", row, now=T + 16)
    assert waiting(conn) == []


def test_a_failure_that_came_before_the_answer_to_the_send_counts_too(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    status(conn, "wamid.1", "failed")
    send(conn, where.person_id, "wamid.1", T)
    assert waiting(conn) == [("again:1:turn:1", "a")]
