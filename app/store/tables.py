"""The tables as the migrations make them: columns, keys and references."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter

from app.store.migrations import migrations


@dataclass(frozen=True, slots=True)
class Reference:
    """A column whose values are keys of rows in a table."""

    column: str
    table: str
    key: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `is_numbered` if the database numbers its rows, in the only column of its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    is_numbered: bool
    references: tuple[Reference, ...]


@cache
def tables() -> tuple[Table, ...]:
    """Return every table of the newest step, each behind those that it refers to."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for _, sql in migrations():
            connection.executescript(sql)
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        )
        found = {name: _table(connection, name) for (name,) in names.fetchall()}
    order = TopologicalSorter(
        {name: {one.table for one in table.references} for name, table in found.items()}
    )
    return tuple(found[name] for name in order.static_order())


def _table(connection: sqlite3.Connection, name: str) -> Table:
    columns = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", (name,)).fetchall()
    references = connection.execute(
        'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', (name,)
    ).fetchall()
    key = tuple(column for _, column in sorted((place, column) for column, _, place in columns if place))
    return Table(
        name,
        columns=tuple(column for column, _, _ in columns),
        key=key,
        is_numbered=[kind for column, kind, _ in columns if (column,) == key] == ["INTEGER"],
        references=tuple(Reference(*one) for one in references),
    )
