"""The SQLite database: one writer thread with group commit, a read connection, and the lock of its files."""

import asyncio
import fcntl
import os
import queue
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import aiosqlite
import structlog

from app.errors import StoreError, StoreLockedError
from app.store.migrations import migrate

T = TypeVar("T")

log = structlog.get_logger(__name__)

MAX_BATCH = 256
CLOSE_SECONDS = 5.0
CHECKPOINT_SECONDS = 10.0


def new_id(prefix: str) -> str:
    """Return an id such as "turn_019a5f0c3b2e9f…": milliseconds, then 64 random bits; make it before `tx`."""
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def insert(conn: sqlite3.Connection, table: str, *, or_skip: bool = False, **values: object) -> int:
    """Insert a row and return its number, where the table has one; 0 if `or_skip` and its key exists."""
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders(values)})"
    added = conn.execute(sql + " ON CONFLICT DO NOTHING" * or_skip, tuple(values.values()))
    return added.lastrowid or 0 if added.rowcount else 0


def update(conn: sqlite3.Connection, table: str, where: str, *parameters: object, **values: object) -> int:
    """Change the rows that a condition with these parameters names; return how many there were."""
    sql = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in values)} WHERE {where}"
    return conn.execute(sql, (*values.values(), *parameters)).rowcount


def scalar(conn: sqlite3.Connection, sql: str, *parameters: object) -> Any:
    """Return the first column of the first row that a query finds, None if it finds none."""
    row = conn.execute(sql, parameters).fetchone()
    return None if row is None else row[0]


def exists(conn: sqlite3.Connection, sql: str, *parameters: object) -> bool:
    """Return whether a query finds a row."""
    return conn.execute(sql, parameters).fetchone() is not None


def meta(conn: sqlite3.Connection, key: str) -> str | None:
    """Return a value that belongs to the whole database, None if it was never kept."""
    value: str | None = scalar(conn, "SELECT value FROM meta WHERE key = ?", key)
    return value


def keep_meta(conn: sqlite3.Connection, key: str, value: str) -> None:
    """Keep a value that belongs to the whole database; "" forgets it."""
    conn.execute("DELETE FROM meta WHERE key = ?", (key,))
    if value:
        insert(conn, "meta", key=key, value=value)


def read_row(kind: type[T], row: sqlite3.Row, **others: object) -> T:
    """Return a dataclass of this kind whose fields are columns of the row, but for the `others`."""
    names = (field.name for field in fields(kind) if field.name not in others)  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names}, **others)


def placeholders(values: "Sequence[object] | dict[str, object]") -> str:
    """Return as many "?" as there are values, for an IN or a VALUES list."""
    return ",".join("?" * len(values))


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    fn: Callable[[sqlite3.Connection], T]
    then: Callable[[T], None] | None
    future: "asyncio.Future[T]"


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class Database:
    """One SQLite file: writes go through `tx`; reads (`all`, `one`, `read`) never decide."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.last_failure = ""  # why the last commit failed; "" once one succeeded again
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._files = _DatabaseFiles(path)
        self._reader: aiosqlite.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Lock the file, apply the migrations and start the writer.

        Raises StoreLockedError if another server holds the lock, StoreError for a newer schema.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._files.lock()
        try:
            with closing(_connect(self.path)) as connection:
                migrate(connection)
            self._loop = asyncio.get_running_loop()
            uri = f"file:{quote(str(self.path))}?mode=ro"
            self._reader = await aiosqlite.connect(uri, uri=True, isolation_level=None)
            self._reader.row_factory = sqlite3.Row
            await self._reader.execute("PRAGMA query_only=ON")
        except BaseException:
            await self.close()
            raise
        self._writer = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._writer.start()

    async def close(self) -> None:
        """Commit what is queued, waiting at most `CLOSE_SECONDS`, then close.

        The writer's connection closes last: it moves the write-ahead log into the file.
        """
        writer, self._writer = self._writer, None  # from here on `tx` refuses
        if self._reader is not None:
            await self._reader.close()
            self._reader = None
        if writer is not None:
            self._jobs.put(None)
            await asyncio.to_thread(writer.join, CLOSE_SECONDS)
        self._files.unlock()

    def tx(
        self, fn: Callable[[sqlite3.Connection], T], *, then: Callable[[T], None] | None = None
    ) -> "asyncio.Future[T]":
        """Queue `fn(connection)` for the next commit, in the order of these calls; await its result.

        `fn` is undone alone if it raises; it must touch nothing but the connection. `then(result)` runs on
        the loop after the commit, even if the caller was cancelled: that leaves `fn` queued, and it is
        written all the same. The future raises what `fn` raised, or StoreError if the commit failed.
        """
        if self._writer is None or self._loop is None:
            raise StoreError("the database is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(fn, then, future))
        return future

    async def all(self, sql: str, *parameters: object) -> list[sqlite3.Row]:
        """Return every row of a query, on the read connection."""
        if self._reader is None:
            raise StoreError("the database is closed")
        return list(await self._reader.execute_fetchall(sql, parameters))

    async def one(self, sql: str, *parameters: object) -> sqlite3.Row | None:
        """Return the first row of a query, or None."""
        rows = await self.all(sql, *parameters)
        return rows[0] if rows else None

    async def read(self, fn: Callable[[sqlite3.Connection], T]) -> T:
        """Run `fn(connection)` on what was committed last, in a thread that does not hold up the writer."""

        def run() -> T:
            uri = f"file:{quote(str(self.path))}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
                connection.row_factory = sqlite3.Row
                connection.execute("BEGIN")
                return fn(connection)

        return await asyncio.to_thread(run)

    async def truncate_log(self) -> None:
        """Move the write-ahead log into the file and cut it to nothing, so that deleted rows leave no trace.

        Raises StoreError if that fails, or if readers hold the log for `CHECKPOINT_SECONDS`.
        """

        def is_busy() -> bool:
            try:
                with closing(_connect(self.path)) as connection:
                    connection.execute("PRAGMA busy_timeout=0")  # waiting for readers would block the writer
                    return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}-wal could not be emptied: {error}") from error

        until = time.monotonic() + CHECKPOINT_SECONDS
        while await asyncio.to_thread(is_busy):
            if time.monotonic() > until:
                raise StoreError(f"{self.path}-wal is still being read: it is emptied when nobody does")
            await asyncio.sleep(0.1)

    def _write(self) -> None:
        assert self._loop is not None
        connection = self._reopen(None)
        while batch := self._next_batch():
            outcomes: list[Any]
            try:
                self._files.check()
                outcomes = _run(connection, batch)
                connection.execute("COMMIT")
                self.last_failure = ""
            except BaseException as error:  # this thread must survive: without it nothing is written any more
                self.last_failure = str(error)
                outcomes = [_Failed(StoreError(f"nothing was written: {error}"))] * len(batch)
                if not isinstance(error, FilesGoneError):  # the file there now may be another one
                    connection = self._reopen(connection)
            try:
                self._loop.call_soon_threadsafe(_settle, batch, outcomes)
            except RuntimeError:  # the loop closed first
                break
        connection.close()

    def _next_batch(self) -> list[_Job[Any]]:
        """Wait for a job, then take those queued behind it; empty once the database closes."""
        batch: list[_Job[Any]] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == MAX_BATCH or self._jobs.empty():
                return batch
            job = self._jobs.get()
        if batch:
            self._jobs.put(None)
        return batch

    def _reopen(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is not None:
            connection.close()
        while True:
            try:
                connection = _connect(self.path)
                self._files.opened()
                return connection
            except sqlite3.Error as error:  # a disk still full: the next batch waits for it
                self.last_failure = str(error)
                time.sleep(0.2)


def _run(connection: sqlite3.Connection, batch: Sequence[_Job[Any]]) -> list[Any]:
    """Run the batch in one transaction, left open, and return the outcomes; what raises is undone alone."""
    connection.execute("BEGIN IMMEDIATE")
    outcomes: list[Any] = []
    for job in batch:
        connection.execute("SAVEPOINT one")
        try:
            outcomes.append(job.fn(connection))
        except Exception as error:
            if not connection.in_transaction:  # SQLite rolled all of it back: a full disk, an I/O error
                raise
            connection.execute("ROLLBACK TO one")
            outcomes.append(_Failed(error))
        connection.execute("RELEASE one")
    return outcomes


def _settle(batch: Sequence[_Job[Any]], outcomes: Sequence[Any]) -> None:
    for job, outcome in zip(batch, outcomes, strict=True):
        if job.future.done():
            continue
        if isinstance(outcome, _Failed):
            refused = isinstance(outcome.error, StopIteration)  # no future takes it
            job.future.set_exception(RuntimeError("a StopIteration") if refused else outcome.error)
            job.future.exception()  # marked as seen: the caller may have given up
        else:
            job.future.set_result(outcome)
    for job, outcome in zip(batch, outcomes, strict=True):
        if job.then is not None and not isinstance(outcome, _Failed):
            try:
                job.then(outcome)
            except Exception:  # the others' hints follow all the same
                log.exception("a hint after a commit failed")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    connection.row_factory = sqlite3.Row
    for pragma in (
        "busy_timeout=5000",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        "secure_delete=ON",  # deleted bytes are overwritten
        "wal_autocheckpoint=4000",  # 16 MB: a storm writes each page back less often
    ):
        connection.execute(f"PRAGMA {pragma}")
    return connection


class FilesGoneError(StoreError):
    """The database's files were removed or replaced: what is written now would be lost at the next start."""


class _DatabaseFiles:
    """The database's file, its log and the lock beside them, watched by their names.

    Someone may tidy up or restore a copy under a running server: SQLite would go on writing to files without
    a name, and all of it would be gone when the server ends.
    """

    def __init__(self, path: Path) -> None:
        file = path.resolve()  # one lock, whichever link leads to the file
        self._path = path
        self._log_path = file.with_name(file.name + "-wal")
        self._lock_path = file.with_name(file.name + ".lock")
        self._lock: int | None = None
        self._known: dict[Path, tuple[int, int] | None] = {}

    def lock(self) -> None:
        """Take the lock or raise StoreLockedError.

        It is a file of its own: closing any handle on the database's file would drop SQLite's lock.
        """
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise StoreLockedError(
                f"{self._path} is in use by another Recado server (process {holder}); "
                "stop it first, or give this one a DATABASE_URL of its own"
            ) from error
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        self._lock = handle
        self._known[self._lock_path] = _identity(self._lock_path)

    def unlock(self) -> None:
        """Release the lock; the files opened next may be others."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None
        self._known = {}

    def opened(self) -> None:
        """Remember the files that SQLite opened: the database stays that file, the log may be a new one."""
        self._known[self._path] = self._known.get(self._path) or _identity(self._path)
        self._known[self._log_path] = _identity(self._log_path)

    def check(self) -> None:
        """Raise FilesGoneError if the files are others by now: without the lock, another server's."""
        for path, known in self._known.items():
            if _identity(path) != known:
                raise FilesGoneError(
                    f"{path.name} was removed or replaced under the running server; put it back, or restart"
                )


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
