"""The database for a command, read without its lock or opened with it; and `recado db`, for it as a whole."""

import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from app.cli.output import command_settings, group, show, show_findings
from app.errors import ConfigurationError, StoreError
from app.i18n import lazy, program
from app.ops import Finding, fail, ok, warn
from app.store.database import Connection, Database, Location, engine_of, exists, scalar
from app.store.migrations import UNFINISHED, migrations
from app.store.moving import move as move_rows

T = TypeVar("T")

commands = group()
db_commands = group(help="The database as a whole: move, upgrade, check.")
commands.add_typer(db_commands, name="db")


@asynccontextmanager
async def open_database(location: Location, *, shared: bool = False) -> AsyncIterator[Database]:
    """Open the database with its lock, and close it after the block; `shared` beside other processes.

    Raise StoreLockedError if another process holds it, StoreError if it cannot be used.
    """
    database = Database(location, shared=shared)
    with opening(location):
        await database.open()
    try:
        yield database
    finally:
        await database.close()


@contextmanager
def opening(location: Location) -> Iterator[None]:
    """Raise StoreError for what goes wrong in the block because the database cannot be opened."""
    try:
        yield
    except engine_of(location).errors as error:
        raise StoreError(
            f"{shown(location)} cannot be opened: {error}; {program()} doctor says more"
        ) from error
    except OSError as error:
        raise StoreError(
            f"the folder of {shown(location)} cannot be written: {error.strerror}; make room there, "
            "give this user the folder, or name another in DATABASE_URL"
        ) from error


def make_data_folder(folder: Path) -> None:
    """Create the data folder if it is missing. Raise StoreError if nothing can be kept in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise StoreError(
            f"{folder} cannot hold the data: {error.strerror or error}; give this user the folder, "
            "or name another in DATA_DIR"
        ) from error


def read_records(location: Location, question: Callable[[Connection], T], *, none: T | None = None) -> T:
    """Return `question(connection)`, or the given `none` while there is no database. Raise StoreError."""
    engine = engine_of(location)
    try:
        if not engine.exists():
            if none is not None:
                return none
            raise StoreError(f"there is no database at {shown(location)} yet; {program()} serve makes it")
        with closing(engine.connect_to_read()) as connection:
            return question(connection)
    except (engine.errors, OSError) as error:
        raise StoreError(
            f"{shown(location)} cannot be read: {error}; {program()} doctor says more, and an older one is"
            f" brought up to date by a start or {program()} db upgrade"
        ) from error


def shown(location: Location) -> str:
    """Return where a database is, without a password."""
    return str(location).rpartition("@")[2]


@db_commands.command()
def move(
    to: Annotated[str, typer.Option(metavar="ADDRESS", help="postgresql://USER@HOST/NAME, or a file.")],
) -> None:
    """Copy everything into an empty database, and compare both sides.

    The server must be stopped. A move that was cut off goes on with the same command.
    """
    settings = command_settings()
    url = to if "://" in to or to.startswith("postgres") else f"sqlite:///{Path(to).expanduser().absolute()}"
    moved = settings.model_copy(update={"database_url": url})
    try:
        source, target = settings.database, moved.database
    except ValueError as error:
        raise ConfigurationError(str(error).replace("DATABASE_URL", "--to")) from None
    if target == source:
        raise StoreError("both are the same database")
    read_records(source, _step)
    with opening(source), opening(target):
        move_rows(source, target, show)
    address = re.sub(r"(://[^:@/]*):[^@/]+@", r"\1:PASSWORD@", url)
    hidden = " (with the password in place of PASSWORD)" if "PASSWORD@" in address else ""
    show(
        f"\nEverything is in {shown(target)} now. Write into .env{hidden}, then start the server:\n"
        f"DATABASE_URL={address}\nDATA_DIR={settings.data_dir.absolute()}\n"
        f"{shown(source)} was left as it is: keep it as a backup, and let no server run on it."
    )


@db_commands.command()
def upgrade() -> None:
    """Bring the database to the newest step, as the next start of the server would."""
    location = command_settings().database
    before = read_records(location, _step)
    engine = engine_of(location)
    try:
        with opening(location):
            engine.prepare()
    finally:
        engine.unlock()
    steps = migrations()
    if before == len(steps):
        show(f"{shown(location)} is at the newest step already, {before}")
        return
    for name, _ in steps[before:]:
        show(f"applied {name}")
    show(f"{shown(location)} was brought from step {before} to {len(steps)}")


@db_commands.command()
def check() -> None:
    """Look for missing steps and for damage; status 1 if there is some. Safe while the server runs."""
    location = command_settings().database
    show_findings(read_records(location, lambda conn: list(state_of(conn, location))))


def state_of(conn: Connection, location: Location) -> Iterator[Finding]:
    """Report what is wrong with a database, or that it is sound. Takes seconds where it is large."""
    steps = _step(conn)
    damage = _damage(conn) if isinstance(location, Path) else []
    values = {"path": shown(location), "schema": steps, "known": len(migrations())}
    for fault in damage:
        fact = lazy("{path} is damaged: {damage}", damage=fault, **values)
        yield fail("database", fact, lazy("stop the server, keep it aside and restore a backup"))
    if exists(conn, "SELECT 1 FROM schema_version WHERE version = ?", UNFINISHED):
        fact = lazy("a move into {path} was not finished", **values)
        yield fail("database", fact, lazy("go on with: {recado} db move"))
    elif steps > len(migrations()):
        fact = lazy("{path} has schema {schema}, this version of Recado knows {known}", **values)
        yield fail("database", fact, lazy("start the newer version that wrote it"))
    elif steps < len(migrations()):
        fact = lazy("{path} has schema {schema}, brought to {known} at the next start", **values)
        yield warn("database", fact, lazy("or with: {recado} db upgrade"))
    elif not damage:
        yield ok("database", lazy("{path} is sound, schema {schema}", **values))


def _damage(conn: Connection) -> list[str]:
    """Return what is wrong with SQLite's file, a line each."""
    faults = [str(line) for (line,) in conn.execute("PRAGMA integrity_check(5)") if line != "ok"]
    lost = Counter((row["table"], row["parent"]) for row in conn.execute("PRAGMA foreign_key_check"))
    faults += [f"{n:,} of {table} refer to {parent} that are gone" for (table, parent), n in lost.items()]
    return faults


def _step(conn: Connection) -> int:
    return int(scalar(conn, "SELECT max(version) FROM schema_version") or 0)
