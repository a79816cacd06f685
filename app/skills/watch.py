"""What a look at the disk saw, and whether it still holds: told by the kernel, so that nobody need look."""

import errno
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
    """Whoever looks asks it for stamps and entries, between `begin` and `confirm`.

    A look holds where the one before it found the same paths, and nothing of them has changed since. One at a
    time looks; meanwhile nobody asks whether it holds. After `seconds` it holds no more.
    """

    def __init__(self, seconds: float = LOOK_AGAIN_SECONDS) -> None:
        self._seconds = seconds
        self._noted: set[str] = set()
        self._saw_all = True
        self._followed: frozenset[str] | None = None
        self._inotify: Inotify | None = None
        self._holds_until = self._tries_at = 0.0
        self._closed = False

    def begin(self) -> None:
        """Nothing holds until the look that begins now is confirmed."""
        self._holds_until, self._noted, self._saw_all = 0.0, set(), True

    def stamp(self, path: str) -> Stamp:
        """When a file and its inode were changed, in nanoseconds, its length and inode; None where there is
        none.

        `cp -p` and rsync keep the first of the times; nobody sets the second.
        """
        self._noted.add(path)
        try:
            status = os.stat(path)
        except OSError as error:
            self._fail(error)
            return None
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """What is in a folder, by name, without what is hidden; nothing where it cannot be read."""
        self._noted.add(folder)
        try:
            with os.scandir(folder) as entries:
                found = sorted((one for one in entries if one.name[0] != "."), key=lambda one: one.name)
        except OSError as error:
            self._fail(error)
            return []
        self._noted.update(one.path for one in found if one.is_symlink())
        return found

    def stamps_below(self, folder: Path, file: str = "") -> dict[str, Stamp]:
        """By name the stamps of such a file in each folder there, or of what is there; hidden ones not."""
        paths = {one.name: f"{one.path}/{file}" if file else one.path for one in self.entries(str(folder))}
        found = {name: self.stamp(path) for name, path in paths.items()}
        return {name: at for name, at in found.items() if at is not None}

    def confirm(self) -> None:
        """Ends a look, at all that was asked for since `begin`. Blocks briefly; never raises."""
        if self._closed:
            return
        noted = frozenset(self._noted)
        if self._inotify is not None and noted == self._followed and not self._inotify.has_news():
            if self._saw_all:
                self._holds_until = time.monotonic() + self._seconds
        elif self._inotify is not None or time.monotonic() >= self._tries_at:
            self._follow(noted)

    def holds(self) -> bool:
        """Whether another look would see what the last one saw. Never waits."""
        if time.monotonic() >= self._holds_until or self._inotify is None:
            return False
        if self._inotify.has_news():
            self._holds_until, self._followed = 0.0, None
            return False
        return True

    def close(self) -> None:
        """Nothing holds any more, whoever still looks."""
        self._closed, self._holds_until = True, 0.0

    def _fail(self, error: OSError) -> None:
        """What is not there is a finding; what could not be looked at may be there at the next look."""
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            self._saw_all = False

    def _follow(self, paths: frozenset[str]) -> None:
        self._inotify = None  # closes it: the kernel has no two to give away
        try:
            from app.skills.inotify import Inotify  # late: only a server that runs listens

            self._inotify, self._followed = Inotify(paths), paths
        except (ImportError, OSError) as error:
            if not self._tries_at:
                log.info("each message looks at the files of skills and servers: %s", error)
            self._tries_at = time.monotonic() + _TRY_AGAIN_SECONDS
