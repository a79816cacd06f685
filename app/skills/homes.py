"""The homes of workers: a folder for each, empty at first, gone with it whatever was made in there."""

import os
import tempfile
import threading
from contextlib import suppress
from itertools import count
from pathlib import Path

PASSES = 5


def make_home(homes: Path | None) -> str:
    """A new home in a folder of the server's, or where temporary files go. Raises OSError."""
    return os.path.abspath(tempfile.mkdtemp(prefix="recado-worker-", dir=homes))


def clear(homes: Path) -> None:
    """Makes the folder, and begins to remove what a server that was killed left in it. Raises OSError."""
    homes.mkdir(mode=0o700, parents=True, exist_ok=True)
    left = [str(path) for path in homes.iterdir()]
    threading.Thread(target=lambda: list(map(remove, left)), daemon=True).start()


def remove(home: str) -> None:
    """Removes a folder, however deep it goes; what cannot be removed stays. Blocks.

    More than once where something came in meanwhile: another may be at it too, or code that dies just now.
    """
    for _ in range(PASSES):
        _empty(home)
        try:
            os.rmdir(home)
        except FileNotFoundError:
            return
        except OSError:
            continue


def _empty(home: str) -> None:
    """Each folder in it is first moved up: no path grows long, and nothing recurses."""
    numbers, waiting = count(), [home]
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
                    moved = f"{home}/.{os.getpid()}-{next(numbers)}"
                    os.rename(entry.path, moved)
                    waiting.append(moved)
        if folder != home:
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
