"""The files of an installed package: their limits, their hash, and whether they are still the same."""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from app.errors import RecadoError

MAX_FILES = 60_000
MAX_BYTES = 400 * 1024 * 1024
MAX_DEPTH = 200


class PackageTreeError(RecadoError):
    """Files that cannot be kept as a package; the text says why."""


def integrity_fault(place: str, sha256: str) -> str:
    """Return why a package must not be started; "" if it is what was approved, or nobody's install.

    Reads every file: some tenths of a second.
    """
    if not sha256:
        return ""
    try:
        if digest(Path(place)) == sha256:
            return ""
    except (OSError, PackageTreeError) as error:
        return f"{place} cannot be read: {error}; install the server again"
    return f"{place} was changed since it was installed; install the server again"


def check_room(folder: Path) -> None:
    """Raise PackageTreeError if a package is too large."""
    size = 0
    for files, (_, entry) in enumerate(_walk(folder, ""), 1):
        size += entry.stat(follow_symlinks=False).st_size
        if files > MAX_FILES or size > MAX_BYTES:
            most = f"{MAX_BYTES // 1024**2} MiB in {MAX_FILES} files"
            raise PackageTreeError(f"with what it needs the package has more than {most}")


def digest(folder: Path) -> str:
    """Return the sha256 over every file and link.

    Raises PackageTreeError for a link that leads out, and for what is neither file nor link.
    """
    whole = hashlib.sha256()
    for path, entry in _walk(folder, ""):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            _check_link(folder, path)
            line = f"link {os.readlink(folder / path)}"
        elif stat.S_ISREG(mode):
            with open(folder / path, "rb") as file:
                line = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            raise PackageTreeError(f"{path} is neither a file nor a link")
        whole.update(f"{line} {mode:o} {path}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _check_link(folder: Path, path: str) -> None:
    """Refuse links out of the package, but those of its own Python to the one that made it."""
    target = Path(os.path.realpath(folder / path))
    if not target.is_relative_to(folder.resolve()) and target != Path(sys.executable).resolve():
        raise PackageTreeError(f"{path} is a link out of the package")


def _walk(folder: Path, inside: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    if inside.count("/") > MAX_DEPTH:
        raise PackageTreeError(f"the package has more than {MAX_DEPTH} folders inside each other")
    with os.scandir(folder / inside) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{inside}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder, f"{path}/")
        else:
            yield path, entry
