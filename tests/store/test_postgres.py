"""PostgreSQL in place of the SQLite file: one from a wheel, or that of TEST_DATABASE_URL.

With TEST_DATABASE_URL the tests of store, turns, schedule and memory have their databases there too.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from app.errors import StoreError, StoreLockedError
from app.store import postgres
from app.store.database import Connection, Database
from tests.databases import SERVER, new_database, restart
from tests.world import until

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow


@pytest.fixture
async def store(server: str) -> AsyncIterator[Database]:
    database = Database(new_database(server, "recado"))
    await database.open()
    yield database
    await database.close()


def put(conn: Connection, key: str) -> str:
    conn.execute("INSERT INTO meta VALUES (?, '')", (key,))
    return key


async def keys(store: Database) -> list[str]:
    return [row["key"] for row in await store.all("SELECT key FROM meta ORDER BY key")]


async def end_connections(server: str, state: str) -> None:
    """End the connections of the store that are in a state, as a restart of the server would."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = 'recado' AND state LIKE %s",
            (state,),
        )


async def test_a_function_that_raises_is_undone_alone(store: Database) -> None:
    def fails(conn: Connection) -> None:
        put(conn, "lost")
        raise ValueError

    done = await asyncio.gather(
        store.tx(lambda conn: put(conn, "a")), store.tx(fails), return_exceptions=True
    )
    assert [type(one) for one in done] == [str, ValueError]
    assert await keys(store) == ["a"]


async def test_a_second_server_is_refused(store: Database) -> None:
    with pytest.raises(StoreLockedError, match="in use by another"):
        await Database(store.location).open()


async def test_what_reads_cannot_write(store: Database) -> None:
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await store.all("INSERT INTO meta VALUES ('a', '') RETURNING key")


async def test_a_connection_that_breaks_in_a_transaction_loses_nothing_that_was_said_to_be_kept(
    store: Database, server: str
) -> None:
    await store.tx(lambda conn: put(conn, "before"))

    def broken(conn: Connection) -> None:
        put(conn, "within")
        asyncio.run(end_connections(server, "idle in transaction"))

    with pytest.raises(StoreError, match="nothing was written"):
        await store.tx(broken)
    await store.tx(lambda conn: put(conn, "after"))
    await end_connections(server, "idle%")
    await asyncio.sleep(0.1)
    with pytest.raises(StoreError):  # the writer learns at its next transaction that it has no connection
        await store.tx(lambda conn: put(conn, "unknown"))
    assert await keys(store) == ["after", "before"]


@pytest.mark.skipif(bool(SERVER), reason="ends no server of others")
async def test_what_a_crash_took_at_its_commit_is_not_said_to_be_kept(store: Database, server: str) -> None:
    """PostgreSQL then gives the number of the transaction to another, which commits."""
    held = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND query = 'COMMIT'"
    address = psycopg.conninfo.make_conninfo(server, dbname="recado")
    with psycopg.connect(address, autocommit=True) as other:
        other.execute(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); END'"
        )
        other.execute(
            "CREATE CONSTRAINT TRIGGER held AFTER INSERT ON meta DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION hold()"
        )
        lost = store.tx(lambda conn: put(conn, "lost"))
        await until(lambda: other.execute(held).fetchone(), "the commit to begin")
    await asyncio.to_thread(restart, server, 0.0)
    with psycopg.connect(address, autocommit=True) as other:
        for number in range(5):
            other.execute("INSERT INTO seen VALUES (%s, 0)", (b"%d" % number,))
    with pytest.raises(StoreError, match="nothing was written"):
        await lost
    assert await keys(store) == []


async def test_a_worker_whose_clock_jumps_writes_nothing(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, right = Database(new_database(server, "recado"), shared=True), time.time
    await store.open()
    store.engine.worker = await store.tx(lambda conn: postgres.register_worker(conn, alone=False))
    for seconds in (3600.0, -3600.0):
        monkeypatch.setattr(time, "time", lambda off=seconds: right() + off)
        with pytest.raises(StoreError, match="clock"):
            await store.tx(lambda conn: put(conn, "wrong"))
    monkeypatch.setattr(time, "time", right)
    await store.tx(lambda conn: put(conn, "a"))
    assert await keys(store) == ["a"]
    await store.close()


async def test_a_process_that_stands_still_keeps_nobody_from_writing(store: Database, server: str) -> None:
    frozen = psycopg.connect(psycopg.conninfo.make_conninfo(server, dbname="recado"))
    frozen.execute("SET idle_in_transaction_session_timeout = '1s'")
    frozen.execute("SELECT pg_advisory_xact_lock(7262364)")
    await asyncio.wait_for(store.tx(lambda conn: put(conn, "a")), 10)
    assert await keys(store) == ["a"]
    frozen.close()


async def test_a_process_that_froze_while_it_was_answered_keeps_nobody_from_writing(
    store: Database, server: str
) -> None:
    frozen = psycopg.connect(psycopg.conninfo.make_conninfo(server, dbname="recado"))
    frozen.execute("SELECT pg_advisory_xact_lock(7262364)")
    frozen.pgconn.send_query(b"SELECT repeat('x', 50000000)")  # more than what lies between two processes
    with pytest.raises(StoreError, match="lock timeout"):
        await asyncio.wait_for(store.tx(lambda conn: put(conn, "late")), 40)
    await asyncio.wait_for(store.tx(lambda conn: put(conn, "a")), 5)
    assert await keys(store) == ["a"]
    frozen.close()


def test_a_server_goes_on_after_a_kill(server: str, make_world: Callable[..., Any]) -> None:
    recado, graph = make_world(DATABASE_URL=new_database(server, "whole"))
    graph.say("p0", "note: the gate code is 4711")
    assert "4711" in graph.reply("p0")
    recado.kill()
    recado.start()
    graph.say("p0", "show my notes")
    assert "4711" in graph.reply("p0", 2)
