"""SQLite as the database: one file, its connections, and the lock that keeps a second server away."""

import asyncio
import fcntl
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiosqlite

from app.errors import StoreError, StoreLockedError
from app.store.migrations import migrate
from app.text import fold

CHECKPOINT_SECONDS = 10.0
BUSY_SECONDS = 5.0


class FilesGoneError(StoreError):
    """The database's files were removed or replaced: what is written now would be lost at the next start."""


class SQLite:
    """The engine of a database in one file.

    It watches the names of the file, its log and the lock beside them. Someone may tidy up or restore a copy
    under a running server: SQLite would go on writing to files without a name, and all of it would be gone
    when the server ends.
    """

    errors: type[Exception] = sqlite3.Error

    def __init__(self, path: Path) -> None:
        self.path = path
        self.worker: int | None = None  # one process only
        self.is_first = True
        file = path.resolve()  # one lock, whichever link leads to the file
        self._log_path = file.with_name(file.name + "-wal")
        self._lock_path = file.with_name(file.name + ".lock")
        self._lock: int | None = None
        self._known: dict[Path, tuple[int, int] | None] = {}
        self._reader: aiosqlite.Connection | None = None

    def exists(self) -> bool:
        return self.path.is_file()

    def prepare(self) -> None:
        """Take the lock and bring the file up to date. Raises StoreLockedError if another process has it."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._take_lock()
        with closing(_connect(self.path)) as connection:
            migrate(connection, lambda _, sql: _run_script(connection, sql))

    def _take_lock(self) -> None:
        # A file of its own: closing any handle on the database's file would drop SQLite's lock.
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise StoreLockedError(
                f"{self.path} is in use by another Recado server (process {holder}); "
                "stop it first, or give this one a DATABASE_URL of its own"
            ) from error
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        self._lock = handle
        self._known[self._lock_path] = _identity(self._lock_path)

    async def open_readers(self) -> None:
        self._reader = await aiosqlite.connect(_read_only(self.path), uri=True, isolation_level=None)
        self._reader.row_factory = sqlite3.Row
        await self._reader.execute("PRAGMA query_only=ON")

    async def close_readers(self) -> None:
        if self._reader is not None:
            await self._reader.close()
            self._reader = None

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None
        self._known = {}  # the files opened next may be others

    def connect(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        self._known[self.path] = self._known.get(self.path) or _identity(self.path)  # it stays that file
        self._known[self._log_path] = _identity(self._log_path)  # it may be a new one
        return connection

    def connect_to_read(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            _read_only(self.path), uri=True, isolation_level=None, timeout=BUSY_SECONDS
        )
        connection.row_factory = sqlite3.Row
        connection.create_function("folded", 1, fold, deterministic=True)
        connection.execute("BEGIN")
        return connection

    def begin(self, connection: sqlite3.Connection) -> None:
        """Begin a transaction. Raises FilesGoneError if the files are others by now, as another server's."""
        for path, known in self._known.items():
            if _identity(path) != known:
                raise FilesGoneError(
                    f"{path.name} was removed or replaced under the running server; put it back, or restart"
                )
        connection.execute("BEGIN IMMEDIATE")

    def commit(self, connection: sqlite3.Connection) -> None:
        connection.execute("COMMIT")

    async def all(self, sql: str, parameters: Sequence[Any]) -> list[sqlite3.Row]:
        if self._reader is None:
            raise StoreError("the database is closed")
        return list(await self._reader.execute_fetchall(sql, parameters))

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

    def number_after(self, connection: object, table: str, column: str) -> None:
        """Do nothing: SQLite counts on from the highest number by itself."""


def _run_script(connection: sqlite3.Connection, sql: str) -> None:
    """Run statements in the open transaction, which `executescript` would commit first."""
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _read_only(path: Path) -> str:
    return f"file:{quote(str(path))}?mode=ro"


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


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
