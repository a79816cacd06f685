"""Calls whose outcome nobody knows. What stands here must not be done again without the person's yes."""

from sqlite3 import Connection

UncertainCall = tuple[str, str]
"""A tool's name, and sha256 of the canonical arguments."""


def note(conn: Connection, person: str, call: UncertainCall, now: float) -> None:
    conn.execute(
        "INSERT INTO uncertain_calls VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at",
        (person, *call, now),
    )


def settle(conn: Connection, person: str, call: UncertainCall) -> None:
    """The person had it done again, and this time it is known what came of it."""
    conn.execute(
        "DELETE FROM uncertain_calls WHERE person_id = ? AND tool = ? AND arguments_hash = ?", (person, *call)
    )


def of_person(conn: Connection, person: str) -> frozenset[UncertainCall]:
    rows = conn.execute("SELECT tool, arguments_hash FROM uncertain_calls WHERE person_id = ?", (person,))
    return frozenset((row["tool"], row["arguments_hash"]) for row in rows)
