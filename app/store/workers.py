"""The processes that work on one PostgreSQL database, and the jobs that bring conversations to them.

A worker is a row of procrastinate's workers, a job one of its jobs; `0035_worker_of_a_send.postgres.sql` adds
a job in the transaction that makes a message wait. All SQL here is PostgreSQL's.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from time import monotonic

import structlog

from app.errors import StoreError
from app.store import outbox, postgres
from app.store.database import Connection, Database, placeholders, scalar

log = structlog.get_logger(__name__)

QUEUE, TASK = "conversations", "attend"
BEAT_SECONDS = 2.0
SILENT_SECONDS = 20.0  # after which a worker counts as dead
ANY_LIVES = (
    f"SELECT 1 FROM procrastinate_workers WHERE last_heartbeat > now() - interval '{SILENT_SECONDS} s'"
)
_FETCHED_SECONDS = 10
_SECONDS_SILENT = "extract(epoch FROM now() - last_heartbeat)"


def register(conn: Connection, *, alone: bool) -> int:
    """Make this process a worker and return its number.

    Raises StoreError if its clock differs from that of the others, unless it is `alone`.
    """
    off = postgres.seconds_off(time.time(), scalar(conn, f"SELECT {postgres.CLOCK}"))
    if off and not alone:
        raise StoreError(f"the clock of this machine is {off:.0f} s off the database's: set it right")
    number: int = scalar(conn, "SELECT worker_id FROM procrastinate_register_worker_v1()")
    return number


def unregister(conn: Connection, worker: int, unfinished: Sequence[str]) -> None:
    """Take a worker out at its orderly stop; the conversations that it leaves `unfinished` are for others."""
    _requeue(conn, "worker_id = ?", worker)
    for conversation in unfinished:
        ensure_job(conn, conversation)
    conn.execute("SELECT procrastinate_unregister_worker_v1(?)", (worker,))


def prune_stalled(
    conn: Connection, own: int | None, now: float, reconcile: float, silent: float
) -> Sequence[int]:
    """Take out the other workers that were silent so long, and return their numbers.

    What they held is for others. A pruned worker that goes on can write nothing any more (`Postgres.begin`).
    Its jobs get new numbers: procrastinate checks nothing but the number when a worker ends a job, so by the
    old one it could end the job of the worker that has it then.
    """
    is_silent = f"id <> ? AND {_SECONDS_SILENT} > ?"
    rows = conn.execute(f"DELETE FROM procrastinate_workers WHERE {is_silent} RETURNING id", (own, silent))
    gone = [row["id"] for row in rows.fetchall()]
    _requeue(conn, "worker_id IS NULL")
    living = conn.execute("SELECT id FROM procrastinate_workers").fetchall()
    outbox.recover(conn, now + reconcile, [row["id"] for row in living])
    return gone


def requeue_unattended(conn: Connection, own: int | None, attended: Sequence[str]) -> None:
    """Make the jobs anew that this worker fetched a while ago, but does not attend to."""
    lost = (
        f"worker_id = ? AND lock NOT IN ({placeholders(['', *attended])}) AND EXISTS (SELECT 1 FROM"
        " procrastinate_events AS event WHERE event.job_id = procrastinate_jobs.id AND event.type = 'started'"
        f" AND event.at < now() - interval '{_FETCHED_SECONDS} seconds')"
    )
    _requeue(conn, lost, own, "", *attended)


def ensure_job(conn: Connection, conversation: str) -> None:
    """Add a job for a conversation that has none, neither waiting nor running."""
    has_job = "SELECT 1 FROM procrastinate_jobs WHERE lock = ? AND status IN ('todo', 'doing')"
    if conn.execute(has_job, (conversation,)).fetchone() is None:
        _defer(conn, [conversation])


def notify(conn: Connection, *hints: str) -> None:
    """Give hints to all processes, once this is committed."""
    for hint in hints:
        conn.execute("SELECT pg_notify('recado', ?)", (hint,))


def _requeue(conn: Connection, which: str, *parameters: object) -> None:
    """Put new jobs in the place of running ones that a condition with these parameters names."""
    dropped = f"DELETE FROM procrastinate_jobs WHERE status = 'doing' AND {which} RETURNING lock"
    _defer(conn, [row["lock"] for row in conn.execute(dropped, parameters).fetchall()])


def _defer(conn: Connection, conversations: Sequence[str]) -> None:
    if conversations:
        sql = f"SELECT defer_conversation(id) FROM conversations WHERE id IN ({placeholders(conversations)})"
        conn.execute(sql, tuple(conversations))


class Heartbeat:
    """Shows in a thread of its own that this process lives, so that a busy loop does not look dead.

    `on_pruned` is called in that thread when others have taken it for dead, or when it takes itself out
    because its clock is wrong: all times in the rows are compared with those of the others. One that is
    `alone` goes on.
    """

    def __init__(
        self, store: Database, address: str, worker: int, on_pruned: Callable[[], object], *, alone: bool
    ) -> None:
        self._store = store
        self._alone = alone
        self._address = address
        self._worker = worker
        self._on_pruned = on_pruned
        self._stopped = threading.Event()
        self._since = self._last = monotonic()
        self._pruned = False
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    @property
    def may_prune(self) -> bool:
        """Return True if this worker may prune others: it had no silence of its own for as long as theirs."""
        return monotonic() - self._since > SILENT_SECONDS and monotonic() - self._last < 2 * BEAT_SECONDS

    @property
    def holds(self) -> bool:
        """Return True if no other worker can have taken this one for dead."""
        return not self._pruned and monotonic() - self._last < SILENT_SECONDS / 2

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(BEAT_SECONDS)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with closing(postgres.Connection(self._address)) as connection:
                    while not self._stopped.wait(BEAT_SECONDS):
                        if not self._beat(connection):
                            self._on_pruned()
                            return
            except Exception as error:  # the database is away, so no worker can beat
                log.warning("no heartbeat", error=type(error).__name__)
                self._stopped.wait(BEAT_SECONDS)

    def _beat(self, connection: Connection) -> bool:
        asked = time.time()
        row = connection.execute(
            "UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = ?"
            f" RETURNING id = (SELECT min(id) FROM procrastinate_workers), {postgres.CLOCK}",
            (self._worker,),
        ).fetchone()
        if row is not None and not self._alone and (off := postgres.seconds_off(asked, row[1])):
            log.error("the clock of this machine is wrong: others go on with its work", off=round(off))
            connection.execute("DELETE FROM procrastinate_workers WHERE id = ?", (self._worker,))
            row = None
        self._pruned = row is None
        if monotonic() - self._last > SILENT_SECONDS / 2:
            self._since = monotonic()
        self._last = monotonic()
        self._store.is_leader = row is not None and bool(row[0])
        return row is not None
