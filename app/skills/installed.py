"""Installed skills: which bytes were approved, and by whom, and the read-only folders that hold just them."""

import hashlib
import logging
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from pydantic import TypeAdapter

from app.errors import RecadoError
from app.people import Audience
from app.rmtree import rmtree
from app.security import sync_folder
from app.skills.folder import MAX_BYTES, MAX_FILES
from app.tools.paths import open_to_read

log = logging.getLogger(__name__)

RECORD = "installed.json"  # in the folder of each: says what is installed, and is replaced in one step


@dataclass(frozen=True, slots=True)
class Installed:
    """The current version of an installed skill: `folder` holds it, read-only.

    `source` is the person's address, `sent_on` the one on another host that it led to, "" where it did not.
    `approved_by` is a person's id, "console" or "shell", `installed_at` Unix seconds. Without `trusted` its
    tools count as sensitive. `hosts` are those that its card named.
    """

    name: str
    folder: Path
    sha256: str
    source: str
    installed_at: float
    approved_by: str
    trusted: bool
    audience: Audience
    hosts: tuple[str, ...] = ()
    sent_on: str = ""

    def check(self) -> None:
        """Read all of it. Raises TreeError where it is not what was approved."""
        check_tree(self.folder, self.sha256)


_RECORD = TypeAdapter(Installed)


def current(data_dir: Path) -> list[Installed]:
    """Return what is installed, by name; reads one small record for each."""
    paths = sorted((data_dir / "skills").glob(f"*/{RECORD}"))
    return [installed for path in paths if (installed := read_record(path)) is not None]


def is_installed_folder(data_dir: Path, folder: Path) -> bool:
    """Tell whether the folder of a skill is one that came from an address."""
    place = Path(os.path.abspath(data_dir / "skills"))
    return Path(os.path.abspath(folder)).parents[1] == place


def read_record(path: Path) -> Installed | None:
    """Read the record of one; for a record that is not ours return None and log a line."""
    try:
        installed = _RECORD.validate_json(path.read_bytes())
    except (OSError, ValueError):
        installed = None
    if installed and installed.name == path.parent.name and re.fullmatch("[0-9a-f]{64}", installed.sha256):
        return replace(installed, folder=path.parent / installed.sha256)
    log.warning("%s cannot be read: install the skill again", path)
    return None


# Contents by path inside the skill, with `/` between its parts.
Files = Mapping[str, bytes]


class TreeError(RecadoError):
    """A folder that does not hold what it should; the text says how it differs."""


def digest(files: Files) -> str:
    """Return the sha256 over a line "hash size path" for each file, sorted by path."""
    whole = hashlib.sha256()
    for path, content in sorted(files.items()):
        whole.update(f"{hashlib.sha256(content).hexdigest()} {len(content)} {path}\n".encode())
    return whole.hexdigest()


def write_tree(files: Files, folder: Path) -> None:
    """Make a read-only folder with these files, whole or not at all. Raises TreeError if it holds others."""
    if folder.exists():
        check_tree(folder, digest(files))
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    arriving = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    try:
        for path, content in files.items():
            _write(arriving / path, content)
        for place, _, _ in os.walk(arriving, topdown=False):
            sync_folder(Path(place))
            os.chmod(place, 0o500)
        arriving.rename(folder)
        sync_folder(folder.parent)
    except OSError:
        remove_tree(arriving)
        if not folder.exists():
            raise
        check_tree(folder, digest(files))  # somebody else was first


def read_tree(folder: Path) -> dict[str, bytes]:
    """Return every file below the folder. Raises TreeError for links, special files, and too much."""
    files: dict[str, bytes] = {}
    left = MAX_BYTES
    try:
        for place, folders, names in os.walk(folder, onerror=_raise):
            links = [name for name in folders if os.path.islink(f"{place}/{name}")]
            for name in (*names, *links):
                with open_to_read(f"{place}/{name}") as file:
                    content = file.read(left + 1)
                left -= len(content)
                files[os.path.relpath(f"{place}/{name}", folder)] = content
                if len(files) > MAX_FILES or left < 0:
                    raise TreeError(
                        f"{folder} holds more than {MAX_FILES} files or {MAX_BYTES // 1024**2} MiB"
                    )
    except OSError as error:
        raise TreeError(f"{error.filename} cannot be read: {error.strerror or error}") from error
    return files


def check_tree(folder: Path, sha256: str) -> None:
    """Raise TreeError unless the folder holds exactly the files of that hash."""
    if digest(read_tree(folder)) != sha256:
        raise TreeError(f"{folder} was changed since it was approved; remove the skill and install it again")


def remove_tree(folder: Path) -> None:
    """Remove a folder, however deep, hidden in one step; none is no error. Raises OSError if some stays."""
    hidden = folder.with_name(f".{folder.name.lstrip('.')}-{secrets.token_hex(4)}")
    try:
        folder.rename(hidden)
    except FileNotFoundError:
        return
    rmtree(hidden)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), 0o400)
        os.fsync(file.fileno())


def _raise(error: OSError) -> NoReturn:
    raise error
