"""What a crash counts for: a turn that ran alone, and turns that ran beside each other."""

import sqlite3
from pathlib import Path

import pytest

from app.store import journal, turn_state, turns
from app.store.migrations import migrate


@pytest.fixture
def conn(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "recado.db", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    for n in range(3):
        connection.execute("INSERT INTO people (id, realm, created_at) VALUES (?, 'whatsapp', 0)", (f"p{n}",))
        connection.execute(
            "INSERT INTO conversations (id, person_id, channel, created_at) VALUES (?, ?, 'whatsapp', 0)",
            (f"c{n}", f"p{n}"),
        )
        connection.execute(
            "INSERT INTO turns (id, person_id, conversation_id, state, created_at)"
            " VALUES (?, ?, ?, 'queued', 0)",
            (f"t{n}", f"p{n}", f"c{n}"),
        )
    return connection


def crash(conn: sqlite3.Connection, *running: str) -> list[int]:
    """The server dies while these turns run and starts again; gives the attempts that count."""
    for turn in running:
        turn_state.load_turn(conn, turn, 0.0, 10, "2026-01-01")
    assert turns.recover(conn) == len(running)
    return [
        conn.execute("SELECT attempts FROM turns WHERE id = ?", (turn,)).fetchone()[0] for turn in running
    ]


def test_a_turn_that_ran_alone_keeps_its_attempt(conn: sqlite3.Connection) -> None:
    assert [crash(conn, "t0") for _ in range(3)] == [[1], [2], [3]]


def test_turns_that_ran_together_are_not_counted_three_times(conn: sqlite3.Connection) -> None:
    assert [crash(conn, "t0", "t1", "t2") for _ in range(3)] == [[0, 0, 0]] * 3
    assert crash(conn, "t0", "t1") == [1, 1]


def test_a_finished_step_makes_crashes_beside_others_count_anew(conn: sqlite3.Connection) -> None:
    for _ in range(3):
        crash(conn, "t0", "t1")
    turn_state.load_turn(conn, "t0", 0.0, 10, "2026-01-01")
    journal.record(conn, "t0", "route", "route", "{}", 0.0)
    assert crash(conn, "t0", "t1") == [1, 1]
    assert crash(conn, "t0", "t1") == [1, 2]
