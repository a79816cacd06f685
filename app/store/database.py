"""The database: one writer thread with group commit, and readers; on SQLite or PostgreSQL."""

import asyncio
import math
import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import structlog

from app.errors import StoreError
from app.i18n import program
from app.store.migrations import UNFINISHED
from app.store.sqlite import FilesGoneError, SQLite

if TYPE_CHECKING:
    from app.store.postgres import Heartbeat, Postgres

T = TypeVar("T")

log = structlog.get_logger(__name__)

MAX_BATCH = 256
CLOSE_SECONDS = 5.0
STANDSTILL_SECONDS = 2.0  # of a commit, after which others' writes may have waited as well


Location = Path | str  # an SQLite file, or the address of a PostgreSQL database
Engine: TypeAlias = "SQLite | Postgres"


class Row(Protocol):
    """A row whose values are read by name or by place."""

    def __getitem__(self, key: Any) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def keys(self) -> list[str]: ...


class Cursor(Protocol):
    """The rows that a statement found, or the number of those that it changed."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection; its SQL has "?" for parameters, and is of the kind that both databases know."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, parameters: Any = (), /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Any, /) -> object: ...
    def close(self) -> None: ...


def engine_of(location: Location, *, shared: bool = False) -> Engine:
    """Return the engine of a location. Raises StoreError if the packages of PostgreSQL are missing."""
    if isinstance(location, Path):
        return SQLite(location)
    try:
        from app.store.postgres import Postgres
    except ImportError as error:
        raise StoreError("PostgreSQL needs more packages: pip install 'recado[postgres]'") from error
    return Postgres(location, shared=shared)


def new_id(prefix: str) -> str:
    """Return an id such as "turn_019a5f0c3b2e9f…": milliseconds, then 64 random bits; make it before `tx`."""
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


def insert(conn: Connection, table: str, *, or_skip: bool = False, **values: object) -> int:
    """Insert a row. Return its first column (1 if that is no number), 0 if `or_skip` and the key exists."""
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders(values)})"
    sql += " ON CONFLICT DO NOTHING" * or_skip + " RETURNING *"
    row = conn.execute(sql, tuple(values.values())).fetchone()
    return 0 if row is None else row[0] if isinstance(row[0], int) else 1


def update(conn: Connection, table: str, where: str, *parameters: object, **values: object) -> int:
    """Change the rows that a condition with these parameters names; return how many there were."""
    sql = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in values)} WHERE {where}"
    return conn.execute(sql, (*values.values(), *parameters)).rowcount


def delete(conn: Connection, table: str, where: str, *parameters: object) -> int:
    """Delete the rows that a condition with these parameters names; return how many there were."""
    return conn.execute(f"DELETE FROM {table} WHERE {where}", parameters).rowcount


def scalar(conn: Connection, sql: str, *parameters: object) -> Any:
    """Return the first column of the first row that a query finds, None if it finds none."""
    row = conn.execute(sql, parameters).fetchone()
    return None if row is None else row[0]


def exists(conn: Connection, sql: str, *parameters: object) -> bool:
    """Return whether a query finds a row."""
    return conn.execute(sql, parameters).fetchone() is not None


def meta(conn: Connection, key: str) -> str | None:
    """Return a value that belongs to the whole database, None if it was never kept."""
    value: str | None = scalar(conn, "SELECT value FROM meta WHERE key = ?", key)
    return value


def keep_meta(conn: Connection, key: str, value: str) -> None:
    """Keep a value that belongs to the whole database; "" forgets it."""
    delete(conn, "meta", "key = ?", key)
    if value:
        insert(conn, "meta", key=key, value=value)


def read_row(kind: type[T], row: Row, **others: object) -> T:
    """Return a dataclass of this kind whose fields are columns of the row, but for the `others`."""
    names = (field.name for field in fields(kind) if field.name not in others)  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names}, **others)


def placeholders(values: "Sequence[object] | dict[str, object]") -> str:
    """Return as many "?" as there are values, for an IN or a VALUES list; for none NULL, which is in none."""
    return ",".join("?" * len(values)) or "NULL"


@dataclass(frozen=True, slots=True)
class _Job(Generic[T]):
    fn: Callable[[Connection], T]
    then: Callable[[T], None] | None
    future: "asyncio.Future[T]"


_Outcome = tuple[Any, Exception | None]  # what a job's function returned, or what it raised


class Database:
    """Writes go through `tx`; reads (`all`, `one`, `read`) never decide."""

    def __init__(self, location: Location, *, shared: bool = False) -> None:
        self.last_failure = ""  # why the last commit failed; "" once one succeeded again
        self.location = location
        self.is_leader = not shared  # of the processes that share it, this one does what only one should do
        self.lease: Heartbeat | None = None  # tells whether this process may still act as a worker
        self.engine = engine_of(location, shared=shared)
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._stood_still_at = -math.inf  # by the monotonic clock
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def holds_lease(self) -> bool:
        """Return False if others may have taken over this worker's work: nothing may be begun any more."""
        return self.lease is None or self.lease.holds

    @property
    def writing_seconds(self) -> float:
        """Return how long writes have gone through since the database stood still or refused one."""
        return time.monotonic() - self._stood_still_at

    async def open(self) -> None:
        """Lock the database, bring it up to date and start the writer. Raises StoreError."""
        try:
            self.engine.prepare()
            await self.engine.open_readers()
            if await self.one("SELECT 1 FROM schema_version WHERE version = ?", UNFINISHED):
                raise StoreError(
                    "a move into this database was not finished: "
                    f"go on with {program()} db move, as it was begun"
                )
            self._loop = asyncio.get_running_loop()
        except BaseException:
            await self.close()
            raise
        self._writer = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._writer.start()

    async def close(self) -> None:
        """Commit what is queued, waiting at most `CLOSE_SECONDS`, then close."""
        writer, self._writer = self._writer, None  # from here on `tx` refuses
        await self.engine.close_readers()
        if writer is not None:
            self._jobs.put(None)
            # Its connection closes last: SQLite's moves the write-ahead log into the file.
            await asyncio.to_thread(writer.join, CLOSE_SECONDS)
        self.engine.unlock()

    def tx(
        self, fn: Callable[[Connection], T], *, then: Callable[[T], None] | None = None
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

    async def all(self, sql: str, *parameters: object) -> list[Row]:
        """Return every row of a query, by what was committed last."""
        return list(await self.engine.all(sql, parameters))

    async def one(self, sql: str, *parameters: object) -> Row | None:
        """Return the first row of a query, or None."""
        rows = await self.all(sql, *parameters)
        return rows[0] if rows else None

    async def read(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn(connection)` on what was committed last, in a thread that does not hold up the writer."""

        def run() -> T:
            with closing(self.engine.connect_to_read()) as connection:
                return fn(connection)

        return await asyncio.to_thread(run)

    def _write(self) -> None:
        assert self._loop is not None
        connection = self._reopen(None)
        while batch := self._next_batch():
            outcomes: list[_Outcome]
            began = time.monotonic()
            try:
                self.engine.begin(connection)
                self._note_standstill(began)  # before the batch decides what is sent again
                outcomes = _run(connection, batch)
                self.engine.commit(connection)
                self.last_failure = ""
            except BaseException as error:  # this thread must survive: without it nothing is written any more
                self.last_failure = str(error)
                outcomes = [(None, StoreError(f"nothing was written: {error}"))] * len(batch)
                if not isinstance(error, FilesGoneError):  # the file there now may be another one
                    connection = self._reopen(connection)
                self._stood_still_at = time.monotonic()
            else:
                self._note_standstill(began)
            try:
                self._loop.call_soon_threadsafe(_settle, batch, outcomes)
            except RuntimeError:  # the loop closed first
                break
        connection.close()

    def _note_standstill(self, began: float) -> None:
        now = time.monotonic()
        if now - began > STANDSTILL_SECONDS:
            self._stood_still_at = now

    def _next_batch(self) -> list[_Job[Any]]:
        """Wait for a job, then take those queued behind it; empty once the database closes."""
        batch = [self._jobs.get()]
        while batch[-1] is not None and len(batch) < MAX_BATCH and not self._jobs.empty():
            batch.append(self._jobs.get())
        if batch[-1] is None and len(batch) > 1:
            self._jobs.put(None)
        return [job for job in batch if job is not None]

    def _reopen(self, connection: Any) -> Any:
        if connection is not None:
            connection.close()
        while True:
            try:
                return self.engine.connect()
            except Exception as error:  # a full disk, a server that is away: the next batch waits for it
                self.last_failure = str(error)
                time.sleep(0.2)


def _run(connection: Connection, batch: Sequence[_Job[Any]]) -> list[_Outcome]:
    """Run the batch in the open transaction and return the outcomes; what raises is undone alone."""
    outcomes: list[_Outcome] = []
    for job in batch:
        connection.execute("SAVEPOINT one")
        try:
            outcomes.append((job.fn(connection), None))
        except Exception as error:
            if not connection.in_transaction:  # all of it was rolled back: a full disk, an I/O error
                raise
            connection.execute("ROLLBACK TO one")
            outcomes.append((None, error))
        connection.execute("RELEASE one")
    return outcomes


def _settle(batch: Sequence[_Job[Any]], outcomes: Sequence[_Outcome]) -> None:
    for job, (result, error) in zip(batch, outcomes, strict=True):
        if error is not None:
            if not job.future.done():
                refused = isinstance(error, StopIteration)  # no future takes it
                job.future.set_exception(RuntimeError("a StopIteration") if refused else error)
                job.future.exception()  # marked as seen: the caller may have given up
            continue
        if not job.future.done():
            job.future.set_result(result)
        if job.then is not None:
            try:
                job.then(result)
            except Exception:  # the others' hints follow all the same
                log.exception("a hint after a commit failed")
