"""The database: one write path with group commit, read connections, the lock."""

import asyncio
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import aiosqlite
import structlog

from app.errors import StoreError
from app.store.database_files import DatabaseFiles, FilesGoneError
from app.store.migrations import migrate

T = TypeVar("T")

log = structlog.get_logger(__name__)

MAX_BATCH = 256
CLOSE_SECONDS = 5.0
EMPTY_SECONDS = 10.0


@dataclass(slots=True)  # frozen, it takes three times as long to make: one for each write
class _Job(Generic[T]):
    fn: Callable[[sqlite3.Connection], T]
    then: Callable[[T], None] | None
    future: "asyncio.Future[T]"


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


class _BatchLost(Exception):
    """SQLite gave up the whole transaction (a full disk, an I/O error): nothing of the batch stands."""


class Database:
    """One SQLite file.

    Every write goes through `tx` or `submit`; reads through `all` and `one`, which inform but never decide.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._jobs = _Jobs()
        self._submitted: list[_Job[Any]] = []
        self._writer: threading.Thread | None = None
        self._files = DatabaseFiles(path)
        self._reader: aiosqlite.Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.last_failure: str = ""
        """Why the last commit failed, "" once one succeeded again."""

    async def open(self) -> None:
        """Locks the file, brings its tables up to date and starts the writer.

        Raises StoreLockedError where another server holds it, StoreError for a newer schema.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._files.lock()
        try:
            with closing(_connect(self.path)) as connection:
                migrate(connection)
            self._loop = asyncio.get_running_loop()
            self._reader = await aiosqlite.connect(
                f"file:{quote(str(self.path))}?mode=ro", uri=True, isolation_level=None
            )
            self._reader.row_factory = sqlite3.Row
            await self._reader.execute("PRAGMA query_only=ON")
        except BaseException:
            await self.close()
            raise
        self._writer = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._writer.start()

    async def close(self) -> None:
        """Commits what is queued, then closes; waits at most `CLOSE_SECONDS`.

        The writer's connection is the last: it brings the log into the file, which then holds everything.
        """
        writer, self._writer = self._writer, None  # from here on `tx` refuses
        if self._reader is not None:
            await self._reader.close()
            self._reader = None
        if writer is not None:
            self._hand_over()
            self._jobs.close()
            await asyncio.to_thread(writer.join, CLOSE_SECONDS)
        self._files.let_go()

    async def tx(
        self,
        fn: Callable[[sqlite3.Connection], T],
        *,
        then: Callable[[T], None] | None = None,
    ) -> T:
        """Runs `fn(connection)` in the writer thread as part of the next commit and gives its result.

        `fn` runs whole and is undone alone if it raises. It may run twice (again, if another of the same
        commit raised), so it touches nothing but the connection it is given.
        `then(result)` runs on the loop after the commit, even when the caller has gone meanwhile.
        Raises what `fn` raised, or StoreError where the commit failed. Who stops waiting leaves `fn` queued:
        it is written all the same.
        """
        return await self.submit(fn, then=then)

    def submit(
        self,
        fn: Callable[[sqlite3.Connection], T],
        *,
        then: Callable[[T], None] | None = None,
        urgent: bool = False,
    ) -> "asyncio.Future[T]":
        """As `tx`, for whoever waits later, or not at all: what is submitted after it is written after it.

        An `urgent` function passes those that are not, and its caller goes on before theirs.
        """
        if self._writer is None:
            raise StoreError("the database is closed")
        assert self._loop is not None
        future: asyncio.Future[T] = self._loop.create_future()
        job = _Job(fn, then, future)
        if urgent:
            self._jobs.put_urgent(job)
            return future
        if not self._submitted:
            self._loop.call_soon(self._hand_over)
        self._submitted.append(job)
        return future

    async def all(self, sql: str, *parameters: object) -> list[sqlite3.Row]:
        """Every row of a query, on a read connection."""
        if self._reader is None:
            raise StoreError("the database is closed")
        return list(await self._reader.execute_fetchall(sql, parameters))

    async def one(self, sql: str, *parameters: object) -> sqlite3.Row | None:
        """The first row of a query, or None."""
        rows = await self.all(sql, *parameters)
        return rows[0] if rows else None

    async def empty_log(self) -> None:
        """Moves what the write-ahead log holds into the file and cuts the log to nothing: what was deleted
        stands nowhere any more. Raises StoreError where that fails, or somebody reads for `EMPTY_SECONDS`.
        """

        def empty() -> bool:
            try:
                with closing(_connect(self.path)) as connection:
                    connection.execute(
                        "PRAGMA busy_timeout=0"
                    )  # who waits for readers here holds up the writer
                    return bool(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            except sqlite3.Error as error:
                raise StoreError(f"{self.path}-wal could not be emptied: {error}") from error

        until = time.monotonic() + EMPTY_SECONDS
        while await asyncio.to_thread(empty):
            if time.monotonic() > until:
                raise StoreError(f"{self.path}-wal is still being read: it is emptied when nobody does")
            await asyncio.sleep(0.1)

    def _hand_over(self) -> None:
        """What was called for in one round of the loop goes to the writer at once: one wake, one commit."""
        submitted, self._submitted = self._submitted, []
        self._jobs.put(submitted)

    def _write(self) -> None:
        assert self._loop is not None
        connection = self._reopen(None)
        while self._jobs.wait():
            taken: list[_Job[Any]] = []
            outcomes: list[Any]
            try:
                self._files.check()
                outcomes = _run(connection, self._jobs.batch(), taken)
                connection.execute("COMMIT")
                self.last_failure = ""
            except BaseException as error:  # whatever it is: without this thread nothing is written any more
                self.last_failure = str(error)
                taken += self._jobs.batch()
                outcomes = [_Failed(StoreError(f"nothing was written: {error}"))] * len(taken)
                if not isinstance(error, FilesGoneError):  # what would be opened now is not ours
                    connection = self._reopen(connection)
            try:
                self._loop.call_soon_threadsafe(_settle, taken, outcomes)
            except RuntimeError:  # the loop closed first: nobody is left to tell
                break
        connection.close()

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


class _Jobs:
    """What waits for the writer."""

    def __init__(self) -> None:
        self._arrived: queue.SimpleQueue[Sequence[_Job[Any]] | None] = queue.SimpleQueue()
        self._ordinary: deque[_Job[Any]] = deque()
        self._urgent: deque[_Job[Any]] = deque()
        self._closed = False

    def put(self, jobs: Sequence[_Job[Any]]) -> None:
        self._arrived.put(jobs)

    def put_urgent(self, job: _Job[Any]) -> None:
        self._urgent.append(job)
        self._arrived.put(())  # wakes the writer

    def close(self) -> None:
        self._arrived.put(None)

    def wait(self) -> bool:
        """Waits until there is something to write; False once all is written and nothing more will come."""
        while not (self._closed or self._urgent or self._ordinary):
            self._receive(self._arrived.get())
        while not self._arrived.empty():
            self._receive(self._arrived.get())
        return bool(self._urgent or self._ordinary)

    def batch(self) -> Iterator[_Job[Any]]:
        """What goes into one commit: what queued while the last one ran, without a timer.

        What is urgent closes it, so that it waits for one other function and not for 256. That one comes
        first, so that a storm of urgent ones keeps nobody waiting for good.
        """
        left = MAX_BATCH
        while self._ordinary and left:
            yield self._ordinary.popleft()
            left -= 1
            if self._urgent:
                break
        while self._urgent and left:
            yield self._urgent.popleft()
            left -= 1

    def _receive(self, jobs: Sequence[_Job[Any]] | None) -> None:
        if jobs is None:
            self._closed = True
        else:
            self._ordinary.extend(jobs)


def _run(connection: sqlite3.Connection, batch: Iterable[_Job[Any]], taken: list[_Job[Any]]) -> list[Any]:
    """Runs the batch, whose functions `taken` then holds, in one transaction, still open; their outcomes.

    A function that raises is undone alone. A savepoint costs a copy of every page touched (a fifth of the
    writer's time), so they come only once one has raised: then all is undone and run again with one around
    each.
    """
    connection.execute("BEGIN IMMEDIATE")
    outcomes: list[Any] = []
    try:
        for job in batch:
            taken.append(job)
            outcomes.append(job.fn(connection))
    except Exception as error:
        if not connection.in_transaction:
            raise _BatchLost(str(error)) from error
        connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        if len(taken) == 1:
            return [_Failed(_raisable(error))]
        outcomes = [_guarded(connection, job) for job in taken]
    return outcomes


def _guarded(connection: sqlite3.Connection, job: _Job[Any]) -> Any:
    connection.execute("SAVEPOINT one")
    try:
        return job.fn(connection)
    except Exception as error:
        if not connection.in_transaction:
            raise _BatchLost(str(error)) from error
        connection.execute("ROLLBACK TO one")
        return _Failed(_raisable(error))
    finally:
        if connection.in_transaction:
            connection.execute("RELEASE one")


def _raisable(error: Exception) -> Exception:
    """The error as a future may carry it: StopIteration it may not."""
    if isinstance(error, StopIteration):
        return RuntimeError("a function of a transaction raised StopIteration")
    return error


def _settle(batch: Sequence[_Job[Any]], outcomes: Sequence[Any]) -> None:
    hints: list[tuple[Callable[[Any], None], Any]] = []
    for job, outcome in zip(batch, outcomes, strict=True):
        if isinstance(outcome, _Failed):
            if not job.future.done():
                _fail(job.future, outcome.error)
            continue
        if not job.future.done():
            job.future.set_result(outcome)
        if job.then is not None:
            hints.append((job.then, outcome))
    for then, outcome in hints:
        _tell(then, outcome)


def _tell(then: Callable[[Any], None], outcome: Any) -> None:
    """Passes on a hint; one that fails keeps nobody else's from them."""
    try:
        then(outcome)
    except Exception:
        log.exception("a hint after a commit failed")


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    """Sets an error and marks it as seen: a caller that gave up leaves nobody else to do so."""
    future.set_exception(error)
    future.exception()


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA busy_timeout=5000")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA secure_delete=ON")  # what is deleted is overwritten
    connection.execute("PRAGMA wal_autocheckpoint=4000")  # 16 MB: a storm writes each page back less often
    return connection
