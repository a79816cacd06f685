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
    _match_tables(connection, steps, made_here=current == 0)


def missing_columns(connection: sqlite3.Connection) -> list[str]:
    """The `table.column` that a database with every migration should have and has not."""
    with closing(_reference()) as reference:
        return sorted(
            f"{table}.{column}" for table, column in _columns(reference).keys() - _columns(connection)
        )


def lacks(missing: list[str]) -> str:
    """Name what is missing, as the end of a sentence about the database."""
    return f"lacks {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}"


def _match_tables(connection: sqlite3.Connection, steps: list[tuple[str, str]], *, made_here: bool) -> None:
    """Adds what is missing where the numbers are right and the tables are not: a step was changed after it
    was applied, or somebody has changed them.

    Only where steps or tables are not those that the file was matched with: it takes 70 ms.
    Raises StoreError where adding does not do.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == _fingerprint(connection, steps):
        return
    if not made_here:
        _add_what_is_missing(connection)
    connection.execute(f"PRAGMA user_version = {_fingerprint(connection, steps)}")


def _fingerprint(connection: sqlite3.Connection, steps: list[tuple[str, str]]) -> int:
    """Return a hash of the steps' wording and of SQLite's own count of schema changes."""
    changes = connection.execute("PRAGMA schema_version").fetchone()[0]
    return zlib.crc32(f"{changes}{''.join(sql for _, sql in steps)}".encode()) & 0x7FFFFFFF


def _add_what_is_missing(connection: sqlite3.Connection) -> None:
    """Tables, columns that are no keys, indexes and triggers; all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        with closing(_reference()) as reference:
            _create_missing(connection, reference, "table")
            wanted, there = _columns(reference), _columns(connection)
            for (table, column), definition in wanted.items():
                if (table, column) not in there and definition:
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")
            _create_missing(connection, reference, "index")
            _create_missing(connection, reference, "trigger")
        if missing := missing_columns(connection):
            raise sqlite3.OperationalError(f"it {lacks(missing)}")
    except sqlite3.Error as error:
        connection.rollback()
        raise StoreError(
            f"the database is of a version in between that was never released: {error}; "
            "restore a copy, or move the file away to begin anew"
        ) from error
    connection.execute("COMMIT")


def _create_missing(connection: sqlite3.Connection, reference: sqlite3.Connection, kind: str) -> None:
    """Create what the reference has of a kind and this database has not."""
    made = "SELECT name, sql FROM sqlite_schema WHERE type = ? AND sql NOT NULL"
    there = {name for name, _ in connection.execute(made, (kind,))}
    for name, sql in reference.execute(made, (kind,)):
        if name not in there and not name.startswith("sqlite_"):
            connection.execute(sql)


def _reference() -> sqlite3.Connection:
    """An empty database as all migrations make it."""
    reference = sqlite3.connect(":memory:", isolation_level=None)
    reference.executescript("".join(sql for _, sql in migrations()))
    return reference


def _columns(connection: sqlite3.Connection) -> dict[tuple[str, str], str]:
    """Table and column, with the words that would add it; none where adding does not do, for it
    refers to another table or is a key."""
    rows = connection.execute(
        'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk OR r."table" NOT NULL'
        " FROM sqlite_schema t, pragma_table_info(t.name) c"
        ' LEFT JOIN pragma_foreign_key_list(t.name) r ON r."from" = c.name'
        " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'"
    )
    return {
        (table, column): ""
        if is_tied
        else f"{kind}{' NOT NULL' * needed}" + f" DEFAULT {default}" * (default is not None)
        for table, column, kind, needed, default, is_tied in rows
    }


def migrations() -> list[tuple[str, str]]:
    """Name and SQL of every migration, in order; file names start with their number."""
    folder = resources.files("app.store.migrations")
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    for number, file in enumerate(files, 1):
        if int(file.name.split("_")[0]) != number:
            raise StoreError(f"migration {file.name} should have number {number:04d}")
    return [(file.name.removesuffix(".sql"), file.read_text("utf-8")) for file in files]
