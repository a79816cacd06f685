"""The database's files, taken away from under the server that has them open."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from app.errors import StoreError, StoreLockedError
from app.store.database import Database


def put(key: str) -> Callable[[sqlite3.Connection], object]:
    return lambda conn: conn.execute("INSERT INTO meta VALUES (?, '')", (key,))


async def keys(store: Database) -> list[str]:
    return [row["key"] for row in await store.all("SELECT key FROM meta ORDER BY key")]


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
    take_away(written.path)
    for _ in range(2):
        with pytest.raises(StoreError, match="was removed or replaced under the running server"):
            await written.tx(put("after"))
    assert "put it back, or restart" in written.last_failure


async def test_a_file_that_was_put_back_is_written_again(written: Database) -> None:
    aside = written.path.rename(written.path.with_name("aside"))
    with pytest.raises(StoreError):
        await written.tx(put("lost"))
    aside.rename(written.path)
    await written.tx(put("after"))
    assert (await keys(written), written.last_failure) == (["after", "before"], "")


async def test_a_log_that_was_removed_takes_nothing_with_it_that_was_written(written: Database) -> None:
    _log_removed(written.path)
    with pytest.raises(StoreError):
        await written.tx(put("after"))
    await written.close()
    await written.open()
    assert await keys(written) == ["before"]


async def test_after_a_failed_commit_the_log_may_be_another(written: Database) -> None:
    def lose(conn: sqlite3.Connection) -> None:
        conn.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    with pytest.raises(StoreError, match="disk I/O error"):
        await written.tx(lose)
    await written.tx(put("after"))
    assert await keys(written) == ["after", "before"]


async def test_a_lock_that_was_removed_is_taken_again(written: Database) -> None:
    lock = written.path.with_name("recado.db.lock")
    lock.unlink()
    await written.tx(put("after"))
    assert int(lock.read_text()) == os.getpid()
    with pytest.raises(StoreLockedError):
        await Database(written.path).open()


async def test_who_lost_the_lock_to_another_server_writes_no_more(written: Database) -> None:
    written.path.with_name("recado.db.lock").unlink()
    other = Database(written.path)
    await other.open()
    with pytest.raises(StoreError, match="another server may have it"):
        await written.tx(put("first"))
    await other.tx(put("other"))
    await other.close()
    await written.tx(put("first again"))
    assert await keys(written) == ["before", "first again", "other"]
