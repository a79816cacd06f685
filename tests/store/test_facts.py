"""What a turn starts from of what a person asked to be remembered."""

import sqlite3
from pathlib import Path

import orjson
import pytest

from app.store import skill_data
from app.store.migrations import migrate
from app.store.skill_data import Fact
from tests.store.rows import ANA, BETO, T, begun, conversation, inbound, take
from tests.store.test_steps import steps


@pytest.fixture
def conn(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "recado.db", isolation_level=None)
    connection.row_factory = sqlite3.Row
    migrate(connection)
    return connection


def keep(
    conn: sqlite3.Connection, person: str, *values: object, skill: str = "memory", outside: int = 0
) -> None:
    rows = [
        (person, skill, f"fact:{at:020d}:{skill}", orjson.dumps(value).decode(), outside)
        for at, value in enumerate(values)
    ]
    columns = "person_id, skill, key, value, outside, updated_at"
    conn.execute("BEGIN")
    conn.executemany(f"INSERT INTO skill_data ({columns}) VALUES (?, ?, ?, ?, ?, 0)", rows)
    conn.execute("COMMIT")


def test_a_turn_starts_from_its_persons_facts_and_nobody_elses(conn: sqlite3.Connection) -> None:
    where = conversation(conn)
    keep(conn, where.person_id, {"text": "old"}, {"deleted": True}, {"text": "new"}, {"text": 5}, [1], "x")
    keep(conn, where.person_id, {"text": "of any skill"}, skill="diary")
    keep(conn, conversation(conn, BETO).person_id, {"text": "of Beto"})
    take(conn, inbound("wamid.1", sender=ANA))
    assert begun(conn, where, "one", T).facts == (Fact("new"), Fact("old"), Fact("of any skill"))


def test_in_a_group_there_are_none(conn: sqlite3.Connection) -> None:
    where = conversation(conn, group="family")
    keep(conn, where.person_id, {"text": "private"})
    take(conn, inbound("wamid.1", sender=ANA, group="family"))
    assert begun(conn, where, "one", T).facts == ()


def test_what_was_made_of_text_of_others_says_so(conn: sqlite3.Connection) -> None:
    where = conversation(conn)
    keep(conn, where.person_id, {"text": "from a page"}, outside=1)
    assert skill_data.remembered_facts(conn, where.person_id) == (Fact("from a page", outside=True),)


def test_for_who_has_none_it_costs_next_to_nothing_however_many_others_have(conn: sqlite3.Connection) -> None:
    ana, beto = (conversation(conn, sender).person_id for sender in (ANA, BETO))
    keep(conn, beto, *({"text": f"fact {n}"} for n in range(1000)))
    conn.executemany(
        "INSERT INTO skill_data (person_id, skill, key, value, updated_at) VALUES (?, 'notes', ?, '{}', 0)",
        [(ana, f"note:{n}") for n in range(1000)],
    )
    assert steps(conn, lambda: skill_data.remembered_facts(conn, ana)) < 40
    assert len(skill_data.remembered_facts(conn, beto)) == skill_data.MOST_FACTS
