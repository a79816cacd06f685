"""Paths that cannot leave a folder, and files opened there without following a link."""

import errno
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_LONGEST_NAME = 255
_DEEPEST = 32  # folders inside each other that are made: what walks through them must come to an end
_DRIVE = re.compile(r"^[A-Za-z]:")


class PathTraversalError(ValueError):
    """A path that is not inside the workspace, or cannot be a path."""


def validate_path(path: str | Path, workspace_root: str | Path) -> Path:
    """Return the real path of `path` inside the workspace, with every link followed.

    Raises PathTraversalError for what leads out of it: `..`, another absolute path, a link, and for what
    is no path at all: a NUL byte, a name of more than 255 bytes.
    """
    text = str(path)
    if "\0" in text:
        raise PathTraversalError("the path holds a NUL byte")
    parts = text.replace("\\", "/").split("/")
    if ".." in parts:
        raise PathTraversalError(f"{shown(text)}: '..' is not allowed; name the path from the workspace on")
    if _DRIVE.match(text) or (text.startswith("\\") and os.sep == "/"):
        raise PathTraversalError(f"{shown(text)}: a path of another machine; name it from the workspace on")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise PathTraversalError(f"{shown(text)}: a name in it is longer than {_LONGEST_NAME} bytes")
    try:
        root = Path(workspace_root).resolve()
        real = (root / text).resolve()
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            real.stat()  # where links lead to each other: since Python 3.13 `resolve` leaves them as they are
    except (OSError, RuntimeError, UnicodeError) as error:  # links in a loop, a path beyond the limit
        raise PathTraversalError(f"{shown(text)}: {type(error).__name__} while it was looked up") from None
    if not real.is_relative_to(root):
        raise PathTraversalError(f"{shown(text)} leads out of the workspace")
    return real


@contextmanager
def open_parent(
    home: Path,
    path: str,
    create: bool = False,
    *,
    link_itself: bool = False,
    is_closed: Callable[[Path], bool] = lambda path: False,
) -> Iterator[tuple[int, str]]:
    """Open the file's real folder without following a link; return its descriptor and the file's name.

    Of a link these are of where it leads, or with `link_itself` its own. What is closed is refused as
    what lies outside: a link may lead elsewhere than it did at an earlier look.
    The path is resolved first, so a link met on the way was put there in between: it is refused.
    """
    real = validate_path(path, home)
    root = home.resolve()
    if real == root:
        raise IsADirectoryError(f"{shown(path)} is a folder")
    if link_itself:
        real = validate_path(Path(path).parent, home) / Path(path).name
    if is_closed(real):
        raise PathTraversalError(f"{shown(path)} is the assistant's own: no file of the workspace")
    parts = real.relative_to(root).parts
    if create and len(parts) > _DEEPEST:
        raise PathTraversalError(f"{shown(path)}: more than {_DEEPEST} folders inside each other")
    if create:
        root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            if create:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=descriptor)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, real.name
    finally:
        os.close(descriptor)


def open_regular(name: str, flags: int, parent: int | None) -> int:
    """Open a plain file: no link, folder, pipe or device."""
    descriptor = os.open(name, flags | os.O_NOFOLLOW, 0o644, dir_fd=parent)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise IsADirectoryError(errno.EISDIR, "it is not a plain file", name)


def open_to_read(name: str, parent: int | None = None) -> IO[bytes]:
    """Open a plain file; opening a pipe would wait for its other end, but for O_NONBLOCK."""
    return os.fdopen(open_regular(name, os.O_RDONLY | os.O_NONBLOCK, parent), "rb")


def exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def append(name: str, data: bytes, parent: int, *, new_line: bool) -> None:
    """Append to a file; with `new_line` on a line of its own."""
    descriptor = open_regular(name, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, parent)
    with os.fdopen(descriptor, "r+b") as file:
        if new_line and file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            data = data if file.read(1) == b"\n" else b"\n" + data
        file.write(data)


def replace(name: str, data: bytes, parent: int) -> None:
    """Write beside the file, then take its place: a crash leaves the old one whole."""
    temporary = f".{secrets.token_hex(8)}.tmp"
    descriptor = open_regular(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        os.unlink(temporary, dir_fd=parent)
        raise


def keep_beside(name: str, parent: int) -> bool:
    """Keep what a file holds under its name with .bak too; return False where that cannot be done."""
    temporary, place = f".{secrets.token_hex(8)}.tmp", {"src_dir_fd": parent, "dst_dir_fd": parent}
    try:
        os.link(name, temporary, follow_symlinks=False, **place)
        os.replace(temporary, f"{name}.bak", **place)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        return False
    return True


def entries(
    folder: Path, recursive: bool, is_closed: Callable[[Path], bool] = lambda path: False
) -> Iterator[os.DirEntry[str]]:
    """Yield entries by name, those of a folder right after it; no link is followed, no closed place named.

    Hashes of installed packages stand on this order.
    """
    waiting = _listed(folder)
    while waiting:
        entry = waiting.pop()
        if not is_closed(Path(entry.path)):
            yield entry
            if recursive and entry.is_dir(follow_symlinks=False):
                waiting += _listed(entry.path)


def _listed(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, the first by name at the end."""
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name, reverse=True)


def shown(path: str) -> str:
    """Return a path as a message names it."""
    return repr(path if len(path) <= 100 else path[:100] + "…")
