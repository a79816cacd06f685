"""A database with every migration applied, one in which a turn runs, and a server of PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.store.database import Connection, engine_of
from tests.databases import SERVER, database_at, postgres
from tests.store.rows import begun, conversation, inbound, take


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[Connection]:
    engine = engine_of(database_at(tmp_path / "recado.db"))
    engine.prepare()
    with closing(engine.connect()) as connection:
        if not SERVER:
            connection.execute("PRAGMA synchronous=OFF")  # no crash is tested here
        yield connection
    engine.unlock()


@pytest.fixture
def turn(conn: Connection) -> Connection:
    """The turn t1 runs."""
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    return conn


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a server, whose database is empty."""
    with postgres() as address:
        yield address
