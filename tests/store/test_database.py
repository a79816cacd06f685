"""The database: group commits, the lock, its files, migrations."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import StoreError
from app.store.database import Database, insert
from app.store.migrations import migrations
from app.store.sqlite import SQLite
from tests.databases import of_sqlite

pytestmark = of_sqlite


def put(key: str) -> Callable[[sqlite3.Connection], str]:
    def write(conn: sqlite3.Connection) -> str:
        conn.execute("INSERT INTO meta VALUES (?, '')", (key,))
        return key

    return write


async def keys(store: Database) -> list[str]:
    return [row["key"] for row in await store.all("SELECT key FROM meta ORDER BY key")]


class Batch:
    """Holds the writer inside one commit, so that everything queued meanwhile becomes the next."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._gate = threading.Event()
        self._entered = threading.Event()

    async def __aenter__(self) -> "Batch":
        self._holder = self._store.tx(self._hold)
        await asyncio.to_thread(self._entered.wait, 5)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gate.set()
        await self._holder

    def _hold(self, _: sqlite3.Connection) -> None:
        self._entered.set()
        self._gate.wait(5)


def _raise(error: Exception) -> Callable[[sqlite3.Connection], None]:
    def write(conn: sqlite3.Connection) -> None:
        conn.execute("INSERT INTO meta VALUES ('half', '')")
        raise error

    return write


async def test_only_the_function_that_raised_is_undone_and_gives_no_hint(store: Database) -> None:
    told: list[object] = []
    async with Batch(store):
        fns = (put("a"), _raise(sqlite3.IntegrityError("no")), put("b"))
        tasks = [store.tx(fn, then=told.append) for fn in fns]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [str, sqlite3.IntegrityError, str]
    assert (await keys(store), told) == (["a", "b"], ["a", "b"])


async def test_a_function_that_raises_stop_iteration_leaves_nobody_waiting(store: Database) -> None:
    async with Batch(store):
        tasks = [store.tx(fn) for fn in (_raise(StopIteration()), put("b"))]
    _, late = await asyncio.wait(tasks, timeout=1)
    assert not late


def _break_commit(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA defer_foreign_keys=ON")
    conn.execute(
        "INSERT INTO conversations (id, person_id, channel, created_at) VALUES ('c', 'nobody', 'x', 0)"
    )


def _lose_transaction(conn: sqlite3.Connection) -> None:
    conn.execute("ROLLBACK")
    raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize("fault", [_break_commit, _lose_transaction])
async def test_a_failed_commit_fails_the_whole_batch_and_the_next_one_works(
    store: Database, fault: Callable[[sqlite3.Connection], None]
) -> None:
    async with Batch(store):
        tasks = [store.tx(fn) for fn in (put("a"), fault, put("b"))]
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, StoreError) for outcome in outcomes)
    assert await keys(store) == []
    assert store.last_failure
    await store.tx(put("later"))
    assert (await keys(store), store.last_failure) == (["later"], "")


async def test_a_caller_that_gave_up_leaves_its_write_and_its_hint(store: Database) -> None:
    told: list[str] = []
    async with Batch(store):
        task = store.tx(put("a"), then=told.append)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await store.tx(put("b"))
    assert (await keys(store), told) == (["a", "b"], ["a"])


async def test_closing_commits_what_is_queued(tmp_path: Path) -> None:
    store = Database(tmp_path / "recado.db")
    await store.open()
    tasks = [store.tx(put(f"k{n}")) for n in range(300)]
    await store.close()
    await asyncio.gather(*tasks)
    with closing(sqlite3.connect(tmp_path / "recado.db")) as conn:
        assert conn.execute("SELECT count(*) FROM meta").fetchone() == (300,)


async def test_a_closed_database_refuses(tmp_path: Path) -> None:
    store = Database(tmp_path / "recado.db")
    await store.open()
    await store.close()
    with pytest.raises(StoreError):
        await store.tx(put("a"))
    with pytest.raises(StoreError):
        await store.all("SELECT 1")


async def test_a_read_connection_cannot_write(store: Database) -> None:
    with pytest.raises(sqlite3.OperationalError):
        await store.all("INSERT INTO meta VALUES ('a', '') RETURNING key")


async def refusal(database: Database) -> str:
    """Why it cannot be opened, "" where it could."""
    try:
        await database.open()
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    await database.close()
    return ""


async def test_a_second_server_on_a_link_to_the_same_file_is_refused(store: Database, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(store.location)
    store.location.open("rb").close()  # which would drop a lock on the file itself
    assert (await refusal(Database(tmp_path / "link.db"))).startswith("StoreLockedError: ")


async def test_a_path_with_signs_of_a_url_is_opened_as_it_is(tmp_path: Path) -> None:
    store = Database(tmp_path / "a b?mode=x#%41" / "recado.db")
    await store.open()
    await store.tx(put("a"))
    assert await keys(store) == ["a"]
    await store.close()


async def test_a_newer_schema_is_refused_and_left_unlocked(tmp_path: Path) -> None:
    path = tmp_path / "recado.db"
    engine = SQLite(path)
    engine.prepare()
    with closing(engine.connect()) as conn:
        conn.execute("INSERT INTO schema_version VALUES (?, 'from tomorrow', 0)", (len(migrations()) + 1,))
    engine.unlock()
    refusals = [await refusal(Database(path)) for _ in range(2)]
    assert ["newer version" in reason for reason in refusals] == [True, True]


async def test_after_a_stop_the_file_alone_holds_everything(tmp_path: Path) -> None:
    """Whoever copies it then, and not its log, loses nothing."""
    store = Database(tmp_path / "recado.db")
    await store.open()
    await store.tx(lambda conn: conn.execute("INSERT INTO meta VALUES ('key', 'value')"))
    assert await store.all("SELECT 1 FROM meta")
    await store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["recado.db", "recado.db.lock"]


def test_a_failing_migration_keeps_nothing_of_itself(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db", isolation_level=None)) as conn:
        conn.execute("CREATE TABLE turns (id TEXT)")  # in the way of the first migration
        with pytest.raises(StoreError, match="nothing of it was kept"):
            SQLite(tmp_path / "other.db").prepare()
        tables = {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"turns", "schema_version"}


def test_what_a_turn_found_before_the_update_goes_on_with_it() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        for _, sql in migrations()[:32]:
            conn.executescript(sql)
        conn.execute("PRAGMA foreign_keys=OFF")
        for turn, state in (("open", "running"), ("over", "done")):
            insert(conn, "turns", id=turn, person_id="p", conversation_id="c", state=state, created_at=0)
            for key, payload in (
                ("tool:0:a", '{"result":"x","facts":{"ok":true,"outside":false}}'),
                ("found:0:a", '["https://found.example/"]'),
                ("files:0:a", '[{"path":"p/f.pdf"}]'),
                ("tool:0:b", '{"result":"y","facts":{"ok":true,"outside":false}}'),
            ):
                kind = key.partition(":")[0]
                insert(
                    conn, "journal", turn_id=turn, key=key, person_id="p", kind=kind, payload=payload, at=0
                )
        conn.executescript(migrations()[32][1])
        kept = conn.execute("SELECT turn_id, key, payload FROM journal")
        rows = {(turn, key): json.loads(payload)["facts"] for turn, key, payload in kept}
    held = {"ok": True, "found": ["https://found.example/"], "files": [{"path": "p/f.pdf"}]}
    assert rows == {
        ("open", "tool:0:a"): held | {"outside": True},
        ("open", "tool:0:b"): {"ok": True, "outside": True},
        ("over", "tool:0:a"): held | {"outside": False},
        ("over", "tool:0:b"): {"ok": True, "outside": False},
    }


@pytest.fixture
async def written(store: Database) -> Database:
    """An open database that something stands in."""
    await store.tx(put("before"))
    return store


def _copied_over(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn, closing(sqlite3.connect(path.with_name("copy"))) as copy:
        conn.backup(copy)
    path.with_name("copy").replace(path)


def _all_removed(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink()


def _log_removed(path: Path) -> None:
    path.with_name(path.name + "-wal").unlink()


@pytest.mark.parametrize("take_away", [Path.unlink, _copied_over, _all_removed, _log_removed])
async def test_nothing_is_taken_that_the_next_start_would_not_find(
    written: Database, take_away: Callable[[Path], None]
) -> None:
    take_away(written.location)
    for _ in range(2):
        with pytest.raises(StoreError, match="was removed or replaced under the running server"):
            await written.tx(put("after"))
    assert "put it back, or restart" in written.last_failure


async def test_a_log_that_was_removed_takes_nothing_with_it_that_was_written(written: Database) -> None:
    _log_removed(written.location)
    with pytest.raises(StoreError):
        await written.tx(put("after"))
    await written.close()
    await written.open()
    assert await keys(written) == ["before"]


async def test_who_lost_the_lock_to_another_server_writes_no_more(written: Database) -> None:
    written.location.with_name("recado.db.lock").unlink()
    other = Database(written.location)
    await other.open()
    with pytest.raises(StoreError, match="lock was removed or replaced"):
        await written.tx(put("first"))
    await other.tx(put("other"))
    assert await keys(other) == ["before", "other"]
    await other.close()
