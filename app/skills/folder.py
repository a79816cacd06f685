"""The files of a skill's folder: found without following links out of it, read without ever waiting."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from app.skills.manifest import ManifestError

MAX_FILES = 256
MAX_BYTES = 8 * 1024 * 1024
KNOWN_FILES = ("SKILL.md", "scripts/tools.py", "assets/phrases.yaml", "mcp.json")
NOT_COUNTED = {"__pycache__", "node_modules"}

Stamp = tuple[int, int] | None
Signature = tuple[Stamp, ...]
"""When the files were changed that make a skill, and how long they are: other files, other signature."""


class Signatures:
    """Signatures of folders, at the price of a few file times for those it saw before."""

    def __init__(self) -> None:
        self._modules: dict[str, tuple[Stamp, tuple[str, ...]]] = {}

    def of(self, folder: str) -> Signature:
        known = tuple(stamp(f"{folder}/{name}") for name in KNOWN_FILES)
        if known[1] is None:
            return known
        return known + tuple(map(stamp, self._beside_tools(f"{folder}/scripts")))

    def _beside_tools(self, scripts: str) -> tuple[str, ...]:
        """The modules that tools.py may import; listed anew when the folder's own time changed."""
        changed = stamp(scripts)
        listed = self._modules.get(scripts)
        if listed is None or listed[0] != changed:
            listed = self._modules[scripts] = changed, tuple(_modules(scripts))
        return listed[1]


def stamp(path: str) -> Stamp:
    """When a file was changed, in nanoseconds, and its length; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def read_file(folder: Path, name: str) -> bytes:
    """A file of the folder. Raises ManifestError for a link that leads out of it, and for what is no file."""
    path = folder / name
    if not os.path.realpath(path).startswith(os.path.realpath(folder) + os.sep):
        raise ManifestError(f"{name} is a link that leads out of the skill's folder; copy the file into it")
    try:
        return read_regular(path)
    except OSError as error:
        raise ManifestError(f"{name} cannot be read: {error.strerror or error}") from error


def read_regular(path: Path) -> bytes:
    """A plain file's bytes. Raises OSError for a pipe, device or socket, which might never answer."""
    _require_regular(os.stat(path).st_mode)  # opening a device may do something already
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        _require_regular(os.fstat(file.fileno()).st_mode)
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise OSError(f"it has more than {MAX_BYTES // 1024**2} MiB")
    return content


def check_size(folder: Path) -> None:
    """Raises ManifestError for a folder with too much in it."""
    size = 0
    for files, entry in enumerate(_files(str(folder)), start=1):
        size += entry.stat(follow_symlinks=False).st_size
        if files > MAX_FILES or size > MAX_BYTES:
            raise ManifestError(
                f"the folder is too big: at most {MAX_FILES} files and {MAX_BYTES // 1024**2} MiB in all"
            )


def _modules(scripts: str) -> list[str]:
    try:
        names = sorted(os.listdir(scripts))
    except OSError:  # its skill's fault says so
        return []
    return [f"{scripts}/{name}" for name in names if name.endswith(".py") and name != "tools.py"]


def _require_regular(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError("it is no plain file")


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in NOT_COUNTED:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path)
            else:
                yield entry
