"""Moves everything from a database into an empty one, of the same kind or the other.

Rows are copied in the order of their keys, a batch in a transaction. A move that was cut off resumes after
the last key in each table of the target. A row of `schema_version` marks a database whose
move is not finished.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from app.errors import StoreError
from app.store.database import Connection, Engine, Location, engine_of, exists, placeholders, scalar
from app.store.migrations import UNFINISHED, Table, tables

BATCH = 1000


def move(source: Location, target: Location, report: Callable[[str], None]) -> None:
    """Copy every row and compare both sides; report a line for each table.

    Raise StoreLockedError if a server uses one of them, StoreError if the target holds other rows or if
    the sides differ in the end.
    """
    with (
        _locked(source) as old,
        _locked(target) as new,
        closing(old.connect_to_read()) as reading,
        closing(new.connect()) as writing,
    ):
        _claim(reading, new, writing)
        for table in tables():
            if count := _copy(table, reading, new, writing):
                report(f"{table.name}: {count:,} copied")
        with _transaction(new, writing):
            counts = [tuple(row) for row in reading.execute("SELECT data_bytes, id FROM people")]
            if counts:  # triggers counted a second time while the rows of `skill_data` came in
                writing.executemany("UPDATE people SET data_bytes = ? WHERE id = ?", counts)
            for table in tables():
                if table.is_numbered:
                    new.number_after(writing, table.name, table.key[0])
        with closing(new.connect_to_read()) as copied:
            _compare(reading, copied, report)
        with _transaction(new, writing):
            writing.execute("UPDATE outbox SET worker = NULL")  # the other database numbers its own workers
            writing.execute("DELETE FROM schema_version WHERE version = ?", (UNFINISHED,))


@contextmanager
def _locked(location: Location) -> Iterator[Engine]:
    engine = engine_of(location)
    try:
        engine.prepare()
        yield engine
    finally:
        engine.unlock()


@contextmanager
def _transaction(engine: Engine, connection: Any) -> Iterator[None]:
    """Commit after the block; what raises in it ends the move, and its connection."""
    engine.begin(connection)
    yield
    engine.commit(connection)


def _claim(reading: Connection, engine: Engine, writing: Connection) -> None:
    """Mark the target as that of this move, or find it marked so. Raise StoreError if it holds other rows."""
    named = "SELECT name FROM schema_version WHERE version = ?"
    if exists(reading, named, UNFINISHED):
        raise StoreError("a move into the database that is to be moved was not finished; finish that first")
    made_at = scalar(reading, "SELECT applied_at FROM schema_version WHERE version = 1")
    mark = f"moving from {made_at!r}"  # no other database was made at that very time
    found = scalar(writing, named, UNFINISHED)
    if found not in (None, mark):
        raise StoreError("the target holds a part of another database; name one that is empty")
    filled = [table.name for table in tables() if exists(writing, f"SELECT 1 FROM {table.name} LIMIT 1")]
    if found is None and filled:
        raise StoreError(f"the target is not empty ({', '.join(filled[:3])}); name one that is")
    if found is None:
        with _transaction(engine, writing):
            writing.execute("INSERT INTO schema_version VALUES (?, ?, 0)", (UNFINISHED, mark))


def _copy(table: Table, reading: Connection, engine: Engine, writing: Connection) -> int:
    """Copy the rows behind the last one that is there already; return how many there were."""
    backwards = ", ".join(f"{column} DESC" for column in table.key)
    last = f"SELECT {', '.join(table.key)} FROM {table.name} ORDER BY {backwards} LIMIT 1"
    row = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({placeholders(table.columns)})"
    count = 0
    for rows in _batches(reading, table, tuple(writing.execute(last).fetchone() or ())):
        try:
            with _transaction(engine, writing):
                writing.executemany(row, rows)
        except engine.errors as error:
            raise StoreError(
                f"{table.name} could not be written: {' '.join(str(error).split())}; what was copied so far "
                "stays, and the same command goes on behind it"
            ) from error
        count += len(rows)
    return count


def _batches(conn: Connection, table: Table, after: tuple[Any, ...] = ()) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows behind a key, in the order of their keys.

    U+FFFD stands in place of U+0000, which PostgreSQL cannot hold in a text.
    """
    key = ", ".join(table.key)
    places = [table.columns.index(column) for column in table.key]
    while True:
        behind = f" WHERE ({key}) > ({placeholders(after)})" if after else ""
        select = f"SELECT {', '.join(table.columns)} FROM {table.name}{behind} ORDER BY {key} LIMIT {BATCH}"
        rows = conn.execute(select, after).fetchall()
        if not rows:
            return
        yield [tuple(v.replace("\0", "\ufffd") if isinstance(v, str) else v for v in row) for row in rows]
        after = tuple(rows[-1][place] for place in places)


def _compare(one: Connection, other: Connection, report: Callable[[str], None]) -> None:
    """Raise StoreError naming the tables whose rows are not the same on both sides."""
    different = []
    for table in tables():
        (count, digest), (copied, copied_digest) = _summary(one, table), _summary(other, table)
        is_same = digest == copied_digest
        if not is_same:
            different.append(table.name)
            report(f"{table.name}: DIFFERENT, {count:,} in the source and {copied:,} in the target")
        elif count:
            report(f"{table.name}: {count:,} on both sides, all the same (SHA-256 {digest[:16]})")
    if different:
        raise StoreError(
            f"not moved: {', '.join(different)} differ; one side was changed meanwhile. "
            "Empty the target and move again"
        )


def _summary(connection: Connection, table: Table) -> tuple[int, str]:
    """Return the number of rows and the sum of their hashes, which is the same in any order.

    A key in which U+0000 was replaced has another place in the target.
    """
    total = count = 0
    for rows in _batches(connection, table):
        count += len(rows)
        # As Python writes them: 1 is not 1.0 there, and a float has its shortest form.
        hashes = (hashlib.sha256(repr(row).encode()).digest() for row in rows)
        total += sum(int.from_bytes(hashed, "big") for hashed in hashes)
    return count, f"{total % 2**256:064x}"
