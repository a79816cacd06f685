"""Retention and free disk space."""

from sqlite3 import Connection

import pytest

from app.messages import Status
from app.store import alerts, delivery, disk_space, journal, personal_data, statistics, turns
from app.store.disk_space import MEGABYTE
from app.store.journal import PART_CHARACTERS, ModelCall, Tokens
from app.store.personal_data import DAY, DEAD_LETTER_DAYS, STATISTICS_DAYS, TRACE_DAYS
from tests.store.rows import T, begun, conversation, draft, inbound, take, value


def a_turn(conn: Connection, *, ended: bool) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    journal.record(conn, "t1", "llm:0", "llm", "{}", T)
    journal.keep_call(conn, "t1", ModelCall("llm:0", "m", (("h", "body"),), Tokens(1, 1, 0), 0.1, T))
    if ended:
        turns.end(conn, "t1", where, "answered", draft("ok"), T)


@pytest.mark.parametrize(
    ("table", "days"),
    [
        ("seen", 30),
        ("inbox", 1),
        ("journal", TRACE_DAYS),
        ("model_calls", TRACE_DAYS),
        ("prompt_parts", TRACE_DAYS),
        ("statuses", TRACE_DAYS),
        ("dead_letters", DEAD_LETTER_DAYS),
    ],
)
def test_old_rows_go_and_younger_ones_stay(conn: Connection, table: str, days: float) -> None:
    a_turn(conn, ended=True)
    delivery.apply_status(conn, Status("w", "sent"), T)
    alerts.add_dead_letter(conn, "turn", "why", {}, T)
    kept = []
    for age in (days - 0.1, days + 0.1):
        personal_data.delete_old(conn, T + age * DAY)
        kept.append(value(conn, f"SELECT count(*) FROM {table}"))
    assert kept == [1, 0]


def test_figures_of_tools_go_by_whole_days(conn: Connection) -> None:
    statistics.count_call(conn, "t", "ok", 0.1, statistics.day_of(T))
    kept = []
    for age in (STATISTICS_DAYS, STATISTICS_DAYS + 1):
        personal_data.delete_old(conn, T + age * DAY)
        kept.append(value(conn, "SELECT count(*) FROM tool_statistics"))
    assert kept == [1, 0]


@pytest.mark.parametrize("ended", [True, False])
def test_what_was_said_stays_and_all_of_a_turn_that_runs(conn: Connection, ended: bool) -> None:
    a_turn(conn, ended=ended)
    tables = ["messages", "turns", "people", "conversations"]
    tables += ["outbox"] if ended else ["journal", "model_calls", "inbox"]
    before = [value(conn, f"SELECT count(*) FROM {table}") for table in tables]
    personal_data.delete_old(conn, T + 1000 * DAY)
    assert all(before)
    assert [value(conn, f"SELECT count(*) FROM {table}") for table in tables] == before


def test_a_sweep_takes_a_bounded_batch(conn: Connection) -> None:
    conn.executemany("INSERT INTO seen VALUES (?, ?)", [(bytes([n // 256, n % 256]), T) for n in range(1200)])
    gone = [personal_data.delete_old(conn, T + 31 * DAY) for _ in range(4)]
    assert gone == [500, 500, 200, 0]


LEAST = 500 * MEGABYTE


def kept(conn: Connection) -> list[bool]:
    return [disk_space.is_kept(conn, "traces"), disk_space.is_kept(conn, "data")]


@pytest.mark.parametrize(
    ("megabytes", "expected"),
    [
        (501, [True, True]),
        (500, [True, True]),
        (499, [False, True]),
        (199, [False, False]),
        (0, [False, False]),
    ],
)
def test_traces_stop_before_data(conn: Connection, megabytes: int, expected: list[bool]) -> None:
    disk_space.update_alerts(conn, megabytes * MEGABYTE, LEAST, T)
    assert kept(conn) == expected


def trace(conn: Connection, body: str) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    journal.keep_call(conn, "t1", ModelCall("llm:0", "m", (("h", body),), Tokens(5, 2, 0), 0.1, T))


@pytest.mark.parametrize("characters", [PART_CHARACTERS, 50 * PART_CHARACTERS])
def test_a_part_of_a_trace_is_bounded(conn: Connection, characters: int) -> None:
    trace(conn, '"' + "x" * characters + '"')
    assert value(conn, "SELECT length(body) FROM prompt_parts") < PART_CHARACTERS + 100
    assert int(value(conn, "SELECT json_extract(body, '$.characters') FROM prompt_parts")) == characters + 2
