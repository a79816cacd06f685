"""What is forgotten with time, and what stays."""

from sqlite3 import Connection

import pytest

from app.messages import Status
from app.store import alerts, journal, outbox, retention, tool_statistics, traces, turns
from app.store.journal import Tokens
from app.store.retention import DAY, DEAD_LETTER_DAYS, STATISTICS_DAYS, TRACE_DAYS
from app.store.traces import ModelCall
from tests.store.rows import T, begun, conversation, draft, inbound, take, value


def a_turn(conn: Connection, *, ended: bool) -> None:
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    journal.record(conn, "t1", "llm:0", "llm", "{}", T)
    traces.keep(conn, "t1", [ModelCall("llm:0", "m", ("h",), (("h", "body"),), Tokens(1, 1, 0), 0.1, T)])
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
    outbox.apply_status(conn, Status("w", "sent"), T)
    alerts.add_dead_letter(conn, "turn", "why", {}, T)
    kept = []
    for age in (days - 0.1, days + 0.1):
        retention.sweep(conn, T + age * DAY)
        kept.append(value(conn, f"SELECT count(*) FROM {table}"))
    assert kept == [1, 0]


def test_figures_of_tools_go_by_whole_days(conn: Connection) -> None:
    tool_statistics.count(conn, "t", "ok", 0.1, tool_statistics.day_of(T))
    kept = []
    for age in (STATISTICS_DAYS, STATISTICS_DAYS + 1):
        retention.sweep(conn, T + age * DAY)
        kept.append(value(conn, "SELECT count(*) FROM tool_statistics"))
    assert kept == [1, 0]


@pytest.mark.parametrize("table", ["messages", "turns", "people", "conversations", "outbox"])
def test_what_was_said_stays(conn: Connection, table: str) -> None:
    a_turn(conn, ended=True)
    before = value(conn, f"SELECT count(*) FROM {table}")
    retention.sweep(conn, T + 1000 * DAY)
    assert (before > 0, value(conn, f"SELECT count(*) FROM {table}")) == (True, before)


@pytest.mark.parametrize("table", ["journal", "model_calls", "inbox"])
def test_nothing_of_a_turn_that_runs_goes(conn: Connection, table: str) -> None:
    a_turn(conn, ended=False)
    retention.sweep(conn, T + 1000 * DAY)
    assert value(conn, f"SELECT count(*) FROM {table}") == 1


def test_a_sweep_takes_a_bounded_batch(conn: Connection) -> None:
    conn.executemany("INSERT INTO seen VALUES (?, ?)", [(bytes([n // 256, n % 256]), T) for n in range(1200)])
    gone = [retention.sweep(conn, T + 31 * DAY) for _ in range(4)]
    assert gone == [500, 500, 200, 0]
