"""The database for a command: read without its lock, or opened with it."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import TypeVar

from app.errors import StoreError
from app.i18n import program
from app.store.database import Connection, Database, Location, engine_of

T = TypeVar("T")


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
