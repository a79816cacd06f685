"""The numbered files that make the database's tables, and bring older ones up to date."""

import sqlite3
import zlib
from contextlib import closing
from importlib import resources

from app.errors import StoreError


def migrate(connection: sqlite3.Connection) -> None:
    """Applies the numbered files that the database has not seen yet, each in one transaction."""
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL)"
    )
    current = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()[0]
    steps = migrations()
    if current > len(steps):
        raise StoreError(
            f"the database has schema {current}, this version of Recado knows {len(steps)}: "
            "start the newer version that wrote it"
        )
    for version, (name, sql) in enumerate(steps, 1):
        if version <= current:
            continue
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{sql}\n"
                f"INSERT INTO schema_version VALUES ({version}, '{name}', unixepoch());\nCOMMIT;"
            )
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            raise StoreError(f"migration {name} failed, nothing of it was kept: {error}") from error
    _check_tables(connection, steps, made_here=current == 0)


def missing_columns(connection: sqlite3.Connection) -> list[str]:
    """The `table.column` that a database with every migration should have and has not."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        model.executescript("".join(sql for _, sql in migrations()))
        return sorted(_columns(model) - _columns(connection))


def lacks(missing: list[str]) -> str:
    return f"lacks {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}"


def _check_tables(connection: sqlite3.Connection, steps: list[tuple[str, str]], *, made_here: bool) -> None:
    """Raises StoreError where the numbers are right and the tables are not: a step was changed meanwhile.

    Once for each wording of the steps, which the file remembers: making the tables anew takes its time.
    """
    wording = zlib.crc32("".join(sql for _, sql in steps).encode()) & 0x7FFFFFFF
    if connection.execute("PRAGMA user_version").fetchone()[0] == wording:
        return
    if not made_here and (missing := missing_columns(connection)):
        raise StoreError(
            f"the database {lacks(missing)}: a version in between wrote it that was never released; "
            "restore a copy, or move the file away to begin anew"
        )
    connection.execute(f"PRAGMA user_version = {wording}")


def _columns(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'"
    )
    return {f"{table}.{column}" for table, column in rows if not table.startswith("sqlite_")}


def migrations() -> list[tuple[str, str]]:
    """Name and SQL of every migration, in order; file names start with their number."""
    folder = resources.files("app.store.migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    for number, file in enumerate(files, 1):
        if int(file.name.split("_")[0]) != number:
            raise StoreError(f"migration {file.name} should have number {number:04d}")
    return [(file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files]
