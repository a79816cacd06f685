"""Every table says whose its rows are, and a person's rows go with the person."""

from sqlite3 import Connection

NOBODYS = {
    "people": "is the person",
    "outsiders": "who was turned away, and is nobody here",
    "erased": "random ids of people who are gone",
    "seen": "hashes of message ids, kept without the person on purpose",
    "alerts": "what the operator must know, one row a cause",
    "meta": "keys of this database",
    "catalogs": "definitions of tools, by their hash",
    "tool_statistics": "how often tools were called, by nobody in particular",
    "schema_version": "the migrations that were applied",
}
NOT_YET_KNOWN = {"statuses", "dead_letters"}
"""Rows that may come before it is known whom they are about, or of nobody."""
OF_A_TURN = {"journal", "model_calls"}
"""Rows that go with their turn, and it with the person."""


def tables(conn: Connection) -> list[str]:
    found = conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return [row["name"] for row in found]


def test_every_table_has_a_person_or_a_reason_for_none(conn: Connection) -> None:
    without = []
    for table in tables(conn):
        columns = {row["name"]: row for row in conn.execute(f"PRAGMA table_info({table})")}
        person = columns.get("person_id")
        if person is None:
            without.append(table)
            continue
        assert (table, person["notnull"]) == (table, int(table not in NOT_YET_KNOWN))
    assert sorted(without) == sorted(NOBODYS)


def test_a_persons_rows_go_with_the_person(conn: Connection) -> None:
    for table in set(tables(conn)) - set(NOBODYS):
        keys = conn.execute(f"PRAGMA foreign_key_list({table})").fetchall()
        column, parent = ("turn_id", "turns") if table in OF_A_TURN else ("person_id", "people")
        owner = [(key["table"], key["on_delete"]) for key in keys if key["from"] == column]
        assert (table, owner) == (table, [(parent, "CASCADE")])
