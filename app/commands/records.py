"""The database for a command: read as it stands without its lock, or opened with it."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiosqlite

from app.errors import StoreError
from app.store.database import Database
from app.store.space import is_full

T = TypeVar("T")

BUSY_SECONDS = 5.0


class Records(Database):
    """Fulfils the reading half of `Database`; `tx` refuses."""

    async def open(self) -> None:
        """Opens the file for reading. Raises StoreError where there is none, or none of ours."""
        if not self.path.is_file():
            raise StoreError(none_yet(self.path))
        self._reader = await aiosqlite.connect(
            read_only(self.path), uri=True, isolation_level=None, timeout=BUSY_SECONDS
        )
        self._reader.row_factory = sqlite3.Row


async def open_database(path: Path) -> Database:
    """The database with its lock. Raises StoreLockedError where another holds it, StoreError for a file
    or folder that cannot be used."""
    database = Database(path)
    try:
        await database.open()
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened: {error}; recado doctor says more") from error
    except OSError as error:
        cure = (
            "make room there"
            if is_full(error)
            else "give this user the folder, or name another in DATABASE_URL"
        )
        raise StoreError(f"{path.parent} cannot be written: {error.strerror}; {cure}") from error
    return database


def make_data_folder(folder: Path) -> None:
    """Makes the data folder where it is missing. Raises StoreError where nothing could be kept in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        reason = "it is no folder"
    except OSError as error:
        reason = error.strerror or str(error)
    else:
        if os.access(folder, os.W_OK | os.X_OK):
            return
        reason = "this user may not write there"
    raise StoreError(
        f"{folder} cannot hold the data: {reason}; give this user the folder, or name another in DATA_DIR"
    )


def read_records(path: Path, question: Callable[[sqlite3.Connection], T]) -> T:
    """What `question(connection)` gives. Raises StoreError where the file cannot be read."""
    if not path.is_file():
        raise StoreError(none_yet(path))
    try:
        with closing(sqlite3.connect(read_only(path), uri=True, timeout=BUSY_SECONDS)) as connection:
            connection.row_factory = sqlite3.Row
            return question(connection)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}; recado doctor says more") from error


def read_only(path: Path) -> str:
    """The file as an address that SQLite opens for reading only."""
    return f"file:{quote(str(path))}?mode=ro"


def none_yet(path: Path) -> str:
    """What is said of a database that nobody has made."""
    return f"there is no database at {path} yet; recado serve makes it"
