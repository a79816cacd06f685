"""What a look at the disk saw, and whether it still holds: told by the kernel, so that nobody need look."""

import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.skills.inotify import Inotify

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int, int] | None

LOOK_AGAIN_SECONDS = 10.0
"""After that there is another look all the same: for what no kernel tells, such as a file system that is
mounted over a folder."""
_TRY_AGAIN_SECONDS = 60.0


class Watch:
    """Whoever looks says at what; `confirm` ends a look.

    A look holds where the one before it found the same paths, and nothing of them has changed since. One at a
    time looks; meanwhile nobody asks whether it holds. After `seconds` it holds no more.
    """

    def __init__(self, seconds: float = LOOK_AGAIN_SECONDS) -> None:
        self._seconds = seconds
        self._noted: set[str] = set()
        self._followed: frozenset[str] | None = None
        self._inotify: Inotify | None = None
        self._holds_until = self._tries_at = 0.0

    def note(self, path: str) -> None:
        """Says that it matters what is there: a file's content, a folder's names, and where there is none."""
        self._noted.add(path)

    def stamp(self, path: str) -> Stamp:
        """When a file and its inode were changed, in nanoseconds, its length and inode; None where there is
        none.

        `cp -p` and rsync keep the first of the times; nobody sets the second.
        """
        self._noted.add(path)
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def stamps_below(self, folder: Path, file: str = "") -> dict[str, Stamp]:
        """By name the stamps of such a file in each folder there, or of what is there; hidden ones not."""
        self.note(str(folder))
        try:
            with os.scandir(folder) as entries:
                paths = {one.name: one.path for one in entries if not one.name.startswith(".")}
        except OSError:
            return {}
        found = {name: self.stamp(f"{path}/{file}" if file else path) for name, path in paths.items()}
        return {name: at for name, at in found.items() if at is not None}

    def confirm(self) -> None:
        """Ends a look that saw all that was noted. Blocks briefly."""
        noted, self._noted = frozenset(self._noted), set()
        self._holds_until = 0.0
        if self._inotify is not None and noted == self._followed and not self._inotify.has_news():
            self._holds_until = time.monotonic() + self._seconds
        elif self._inotify is not None or time.monotonic() >= self._tries_at:
            self._follow(noted)

    def holds(self) -> bool:
        """Whether another look would see what the last one saw. Never blocks."""
        if time.monotonic() >= self._holds_until or self._inotify is None:
            return False
        if self._inotify.has_news():
            self._holds_until, self._followed = 0.0, None
            return False
        return True

    def close(self) -> None:
        """Listens no more."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify = self._followed = None

    def _follow(self, paths: frozenset[str]) -> None:
        from app.skills.inotify import Inotify  # late: only a server that runs listens

        self.close()
        try:
            self._inotify, self._followed = Inotify(), paths
            for path in paths:
                self._inotify.follow(path)
        except OSError as error:
            log.debug("each message looks at the files: %s", error)
            self.close()
            self._tries_at = time.monotonic() + _TRY_AGAIN_SECONDS
