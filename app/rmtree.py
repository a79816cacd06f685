"""Removing folders, however deep and with whatever permissions."""

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

PASSES = 5


def remove(folder: str) -> None:
    """Remove a folder, however deep; what cannot be removed stays. Blocks.

    Several passes, because a process that is just ending may still write into it.
    """
    for _ in range(PASSES):
        _empty(folder)
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return
        except OSError:
            continue


def rmtree(folder: Path) -> None:
    """Remove a folder, if there is one. Raise OSError if something of it stays."""
    remove(str(folder))
    if folder.exists():
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))


def _empty(top: str) -> None:
    """Empty a folder. Inner folders are first moved up, so that no path grows long."""
    numbers, waiting = count(), [top]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError):
            _open_up(folder)
            for entry in list(os.scandir(folder)):
                with suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.path)
                        continue
                    _open_up(entry.path)  # moving a folder needs write permission in it
                    moved = f"{top}/.{os.getpid()}-{next(numbers)}"
                    os.rename(entry.path, moved)
                    waiting.append(moved)
        if folder != top:
            with suppress(OSError):
                os.rmdir(folder)


def _open_up(folder: str) -> None:
    """Give ourselves access to a folder, but never follow a link that has taken its place."""
    if not hasattr(os, "O_PATH"):
        os.chmod(folder, 0o700, follow_symlinks=False)
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    finally:
        os.close(descriptor)
