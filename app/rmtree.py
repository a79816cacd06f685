"""Folders removed whole, whatever was made in them."""

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

PASSES = 5


def remove(folder: str) -> None:
    """Removes a folder, however deep it goes; what cannot be removed stays. Blocks.

    More than once where something came in meanwhile: another may be at it too, or code that dies just now.
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
    """The same; raises OSError where something of it stays. No error where there is none."""
    remove(str(folder))
    if folder.exists():
        raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), str(folder))


def _empty(top: str) -> None:
    """Each folder in it is first moved up: no path grows long, and nothing recurses."""
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
                    _open_up(entry.path)  # who may not write into a folder may not move it either
                    moved = f"{top}/.{os.getpid()}-{next(numbers)}"
                    os.rename(entry.path, moved)
                    waiting.append(moved)
        if folder != top:
            with suppress(OSError):
                os.rmdir(folder)


def _open_up(folder: str) -> None:
    """Lets us into a folder, but into none that a link leads to which is in its place by now."""
    if not hasattr(os, "O_PATH"):
        os.chmod(folder, 0o700, follow_symlinks=False)
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    finally:
        os.close(descriptor)
