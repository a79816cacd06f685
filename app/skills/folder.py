"""The files of a skill's folder: found without following links out of it, read without ever waiting."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from app.skills.manifest import ManifestError
from app.skills.watch import Stamp, Watch

MAX_FILES = 256
MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
LARGEST = f"{MAX_FILES} files and folders and {MAX_BYTES // 1024**2} MiB in all"
KNOWN_FILES = ("SKILL.md", "scripts/tools.py", "assets/phrases.yaml", "mcp.json")
NOT_COUNTED = {"__pycache__", "node_modules"}
_SETTLED_NS = 1_000_000_000
"""File times are as coarse as the kernel's ticks, or a second in some file systems."""

Signature = tuple[Stamp, ...]
"""The stamps of the files that make a skill: other files, other signature."""


class Signatures:
    """Signatures of folders, at the price of a few file times for those it saw before."""

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch or Watch()
        self._stamp = self._watch.stamp
        self._listed: dict[str, tuple[Stamp, list[str], list[str]]] = {}

    def of(self, folder: str) -> Signature:
        """SKILL.md's stamp is the first."""
        signature = [self._stamp(f"{folder}/SKILL.md"), self._stamp(f"{folder}/mcp.json")]
        for name, wanted in (("scripts", ".py"), ("assets", ".yaml"), ("references", None)):
            self._add(signature, f"{folder}/{name}", wanted)
        return tuple(signature)

    def _add(self, signature: list[Stamp], path: str, wanted: str | None) -> None:
        """A folder and those below it, which change with what comes and goes, and the files that end so."""
        changed = self._stamp(path)
        signature.append(changed)
        if changed is None or len(signature) > MAX_FILES:  # a skill of more is refused
            return
        listed = self._listed.get(path)
        if listed is None or listed[0] != changed:
            listed = self._listed[path] = (_settled(changed), *self._listing(path, wanted))
        signature += map(self._stamp, listed[2])
        for below in listed[1]:
            self._add(signature, below, wanted)

    def _listing(self, folder: str, wanted: str | None) -> tuple[list[str], list[str]]:
        """The folders in it, and the files that end so."""
        counted = [one for one in self._watch.entries(folder) if one.name not in NOT_COUNTED][:MAX_FILES]
        files = [one.path for one in counted if wanted is not None and one.path.endswith(wanted)]
        return [one.path for one in counted if one.is_dir(follow_symlinks=False)], files


def walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Files and folders below it by name, each folder before what it holds; hidden ones and caches are left
    out, links are not followed. Raises OSError for what cannot be read or is nested beyond reason."""
    waiting = [(folder, MAX_DEPTH)]
    while waiting:
        path, depth = waiting.pop()
        if not depth:
            raise OSError(errno.ELOOP, f"folders are nested more than {MAX_DEPTH} deep", folder)
        for entry in _entries(path):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, depth - 1))


def is_skill(folder: str | Path) -> bool:
    """Whether there is a SKILL.md; one that is not to be seen counts, so that its folder is named."""
    try:
        os.lstat(f"{folder}/SKILL.md")
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def read_file(folder: Path, name: str) -> bytes:
    """A file of the folder. Raises ManifestError for a link that leads out of it, and for what is no file."""
    if _leads_out(str(folder), name):
        raise ManifestError(f"{name} is a link that leads out of the skill's folder; copy the file into it")
    try:
        return read_regular(f"{folder}/{name}")
    except OSError as error:
        raise ManifestError(f"{name} cannot be read: {error.strerror or error}") from error


def read_regular(path: str | Path) -> bytes:
    """A plain file's bytes. Raises OSError for a pipe, device or socket, which might never answer."""
    _require_regular(os.stat(path).st_mode)  # opening a device may do something already
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        _require_regular(os.fstat(file.fileno()).st_mode)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"it has more than {MAX_BYTES // 1024**2} MiB")
    return content


def code_hash(folder: Path) -> str:
    """sha256 of all that lies in `scripts`, by name: the code's, whenever and however it came there."""
    found = hashlib.sha256()
    for entry in walk(f"{folder}/scripts"):
        content = b"" if entry.is_dir() else _readable(entry.path)
        name = os.fsencode(os.path.relpath(entry.path, folder))
        found.update(b"%s\0%d\0%s" % (name, len(content), content))
    return found.hexdigest()


def has_same_files(folder: Path, other: Path) -> bool:
    """Whether two folders hold the same, byte by byte; False where one cannot be read."""
    try:
        names = [[os.path.relpath(one.path, root) for one in walk(str(root))] for root in (folder, other)]
        return names[0] == names[1] and all(_is_same(folder / name, other / name) for name in names[0])
    except OSError:
        return False


def _is_same(one: Path, other: Path) -> bool:
    if one.is_dir() or other.is_dir():
        return one.is_dir() and other.is_dir()
    return one.stat().st_size == other.stat().st_size and read_regular(one) == read_regular(other)


def check_size(folder: Path) -> None:
    """Raises ManifestError for a folder with too much in it."""
    size = 0
    for files, entry in enumerate(walk(str(folder)), start=1):
        if not entry.is_dir(follow_symlinks=False):
            size += entry.stat(follow_symlinks=False).st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise ManifestError(f"the folder is too big: at most {LARGEST}")


def _readable(path: str) -> bytes:
    """A file's bytes; none of what the code cannot import either."""
    try:
        return read_regular(path)
    except OSError:
        return b""


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        shown = (one for one in entries if not one.name.startswith(".") and one.name not in NOT_COUNTED)
        return sorted(shown, key=lambda one: one.name)


def _settled(changed: tuple[int, int, int, int]) -> Stamp:
    """A folder's stamp where whatever comes later shows in it, else None: in the moment of a change another
    one leaves no trace."""
    return changed if time.time_ns() - max(changed[0], changed[1]) >= _SETTLED_NS else None


def _leads_out(folder: str, name: str) -> bool:
    """Whether a file of the folder is elsewhere once the links on its way are followed."""
    steps = name.split("/")
    if not any(os.path.islink(f"{folder}/{'/'.join(steps[: n + 1])}") for n in range(len(steps))):
        return False
    return not os.path.realpath(f"{folder}/{name}").startswith(os.path.realpath(folder) + os.sep)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError("it is no plain file")
