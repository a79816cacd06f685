"""A database file with every migration applied, and one in which a turn runs."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.rows import begun, conversation, inbound, take


@pytest.fixture
def conn(tmp_path: Path, empty_database: Path) -> Iterator[sqlite3.Connection]:
    path = shutil.copy(empty_database, tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous=OFF")  # no crash is tested here
        connection.execute("PRAGMA foreign_keys=ON")
        yield connection


@pytest.fixture
def turn(conn: sqlite3.Connection) -> sqlite3.Connection:
    """The turn t1 runs."""
    where = conversation(conn)
    take(conn, inbound("w1"))
    begun(conn, where, "t1")
    return conn
