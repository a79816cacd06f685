"""Files that several programs write: one at a time."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import RecadoError

LOCK_SECONDS = 10.0
_PAUSE = 0.02


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else changes the file meanwhile who asks so too; makes its folder.

    Raises RecadoError where another keeps it for long, OSError where the lock beside it cannot be made.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    give_up = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > give_up:
                raise RecadoError(f"another program is changing {path}; try again") from None
            time.sleep(_PAUSE)
