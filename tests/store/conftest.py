"""A database file with every migration applied."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.store.migrations import migrate


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "recado.db", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA synchronous=OFF")  # no crash is tested here
        connection.execute("PRAGMA foreign_keys=ON")
        migrate(connection)
        yield connection
