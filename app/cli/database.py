"""The database for a command: read without its lock, or opened with it."""

import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from app.errors import StoreError
from app.store.database import Database

T = TypeVar("T")

BUSY_SECONDS = 5.0


@asynccontextmanager
async def open_database(path: Path) -> AsyncIterator[Database]:
    """Open the database with its lock, and close it after the block.

    Raise StoreLockedError if another process holds it, StoreError if the file or folder cannot be used.
    """
    database = Database(path)
    try:
        await database.open()
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened: {error}; recado doctor says more") from error
    except OSError as error:
        raise StoreError(
            f"{path.parent} cannot be written: {error.strerror}; make room there, give this user the folder, "
            "or name another in DATABASE_URL"
        ) from error
    try:
        yield database
    finally:
        await database.close()


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


def read_records(path: Path, question: Callable[[sqlite3.Connection], T], *, none: T | None = None) -> T:
    """Return `question(connection)`, or `none` where it is given and there is no database yet.

    Raise StoreError if the file cannot be read.
    """
    if not path.is_file() and none is not None:
        return none
    if not path.is_file():
        raise StoreError(f"there is no database at {path} yet; recado serve makes it")
    try:
        uri = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.row_factory = sqlite3.Row
            return question(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}; recado doctor says more") from error
