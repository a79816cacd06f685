"""The numbered files that make the database's tables and bring older ones up to date, and these tables.

They are written for SQLite. Where PostgreSQL needs other words than its types, a file of the same name with
`.postgres.sql` at its end takes their place.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib import resources
from typing import Any

from app.errors import StoreError

UNFINISHED = 0  # the number of no step: its row says that the database is the target of a move that goes on


def migrate(connection: Any, run: Callable[[str, str], object]) -> None:
    """Apply the files that the database lacks, each in one transaction; `run(name, sql)` executes one."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at DOUBLE PRECISION NOT NULL)"
    )
    current = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0]
    steps = migrations()
    if current > len(steps):
        raise StoreError(
            f"the database has schema {current}, this version of Recado knows {len(steps)}: "
            "start the newer version that wrote it"
        )
    for version, (name, sql) in enumerate(steps[current:], current + 1):
        connection.execute("BEGIN")
        try:
            run(name, sql)
            connection.execute("INSERT INTO schema_version VALUES (?, ?, ?)", (version, name, time.time()))
            connection.execute("COMMIT")
        except Exception as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise StoreError(f"migration {name} failed, nothing of it was kept: {error}") from error


def migrations() -> list[tuple[str, str]]:
    """Return name and SQL of every migration, in order; file names start with their number."""
    folder = resources.files("app.store.migrations")
    named = {file.name.removesuffix(".sql"): file for file in folder.iterdir() if file.name[:4].isdigit()}
    steps = sorted(name for name in named if not name.endswith(".postgres"))
    for number, name in enumerate(steps, 1):
        if int(name.split("_")[0]) != number:
            raise StoreError(f"migration {name} should have number {number:04d}")
    return [(name, named[name].read_text("utf-8")) for name in steps]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `is_numbered` if the database numbers its rows, in the only column of its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    is_numbered: bool
    refers_to: frozenset[str]


@cache
def tables() -> tuple[Table, ...]:
    """Return every table of the newest step, each behind those that it refers to."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, sql in migrations():
            connection.executescript(sql)
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        names = connection.execute(sql)
        found = {name: _table(connection, name) for (name,) in names.fetchall()}
    order = TopologicalSorter({name: table.refers_to for name, table in found.items()})
    return tuple(found[name] for name in order.static_order())


def _table(connection: sqlite3.Connection, name: str) -> Table:
    columns = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
    references = connection.execute('SELECT "table" FROM pragma_foreign_key_list(?)', (name,))
    key = tuple(column for _, column in sorted((place, column) for column, _, place in columns if place))
    return Table(
        name,
        columns=tuple(column for column, _, _ in columns),
        key=key,
        is_numbered=[kind for column, kind, _ in columns if (column,) == key] == ["INTEGER"],
        refers_to=frozenset(table for (table,) in references),
    )
