"""Turns: claiming, journal, history, ends and crashes."""

import sqlite3
from sqlite3 import Connection

import pytest

from app.errors import RecadoError
from app.store import delivery, inbox, journal, outbox, turn_state, turns
from app.store.approvals import BURST_MESSAGES
from app.store.journal import TurnGone
from app.store.outbox import OutboxRow
from app.store.turns import MAX_ATTEMPTS, Ready
from tests.databases import of_sqlite
from tests.store.rows import (
    BETO,
    T,
    answered,
    begun,
    claim,
    conversation,
    draft,
    freeze,
    inbound,
    sent_twice,
    states,
    steps,
    take,
    value,
)

QUIET, LONGEST = 1.2, 5.0


def said(conn: Connection, turn: str) -> list[str]:
    rows = conn.execute(
        "SELECT text FROM messages WHERE turn_id = ? AND direction = 'in' ORDER BY id", (turn,)
    )
    return [row["text"] for row in rows]


@pytest.mark.parametrize(
    ("arrivals", "now", "expected"),
    [
        ((0.0,), 0.0, T + QUIET),
        ((0.0,), 1.1, T + QUIET),
        ((0.0,), 1.3, Ready("t1")),
        ((0.0, 1.0), 1.3, T + 1.0 + QUIET),
        ((0.0, 1.0), 2.3, Ready("t1")),
        ((0.0, 1.0, 2.0, 3.0, 4.0, 4.9), 4.95, T + LONGEST),
        ((0.0, 1.0, 2.0, 3.0, 4.0, 4.9), 5.0, Ready("t1")),
        ((0.0,), -3600.0, Ready("t1")),
    ],
    ids=[
        "just in",
        "not quiet yet",
        "quiet",
        "a second one starts the quiet anew",
        "quiet after the second",
        "somebody who goes on and on",
        "the longest burst",
        "the clock was set back",
    ],
)
def test_a_burst_is_complete(
    conn: Connection, arrivals: tuple[float, ...], now: float, expected: object
) -> None:
    where = conversation(conn)
    for n, at in enumerate(arrivals):
        take(conn, inbound(f"w{n}"), now=T + at)
    assert claim(conn, where, "t1", T + now, QUIET, LONGEST) == expected


def test_a_command_is_a_turn_alone(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1", "uno"))
    take(conn, inbound("w2", "/help"), kind="help")
    take(conn, inbound("w3", "dos"))
    for turn in ("t1", "t2", "t3"):
        begun(conn, where, turn)
        turns.end(conn, turn, where, "answered", draft("ok"), T)
    assert [said(conn, turn) for turn in ("t1", "t2", "t3")] == [["uno"], ["/help"], ["dos"]]


def test_a_turn_holds_messages_of_one_person_only(conn: Connection) -> None:
    where, other = conversation(conn, group="g1"), conversation(conn, BETO, group="g1")
    take(conn, inbound("w1", "de Ana", group="g1"), inbound("w2", "de Beto", BETO, group="g1"))
    claim(conn, where, "t1", T)
    claim(conn, other, "t2", T)
    assert (said(conn, "t1"), said(conn, "t2")) == (["de Ana"], ["de Beto"])


def test_a_row_of_somebody_else_is_never_claimed(conn: Connection) -> None:
    where, other = conversation(conn), conversation(conn, BETO)
    take(conn, inbound("w1"), inbound("w2", sender=BETO))
    conn.execute("UPDATE inbox SET conversation_id = ? WHERE person_id = ?", (where.id, other.person_id))
    with pytest.raises(RecadoError, match="claimed 1 of 2"):
        claim(conn, where, "t1", T)


@pytest.mark.parametrize(
    ("messages", "limit", "more"), [(3, 20, False), (BURST_MESSAGES + 5, 90, True), (2, 1, True)]
)
def test_a_claim_says_whether_it_left_something(
    conn: Connection, messages: int, limit: int, more: bool
) -> None:
    where = conversation(conn)
    take(conn, *(inbound(f"w{n}") for n in range(messages)), limit=limit)
    ready = claim(conn, where, "t1", T + 2)
    assert isinstance(ready, Ready)
    assert ready.more == more


def test_members_are_read_again_and_not_gathered_again(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1", "uno"))
    first = begun(conn, where, "t1")
    take(conn, inbound("w2", "dos"), now=T + 1)
    second = turn_state.load_turn(conn, "t1", 40, "d")
    assert [member.text for member in second.members] == [member.text for member in first.members] == ["uno"]


def test_a_turn_that_cannot_even_be_given_up_ends_without_words(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    ended = [turns.postpone(conn, "t1", T, "boom")]
    while not ended[-1] and len(ended) < 10:
        turn_state.load_turn(conn, "t1", 40, "d")
        ended.append(turns.postpone(conn, "t1", T, "boom"))
    assert len(ended) == MAX_ATTEMPTS + 2
    assert value(conn, "SELECT state || outcome FROM turns") == "donefailed"
    assert value(conn, "SELECT count(*) FROM dead_letters") == value(conn, "SELECT count(*) FROM alerts") == 1
    assert states(conn) == []


def test_a_finished_step_clears_earlier_attempts(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    turn_state.load_turn(conn, "t1", 40, "d")
    journal.record(conn, "t1", "intent:0:a", "intent", "{}", T)
    after_intent = value(conn, "SELECT attempts FROM turns")
    journal.record(conn, "t1", "tool:0:a", "tool", "{}", T)
    assert (after_intent, value(conn, "SELECT attempts FROM turns")) == (2, 1)


def test_a_journal_row_is_never_written_twice(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    journal.record(conn, "t1", "llm:0", "llm", '{"text": "first"}', T)
    with pytest.raises(TurnGone):
        journal.record(conn, "t1", "llm:0", "llm", '{"text": "second"}', T)
    assert value(conn, "SELECT payload FROM journal") == '{"text": "first"}'


@pytest.mark.parametrize("step", ["record", "end", "begin"])
def test_a_turn_that_ended_takes_nothing_more(conn: Connection, step: str) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    turns.end(conn, "t1", where, "answered", draft("ok"), T)
    steps = {
        "record": lambda: journal.record(conn, "t1", "llm:0", "llm", "{}", T),
        "end": lambda: turns.end(conn, "t1", where, "answered", draft("again"), T),
        "begin": lambda: turn_state.load_turn(conn, "t1", 40, "d"),
    }
    with pytest.raises(TurnGone):
        steps[step]()
    assert states(conn) == ["ready"]


def test_the_end_closes_exactly_the_members(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"), inbound("w2"))
    begun(conn, where, "t1")
    take(conn, inbound("w3"), inbound("b1", sender=BETO), now=T + 1)
    turns.end(conn, "t1", where, "answered", draft("ok"), T + 2)
    rows = conn.execute(
        "SELECT m.wamid, i.done_at FROM inbox i JOIN messages m ON m.id = message_id ORDER BY seq"
    )
    assert [tuple(row) for row in rows] == [("w1", T + 2), ("w2", T + 2), ("w3", None), ("b1", None)]


def test_a_stop_ends_what_runs_and_what_waits_before_it(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1", "uno"))
    begun(conn, where, "t1")
    take(conn, inbound("w2", "dos"))
    take(conn, inbound("w3", "/stop"), kind="stop")
    take(conn, inbound("w4", "tres"))
    assert turns.stop(conn, where.id, "t2", T) == Ready("t2")
    assert value(conn, "SELECT outcome FROM turns WHERE id = 't1'") == "stopped"
    assert said(conn, "t2") == ["dos", "/stop"]


def test_a_frozen_persons_stop_waits_too(conn: Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1", "uno"))
    freeze(conn, where.person_id)
    take(conn, inbound("w2", "/stop"), kind="stop")
    assert turns.stop(conn, where.id, "t1", T) is None


def windows(conn: Connection, limit: int, many: int) -> list[list[str]]:
    """What each of so many turns sees of those before it."""
    where = conversation(conn)
    seen = []
    for n in range(many):
        now = T + 10 * n
        take(conn, inbound(f"w{n}", f"q{n}"), now=now)
        opened = begun(conn, where, f"t{n}", now, limit)
        turns.end(conn, f"t{n}", where, "answered", draft(f"a{n}"), now)
        seen.append([one.said for one in opened.exchanges])
    return seen


def test_history_grows_and_then_halves_at_once(conn: Connection) -> None:
    assert windows(conn, 4, 9) == [
        [],
        ["q0"],
        ["q0", "q1"],
        ["q0", "q1", "q2"],
        ["q0", "q1", "q2", "q3"],
        ["q3", "q4"],
        ["q3", "q4", "q5"],
        ["q3", "q4", "q5", "q6"],
        ["q6", "q7"],
    ]


def test_quoted_text_is_found_at_either_copy_of_what_was_sent_twice(conn: Connection) -> None:
    where = conversation(conn)
    answered(conn, where, "t1", "hola", "qué tal", T)
    sent_twice(conn, "turn:t1")
    take(conn, inbound("w2", quoted="wamid.1"), inbound("w3", quoted="wamid.2"), now=T + 10)
    found = begun(conn, where, "t2", T + 10).quoted
    assert found == dict.fromkeys(("wamid.1", "wamid.2"), ("qué tal", False, False))


def test_a_turn_that_runs_at_a_crash_keeps_its_attempt(conn: sqlite3.Connection) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    claim(conn, where, "t1", T)
    for attempts in (1, 2, 3):
        turn_state.load_turn(conn, "t1", 10, "2026-01-01")
        assert turns.recover(conn) == 1
        assert value(conn, "SELECT attempts FROM turns") == attempts


PAST = 600


def a_turn(conn: sqlite3.Connection, name: str, now: float) -> None:
    """Run a turn from the message to the message sent, then the sweeps that find nothing more."""
    where = conversation(conn, now=now)
    take(conn, inbound(f"wamid.{name}", name), now=now)
    begun(conn, where, name, now, history=4)
    turns.end(conn, name, where, "answered", draft(f"answer to {name}"), now)
    parcel = outbox.take(conn, where.person_id, now)
    assert isinstance(parcel, OutboxRow)
    delivery.mark_sent(conn, parcel.id, f"wamid.of.{name}", now)
    assert claim(conn, where, "none", now) is None
    assert not outbox.has_open(conn, where.person_id)
    outbox.release_held(conn, now)
    inbox.waiting(conn, ["whatsapp"], now)
    outbox.people_waiting(conn, ["whatsapp"], now)
    turns.recover(conn)


@of_sqlite
def test_a_turn_takes_as_many_steps_after_thousands_of_others(conn: sqlite3.Connection) -> None:
    for n in range(10):
        a_turn(conn, f"early{n}", T + n)
    few = steps(conn, lambda: a_turn(conn, "soon", T + 20))
    conn.execute("BEGIN")
    for n in range(PAST):
        a_turn(conn, f"past{n}", T + 100 + n)
    conn.execute("COMMIT")
    many = steps(conn, lambda: a_turn(conn, "late", T + 100 + PAST))
    assert many < 1.2 * few
