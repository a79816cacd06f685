"""The numbered files that make the database's tables, and bring older ones up to date."""

import sqlite3
from importlib import resources

from app.errors import StoreError


def migrate(connection: sqlite3.Connection) -> None:
    """Apply the numbered files that the database has not seen yet, each in one transaction."""
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
    for version, (name, sql) in enumerate(steps[current:], current + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{sql}\n"
                f"INSERT INTO schema_version VALUES ({version}, '{name}', unixepoch());\nCOMMIT;"
            )
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            raise StoreError(f"migration {name} failed, nothing of it was kept: {error}") from error


def migrations() -> list[tuple[str, str]]:
    """Return name and SQL of every migration, in order; file names start with their number."""
    folder = resources.files("app.store.migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    for number, file in enumerate(files, 1):
        if int(file.name.split("_")[0]) != number:
            raise StoreError(f"migration {file.name} should have number {number:04d}")
    return [(file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files]
