"""The outbox: order, unknown outcomes, statuses, holds, and texts that are sent again."""

from sqlite3 import Connection

import pytest

from app.messages import GraphError, Outgoing, Status, Template
from app.store import alerts, delivery, outbox
from app.store.delivery import AGAIN_AFTER_SECONDS, AGAIN_SECONDS
from app.store.outbox import HOLD_SECONDS, SEND_SECONDS, WINDOW_SECONDS, Draft, Origin, OutboxRow
from tests.store.rows import T, conversation, inbound, queue, states, take, value

LATER = T + 15


def taken(conn: Connection, person: str, now: float = T) -> str:
    given = outbox.take(conn, person, now)
    assert isinstance(given, OutboxRow)
    return given.id


def test_rows_are_taken_in_order_and_one_at_a_time(conn: Connection) -> None:
    where = conversation(conn)
    one, two = queue(conn, where, "turn:1", "a", "b")
    first = taken(conn, where.person_id)
    beside = outbox.take(conn, where.person_id, T + 1)
    delivery.mark_sent(conn, first, "wamid.1", T + 1)
    assert (first, beside, taken(conn, where.person_id, T + 1)) == (one, T + SEND_SECONDS, two)


def test_a_failed_part_fails_the_later_parts_and_no_other_text(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a", "b", "c")
    queue(conn, where, "turn:2", "d")
    delivery.mark_sent(conn, taken(conn, where.person_id), "wamid.1", T)
    outbox.fail(conn, taken(conn, where.person_id), 100, "bad", T)
    assert states(conn) == ["sent", "failed", "failed", "ready"]


def test_an_unknown_send_is_tried_once_more_and_then_given_up(conn: Connection) -> None:
    where = conversation(conn)
    one, two = queue(conn, where, "turn:1", "a", "b")
    outbox.mark_unknown(conn, taken(conn, where.person_id), "no answer", LATER)
    waits = outbox.take(conn, where.person_id, T + 1)
    assert taken(conn, where.person_id, LATER) == one
    outbox.mark_unknown(conn, one, "no answer", LATER + 15)
    assert waits == LATER
    assert taken(conn, where.person_id, LATER + 15) == two
    assert [alert.code for alert in alerts.open_alerts(conn)] == ["undelivered:unknown"]


def test_a_send_that_its_worker_never_learned_of_is_none(conn: Connection) -> None:
    """The connection broke at the commit, and for too long nobody could say what became of it."""
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    outbox.mark_unknown(conn, taken(conn, where.person_id), "no answer", T)
    outbox.take(conn, where.person_id, T, worker=1)
    assert outbox.take(conn, where.person_id, T + 2, worker=2) == T + SEND_SECONDS
    again = outbox.take(conn, where.person_id, T + 2, worker=1)
    assert again is not None
    assert again.is_second_send
    outbox.mark_unknown(conn, again.id, "no answer", T + 3)
    assert outbox.take(conn, where.person_id, T + 3, worker=1) is None


def test_a_send_of_which_nothing_is_heard_for_too_long_is_of_unknown_outcome(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    first = outbox.take(conn, where.person_id, T, worker=1)
    second = outbox.take(conn, where.person_id, T + SEND_SECONDS, worker=2)
    assert first is not None
    assert second is not None
    assert (first.is_second_send, second.is_second_send) == (False, True)
    assert not outbox.is_attempt(conn, first)  # what it says now changes nothing
    assert outbox.take(conn, where.person_id, T + 2 * SEND_SECONDS, worker=3) is None


def test_a_final_unknown_is_not_sent_after_a_restart(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    for _ in range(2):
        outbox.mark_unknown(conn, taken(conn, where.person_id, LATER), "no answer", LATER)
    outbox.take(conn, where.person_id, LATER)
    outbox.recover(conn, T)
    outbox.await_statuses(conn, T)
    assert outbox.take(conn, where.person_id, LATER + 9999) is None


def test_a_refusal_between_two_unknowns_keeps_the_second_send_the_last(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    outbox.mark_unknown(conn, taken(conn, where.person_id), "no answer", T)
    outbox.hold(conn, taken(conn, where.person_id), 190, "token", T)
    held = states(conn)
    again = T + HOLD_SECONDS
    outbox.mark_unknown(conn, taken(conn, where.person_id, again), "no answer", again)
    assert held == ["unknown"]
    assert outbox.take(conn, where.person_id, again) is None
    assert [alert.code for alert in alerts.open_alerts(conn)] == ["undelivered:unknown"]


def status(wamid: str, what: str, outbox_id: str = "", code: int = 0) -> Status:
    errors = (GraphError(code, "title", "detail"),) if code else ()
    return Status(wamid, what, T, outbox_id, errors)


@pytest.mark.parametrize("what", ["sent", "delivered", "read", "played", "deleted"])
def test_any_status_with_the_outbox_id_proves_an_unknown_send(conn: Connection, what: str) -> None:
    where = conversation(conn)
    (one,) = queue(conn, where, "turn:1", "a")
    outbox.mark_unknown(conn, taken(conn, where.person_id), "no answer", LATER)
    delivery.apply_status(conn, status("wamid.1", what, one), T + 1)
    assert states(conn) == ["sent"]
    assert value(conn, "SELECT wamid FROM messages WHERE direction = 'out'") == "wamid.1"


def test_a_status_is_matched_by_outbox_id_before_wamid(conn: Connection) -> None:
    where = conversation(conn)
    _, two = queue(conn, where, "turn:1", "a", "b")
    delivery.mark_sent(conn, taken(conn, where.person_id), "wamid.1", T)
    outbox.mark_unknown(conn, taken(conn, where.person_id), "no answer", LATER)
    delivery.apply_status(conn, status("wamid.1", "failed", two, 131026), T + 1)
    assert states(conn) == ["sent", "failed"]


def test_a_status_without_outbox_id_is_matched_by_wamid(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    delivery.mark_sent(conn, taken(conn, where.person_id), "wamid.1", T)
    applied = delivery.apply_status(conn, status("wamid.1", "failed", code=131026), T + 1)
    assert applied == delivery.StatusEffect(where.person_id, 131026, "detail")
    assert states(conn) == ["failed"]


@pytest.mark.parametrize(("what", "expected"), [("failed", "failed"), ("delivered", "sent")])
def test_a_status_that_came_early_counts_when_the_wamid_is_learned(
    conn: Connection, what: str, expected: str
) -> None:
    where = conversation(conn)
    (one,) = queue(conn, where, "turn:1", "a")
    taken(conn, where.person_id)
    early = delivery.apply_status(conn, status("wamid.1", what, code=131026), T)
    delivery.mark_sent(conn, one, "wamid.1", T + 1)
    assert (early, states(conn)) == (None, [expected])
    assert value(conn, "SELECT outbox_id FROM statuses") == one


def test_a_redelivered_status_says_nothing_new(conn: Connection) -> None:
    where = conversation(conn)
    (one,) = queue(conn, where, "turn:1", "a")
    delivery.mark_sent(conn, taken(conn, where.person_id), "wamid.1", T)
    first = delivery.apply_status(conn, status("wamid.1", "delivered", one), T)
    assert first is not None
    assert delivery.apply_status(conn, status("wamid.1", "delivered", one), T) is None


@pytest.mark.parametrize("final", ["sent", "failed"])
def test_a_row_at_its_end_is_never_put_back(conn: Connection, final: str) -> None:
    where = conversation(conn)
    (one,) = queue(conn, where, "turn:1", "a")
    if final == "sent":
        delivery.mark_sent(conn, taken(conn, where.person_id), "wamid.1", T)
    else:
        outbox.fail(conn, taken(conn, where.person_id), 100, "bad", T)
        delivery.apply_status(conn, status("wamid.1", "delivered", one), T)
    outbox.retry(conn, one, T, 1, "late")
    outbox.hold(conn, one, 190, "late", T)
    outbox.mark_unknown(conn, one, "late", T)
    assert states(conn) == [final]


def test_a_held_row_waits_and_is_tried_now_and_then(conn: Connection) -> None:
    where = conversation(conn)
    (one,) = queue(conn, where, "turn:1", "a")
    outbox.hold(conn, taken(conn, where.person_id), 190, "token", T)
    assert (states(conn), outbox.take(conn, where.person_id, T + 1)) == (["held"], T + HOLD_SECONDS)
    assert taken(conn, where.person_id, T + HOLD_SECONDS) == one


def test_a_held_row_fails_when_the_window_closes(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    queue(conn, where, "turn:1", "a")
    outbox.hold(conn, taken(conn, where.person_id), 190, "the token expired", T)
    given = outbox.take(conn, where.person_id, T + WINDOW_SECONDS + 1)
    assert (given, states(conn)) == (None, ["failed"])
    assert value(conn, "SELECT code || error FROM outbox") == "190the token expired"


def test_a_held_template_waits_for_the_operator_whenever_the_person_wrote(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    late = T + 3 * WINDOW_SECONDS
    message = Outgoing("⏰", template=Template("reminder", "es"))
    outbox.put_reply(conn, where, "sched:r:1", Draft("⏰", (message,)), late)
    one = taken(conn, where.person_id, late)
    outbox.hold(conn, one, 190, "the token expired", late)
    assert taken(conn, where.person_id, late + WINDOW_SECONDS) == one
    assert states(conn) == ["held"]


def test_what_was_on_the_wire_at_a_crash_is_unknown(conn: Connection) -> None:
    where = conversation(conn)
    (one, _) = queue(conn, where, "turn:1", "a", "b")
    taken(conn, where.person_id)
    assert outbox.recover(conn, LATER) == 1
    assert states(conn) == ["unknown", "ready"]
    assert outbox.take(conn, where.person_id, T + 1) == LATER
    assert taken(conn, where.person_id, LATER) == one


def test_statuses_are_awaited_from_when_the_webhook_listens(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    taken(conn, where.person_id)
    outbox.recover(conn, LATER)
    outbox.await_statuses(conn, LATER + 30)
    assert outbox.take(conn, where.person_id, LATER) == LATER + 30


def test_a_clock_set_back_ends_the_pauses_that_were_counted_by_the_old_time(conn: Connection) -> None:
    where = conversation(conn)
    (one,) = queue(conn, where, "turn:1", "a")
    outbox.retry(conn, taken(conn, where.person_id), T + 300, 130429, "slow down")
    outbox.mend_clock(conn, T - 7200)
    assert taken(conn, where.person_id, T - 7200) == one
    outbox.mark_unknown(conn, one, "no answer", T + 15)
    outbox.mend_clock(conn, T - 7200)
    assert outbox.take(conn, where.person_id, T - 7200) == T - 7200 + SEND_SECONDS


def test_a_pause_ends_that_was_counted_by_a_clock_far_ahead_and_a_small_difference_ends_none(
    conn: Connection,
) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = taken(conn, where.person_id)
    outbox.retry(conn, row, T + 3600, 130429, "slow down")
    outbox.mend_clock(conn, T - 5)
    assert outbox.take(conn, where.person_id, T) == T + 3600
    outbox.retry(conn, row, T + 86_400, 130429, "slow down")
    outbox.mend_clock(conn, T)
    assert taken(conn, where.person_id, T) == row


def test_our_own_clock_fails_nothing_that_whatsapp_was_not_asked_about(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    (one,) = queue(conn, where, "turn:1", "a")
    outbox.retry(conn, taken(conn, where.person_id), T + 4, 130429, "slow down")
    assert taken(conn, where.person_id, T + 2 * WINDOW_SECONDS) == one


BUSY = 131016


def send(conn: Connection, person: str, wamid: str, now: float) -> str:
    """Sends the next row; gives its id."""
    parcel = outbox.take(conn, person, now)
    assert isinstance(parcel, OutboxRow)
    delivery.mark_sent(conn, parcel.id, wamid, now)
    return parcel.id


def report(
    conn: Connection, wamid: str, what: str, row: str = "", code: int = BUSY, now: float = T
) -> delivery.StatusEffect | None:
    errors = (GraphError(code, "Service unavailable", ""),) if what == "failed" else ()
    return delivery.apply_status(conn, Status(wamid, what, T, row, errors), now)


def waiting(conn: Connection) -> list[tuple[str, str]]:
    """What is still to be sent: the source and the text of each row."""
    rows = conn.execute(
        "SELECT source, json_extract(payload, '$.text') AS text FROM outbox"
        " WHERE state = 'ready' ORDER BY seq"
    )
    return [(row["source"], row["text"]) for row in rows]


def test_a_text_that_failed_for_a_passing_reason_is_sent_again(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    first = send(conn, where.person_id, "wamid.1", T)
    applied = report(conn, "wamid.1", "failed", first)
    assert applied is not None
    assert applied.again
    assert outbox.take(conn, where.person_id, T) == T + AGAIN_AFTER_SECONDS
    assert send(conn, where.person_id, "wamid.2", T + AGAIN_AFTER_SECONDS) != first
    assert states(conn) == ["failed", "sent"]


def test_it_is_sent_again_only_once(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    for attempt, now in enumerate((T, T + AGAIN_AFTER_SECONDS)):
        row = send(conn, where.person_id, f"wamid.{attempt}", now)
        applied = report(conn, f"wamid.{attempt}", "failed", row, now=now)
    assert applied is not None
    assert not applied.again
    assert (states(conn), waiting(conn)) == (["failed"] * 2, [])


def test_the_parts_behind_it_come_after_it(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a", "b", "c")
    send(conn, where.person_id, "wamid.1", T)
    second = send(conn, where.person_id, "wamid.2", T)
    report(conn, "wamid.2", "failed", second)
    assert states(conn) == ["sent", "failed", "failed", "ready", "ready"]
    assert waiting(conn) == [("again:turn:1", "b"), ("again:turn:1", "c")]


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
    applied = report(conn, "wamid.1", "failed", first)
    assert applied is not None
    assert not applied.again
    assert value(conn, "SELECT count(*) FROM outbox") == 2


@pytest.mark.parametrize("origin", ["question", "reminder"])
def test_questions_and_reminders_end_as_their_own_rules_say(conn: Connection, origin: Origin) -> None:
    where = conversation(conn)
    queue(conn, where, "one", "a", origin=origin)
    row = send(conn, where.person_id, "wamid.1", T)
    report(conn, "wamid.1", "failed", row)
    assert states(conn) == ["failed"]


def test_what_was_delivered_is_not_sent_again_whatever_is_said_later(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = send(conn, where.person_id, "wamid.1", T)
    report(conn, "wamid.1", "delivered", row)
    report(conn, "wamid.1", "failed", row)
    assert waiting(conn) == []


def test_an_answer_of_long_ago_is_not_sent_again(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    row = send(conn, where.person_id, "wamid.1", T)
    report(conn, "wamid.1", "failed", row, now=T + AGAIN_SECONDS + 1)
    assert waiting(conn) == []


def test_of_a_text_that_was_sent_twice_the_failure_of_one_is_not_that_of_both(conn: Connection) -> None:
    where = conversation(conn)
    (row,) = queue(conn, where, "turn:1", "a")
    outbox.take(conn, where.person_id, T)
    outbox.mark_unknown(conn, row, "time-out", T + 15)
    send(conn, where.person_id, "wamid.2", T + 15)
    report(conn, "wamid.1", "failed", row, now=T + 16)
    assert waiting(conn) == []


def test_a_failure_that_came_before_the_answer_to_the_send_counts_too(conn: Connection) -> None:
    where = conversation(conn)
    queue(conn, where, "turn:1", "a")
    report(conn, "wamid.1", "failed")
    send(conn, where.person_id, "wamid.1", T)
    assert waiting(conn) == [("again:turn:1", "a")]
