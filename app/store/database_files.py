"""The files of a database: the lock that one server holds, and whether they are still those it opened."""

import fcntl
import os
from pathlib import Path

from app.errors import StoreError, StoreLockedError


class FilesGoneError(StoreError):
    """What would be written now could not be found at the next start."""


class DatabaseFiles:
    """The database's file, its log and the lock beside them, by their names.

    Who tidies up or restores a copy may take them away from under a running server: SQLite goes on with what
    has no name any more, and all of it is gone when the server ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        file = path.resolve()  # by whichever link it is reached, it is one file
        self._log_path = file.with_name(file.name + "-wal")
        self._lock_path = file.with_name(file.name + ".lock")
        self._lock: int | None = None
        self._locked: tuple[int, int] | None = None
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None

    def lock(self) -> None:
        """Takes the lock: SQLite's own would be dropped by closing any handle on the database's file.

        Raises StoreLockedError where another server has it.
        """
        handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise StoreLockedError(
                f"{self._path} is in use by another Recado server (process {holder}); "
                "stop it first, or give this one a DATABASE_URL of its own"
            ) from error
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        if self._lock is not None:
            os.close(self._lock)
        self._lock, self._locked = handle, _identity(handle)

    def let_go(self) -> None:
        """Gives the lock back; what is opened next may be other files."""
        if self._lock is not None:
            os.close(self._lock)
        self._lock = self._locked = self._file = self._log = None

    def opened(self) -> None:
        """Tells that SQLite has opened them: the file is that one for good, the log may be another again."""
        self._file = self._file or _identity(self._path)
        self._log = _identity(self._log_path)

    def check(self) -> None:
        """Raises FilesGoneError where they are others by now; takes the lock again where only that is away.

        What is put back in its place is the same file again.
        """
        for path, known in ((self._path, self._file), (self._log_path, self._log)):
            if _identity(path) != known:
                raise FilesGoneError(
                    f"{path.name} was removed or replaced under the running server; put it back, or restart"
                )
        if self._lock is None or _identity(self._lock_path) != self._locked:
            try:
                self.lock()
            except (OSError, StoreLockedError) as error:
                raise FilesGoneError("its lock was removed, and another server may have it") from error


def _identity(file: Path | int) -> tuple[int, int] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
