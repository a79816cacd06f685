"""The kernel's notices of changed files, see inotify(7): on file systems where it knows of every change."""

import ctypes
import errno
import os
import struct
import sys
import weakref
from collections.abc import Iterable, Iterator

_MODIFY, _ATTRIB, _CLOSE_WRITE, _DELETE_SELF, _MOVE_SELF = 0x2, 0x4, 0x8, 0x400, 0x800
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _ONLYDIR = 0x40, 0x80, 0x100, 0x200, 0x1000000
_OF_FILE = _MODIFY | _ATTRIB | _CLOSE_WRITE | _DELETE_SELF | _MOVE_SELF
_OF_FOLDER = _ONLYDIR | _ATTRIB | _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO | _DELETE_SELF | _MOVE_SELF
"""Not what is written to its files: a database in it would be heard at each commit."""
_EVENT = struct.Struct("iIII")
_READ_BYTES, _READS = 16_384, 2
"""A thousand short notices: a millisecond."""
_MOST_LINKS = 40
_LOCAL = {
    0xEF53,  # ext2, ext3, ext4
    0x58465342,  # XFS
    0x9123683E,  # Btrfs
    0xCA451A4E,  # bcachefs
    0xF2F52010,  # F2FS
    0x2FC12FC1,  # ZFS
    0x01021994,  # tmpfs
    0x794C7630,  # overlayfs
}
"""`f_type` of statfs(2). Nobody writes to these past this kernel; in shares of a network or of a virtual
machine's host others do, and nothing is heard of it."""


class Inotify:
    """Listens for changes of what these paths lead to: of its content, or the names in it, and of each folder
    and link on the way there; where that ends, for what would go on.

    Raises OSError where changes may go unheard, or no more can be listened for.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        if sys.platform != "linux":  # others may have it, with structures of their own
            raise OSError(errno.ENOSYS, "inotify is of Linux only")
        self._libc = ctypes.CDLL(None, use_errno=True)
        descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if descriptor < 0:
            raise _failed("inotify_init1")
        weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self._folders: dict[str, int | None] = {}
        """The watches on the way to what is followed, by path."""
        self._names: dict[int, set[str] | None] = {}
        """By watch: the names in a folder that matter, None for all of them."""
        for path in paths:
            self._follow(path)

    def has_news(self) -> bool:
        """Whether anything changed of what is followed, as far as was not asked before. Never waits."""
        for _ in range(_READS):
            try:
                notices = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return False
            if any(self._matters(watch, name) for watch, name in _events(notices)):
                return True
        return True  # there is no end of what does not matter

    def _follow(self, path: str) -> None:
        at, links = "/", 0
        left = os.path.join(os.getcwd(), path).split("/")[::-1]
        while left:
            if not (name := left.pop()):
                continue
            if not self._listen(at, name):
                return
            at = os.path.join(at, name)
            if (target := _target(at)) is None:
                continue
            if (links := links + 1) > _MOST_LINKS:
                return  # in circles, until one of them leads elsewhere
            left += target.split("/")[::-1]
            at = "/" if target.startswith("/") else os.path.dirname(at)
        if (watch := self._watch(at)) is not None:
            self._names[watch] = None

    def _listen(self, folder: str, name: str) -> bool:
        """For a name in a folder; False where there is no such folder."""
        if folder not in self._folders:
            self._folders[folder] = self._watch(folder)
        if (watch := self._folders[folder]) is None:
            return False
        if (names := self._names.setdefault(watch, set())) is not None:
            names.add(name)
        return True

    def _watch(self, path: str) -> int | None:
        """The number of the watch on what a path leads to; None where there is nothing."""
        where = os.fsencode(path)
        status = ctypes.create_string_buffer(512)
        if self._libc.statfs(where, status):
            _require_nothing_there(path)
            return None
        if ctypes.c_long.from_buffer(status).value & 0xFFFFFFFF not in _LOCAL:
            raise OSError(errno.EOPNOTSUPP, "changes may come past this kernel", path)
        for mask in (_OF_FOLDER, _OF_FILE):
            watch: int = self._libc.inotify_add_watch(self._descriptor, where, mask)
            if watch >= 0:
                return watch
            _require_nothing_there(path)  # as a folder, then at all
        return None

    def _matters(self, watch: int, name: str) -> bool:
        names = self._names.get(watch)
        return not name or names is None or name in names


def _events(notices: bytes) -> Iterator[tuple[int, str]]:
    """Watch and name of each, "" for what a notice says of the watched itself or of all (watch -1)."""
    start = 0
    while start < len(notices):
        watch, _, _, length = _EVENT.unpack_from(notices, start)
        start += _EVENT.size + length
        yield watch, os.fsdecode(notices[start - length : start].rstrip(b"\0"))


def _target(path: str) -> str | None:
    """Where a link leads to; None for what is none."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def _require_nothing_there(path: str) -> None:
    """Raises OSError where the last call failed for any other reason."""
    if ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR):
        raise _failed(path)


def _failed(what: str) -> OSError:
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
