"""The files of a skill's folder: found without following links out of it, read without ever blocking."""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

from app.skills.manifest import ManifestError

MAX_FILES = 256
MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
KNOWN_FILES = ("SKILL.md", "scripts/tools.py", "assets/phrases.yaml", "assets/sentences.yaml", "mcp.json")
NOT_COUNTED = {"__pycache__", "node_modules"}

# When a file and its inode were changed (ns), its length and inode; None where there is none. `cp -p` and
# rsync keep the first of the times, nobody sets the second.
Stamp = tuple[int, int, int, int] | None
# The stamps of the files that make a skill: other files, other signature.
Signature = tuple[Stamp | tuple[str, Stamp], ...]


def stamp(path: str | Path) -> Stamp:
    """Return what changes when a file does."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def signature(folder: str | Path) -> Signature:
    """Return the stamps of a skill's files; that of SKILL.md is the first.

    Code, YAML files of `assets` and `mcp.json` count; of others only what comes and goes.
    """
    counted: dict[str, str | tuple[str, ...]] = {"scripts": ".py", "assets": ".yaml", "references": ()}
    inside = (_contents(f"{folder}/{name}", ends) for name, ends in counted.items())
    return (stamp(f"{folder}/SKILL.md"), stamp(f"{folder}/mcp.json"), *chain.from_iterable(inside))


def _contents(folder: str, ends: str | tuple[str, ...]) -> Iterator[tuple[str, Stamp]]:
    """Yield what is below a folder, with the stamps of files that end so."""
    with suppress(OSError):
        for entry in islice(walk(folder), MAX_FILES):  # a skill of more is refused
            yield entry.path, stamp(entry.path) if entry.name.endswith(ends) else None


def walk(folder: str) -> Iterator[os.DirEntry[str]]:
    """Yield files and folders below it by name, each folder before its content.

    Hidden ones and caches are left out, links are not followed. Raises OSError for unreadable or endlessly
    nested folders.
    """
    waiting = [(folder, MAX_DEPTH)]
    while waiting:
        path, depth = waiting.pop()
        if not depth:
            raise OSError(errno.ELOOP, f"folders are nested more than {MAX_DEPTH} deep", folder)
        for entry in _listed(path):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, depth - 1))


def is_skill(folder: str | Path) -> bool:
    """Tell whether there is a SKILL.md; an unreadable one counts, so that its folder is named."""
    try:
        os.lstat(f"{folder}/SKILL.md")
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


def read_file(folder: Path, name: str) -> bytes:
    """Return a file of the folder. Raises ManifestError for a link out of it, and for special files."""
    if not (folder / name).resolve().is_relative_to(folder.resolve()):
        raise ManifestError(f"{name} is a link that leads out of the skill's folder; copy the file into it")
    try:
        return read_regular(f"{folder}/{name}")
    except OSError as error:
        raise ManifestError(f"{name} cannot be read: {error.strerror or error}") from error


def read_regular(path: str | Path) -> bytes:
    """Return a plain file's bytes. Raises OSError for a pipe, device or socket, which might never answer."""
    _require_regular(os.stat(path).st_mode)  # opening a device may do something already
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        _require_regular(os.fstat(file.fileno()).st_mode)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"it has more than {MAX_BYTES // 1024**2} MiB")
    return content


def code_hash(folder: Path) -> str:
    """Return the sha256 of all files in `scripts`, by name."""
    found = hashlib.sha256()
    for entry in walk(f"{folder}/scripts"):
        content = b""
        with suppress(OSError):  # a folder, or what cannot be read
            content = read_regular(entry.path)
        name = os.fsencode(os.path.relpath(entry.path, folder))
        found.update(b"%s\0%d\0%s" % (name, len(content), content))
    return found.hexdigest()


def files_of(folder: Path) -> list[str]:
    """Return the files by their paths in the folder. Raises ManifestError for too many files or bytes."""
    found, size = [], 0
    for number, entry in enumerate(walk(str(folder)), start=1):
        if not entry.is_dir(follow_symlinks=False):
            size += entry.stat(follow_symlinks=False).st_size
        if number > MAX_FILES or size > MAX_BYTES:
            largest = f"{MAX_FILES} files and folders and {MAX_BYTES // 1024**2} MiB in all"
            raise ManifestError(f"the folder is too big: at most {largest}")
        if not os.path.isdir(entry.path):
            found.append(os.path.relpath(entry.path, folder))
    return sorted(found)


def _listed(folder: str | Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name, without caches and what is hidden."""
    with os.scandir(folder) as entries:
        shown = (one for one in entries if not one.name.startswith(".") and one.name not in NOT_COUNTED)
        return sorted(shown, key=lambda one: one.name)


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError("it is no plain file")
