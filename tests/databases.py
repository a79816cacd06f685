"""Databases for tests: files, or databases of the PostgreSQL server of TEST_DATABASE_URL."""

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from app.store.database import Location, engine_of
from app.store.migrations import migrations
from app.store.sqlite import SQLite

# "postgresql://…": tests with a database of their own use one there in place of an SQLite file
SERVER = os.environ.get("TEST_DATABASE_URL", "")
_MAKES_DATABASE = 1

of_sqlite = pytest.mark.skipif(bool(SERVER), reason="about SQLite")


def database_at(file: Path) -> Location:
    """Return a database with every migration applied: this file, or one of the server that stands for it."""
    if not SERVER:
        return file_at(file)
    import psycopg
    from psycopg.conninfo import make_conninfo

    template, name = f"template_{_hash(str(migrations()))}", f"test_{_hash(str(file))}"
    with psycopg.connect(SERVER, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_MAKES_DATABASE,))
        known = {one for (one,) in connection.execute("SELECT datname FROM pg_database")}
        if template not in known:
            connection.execute(f"CREATE DATABASE {template} TEMPLATE template0")
            engine = engine_of(make_conninfo(SERVER, dbname=template))
            engine.prepare()
            engine.unlock()
        if name not in known:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return make_conninfo(SERVER, dbname=name)


def file_at(file: Path) -> Path:
    """Return an SQLite file with every migration applied, at this path."""
    return file if file.exists() else Path(shutil.copy(_empty_file(), file))


@cache
def _empty_file() -> Path:
    engine = SQLite(Path(tempfile.mkdtemp(prefix="empty")) / "recado.db")
    engine.prepare()
    engine.unlock()
    return engine.path


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
