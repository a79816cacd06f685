"""The numbered files that make the database's tables, and bring older ones up to date.

They are written for SQLite. Where PostgreSQL needs other words than its types, a file of the same name with
`.postgres.sql` at its end takes their place.
"""

import time
from collections.abc import Callable
from importlib import resources
from typing import Any

from app.errors import StoreError

UNFINISHED = 0  # the number of no step: its row says that the database is the target of a move that goes on


def migrate(connection: Any, run: Callable[[str, str], object]) -> None:
    """Apply the numbered files that the database has not seen yet, each in one transaction.

    `run` executes one of them, given its name and its SQL.
    """
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
