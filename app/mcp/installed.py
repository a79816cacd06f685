"""The servers that an owner agreed to: what was approved of each, kept beside its files."""

import hashlib
import logging
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from app.errors import RecadoError
from app.i18n import lazy
from app.mcp.definitions import ServerDefinition, is_server_name, parse_entry
from app.messages import JSON
from app.people import Audience
from app.processes.sandbox import Grants
from app.skills.folder import read_regular
from app.tools.paths import entries

log = logging.getLogger(__name__)

RECORD = "installed.json"
HOME = "data"


@dataclass(frozen=True, slots=True)
class InstalledServer:
    """A server as it was approved: `command` with its package in `folder`, or `url`.

    `env` and `headers` hold `${VARIABLE}`, which its own secrets fill in. `sha256` is of the files in
    `folder`, an absolute path; `subject` what was approved, `approved_by` a person's id, `installed_at`
    Unix seconds. `updated_from`: the version whose place it took, "" for none.
    """

    name: str
    registry_id: str
    version: str
    subject: str
    approved_by: str = ""
    installed_at: float = 0
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    folder: str = ""
    sha256: str = ""
    grants: Grants = field(default_factory=Grants)
    audience: Audience = "owners"
    trusted: bool = False
    updated_from: str = ""
    description: str = ""


_RECORD = TypeAdapter(InstalledServer)


def home_of(data_dir: Path, name: str) -> Path:
    """Return the folder of a server. Raises ValueError for what is no server's name."""
    if not is_server_name(name):
        raise ValueError(f"{name!r} is no server's name")
    return data_dir.absolute() / "mcp" / name


def records(data_dir: Path) -> list[InstalledServer]:
    """Return what is installed, by name."""
    names = sorted(path.parent.name for path in (data_dir / "mcp").glob(f"*/{RECORD}"))
    found = (read(data_dir, name) for name in names if is_server_name(name))
    return [record for record in found if record is not None]


def has_record(data_dir: Path, name: str) -> bool:
    """Tell whether a server has a record, readable or not."""
    return is_server_name(name) and (data_dir / "mcp" / name / RECORD).exists()


def read(data_dir: Path, name: str) -> InstalledServer | None:
    """Return a server's record; None if there is none or, with a line in the log, it cannot be read."""
    path = home_of(data_dir, name) / RECORD
    try:
        record = _RECORD.validate_json(read_regular(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        record = None
    if record is None or record.name != name:
        log.warning("%s cannot be read: remove the server and install it again", path)
        return None
    return record


def to_json(record: InstalledServer) -> str:
    """Return the record as it is kept."""
    return _RECORD.dump_json(record).decode()


def entry_of(record: InstalledServer) -> dict[str, JSON]:
    """Return its entry in the file of the operator, who may edit it; then it is the operator's."""
    if record.url:
        headers = {"headers": dict(record.headers)} if record.headers else {}
        return {"type": "http", "url": record.url, **headers, "enabled": True}
    started: dict[str, JSON] = {"command": record.command, "args": list(record.args), "cwd": record.folder}
    return {**started, "env": dict(record.env), "sandbox": _sandbox(record.grants), "enabled": True}


def agrees(record: InstalledServer, entry: JSON) -> bool:
    """Tell whether an entry is what was approved; it may be turned off, and kept for owners alone."""
    if not isinstance(entry, dict):
        return False
    approved = {key: value for key, value in entry.items() if (key, value) != ("audience", "owners")}
    return {**approved, "enabled": True} == entry_of(record)


def to_definition(record: InstalledServer, secrets: dict[str, str], entry: JSON = None) -> ServerDefinition:
    """Return the server ready to be started, with only its own secrets filled in, or with a `fault`.

    `entry` is its own in the file of the operator, if it agrees with the record.
    """
    read = parse_entry(record.name, entry or entry_of(record), secrets, origin="installed")
    return replace(
        read,
        # what is empty is optional and was not given
        env=tuple((name, value) for name, value in read.env if value),
        headers=tuple((name, value) for name, value in read.headers if value),
        home=str(Path(record.folder).parent / HOME) if record.folder else "",
        sha256=record.sha256,
        sandboxed=not record.url,
        audience="owners" if (entry or {}).get("audience") == "owners" else record.audience,
        trusted=record.trusted,
        version=record.version,
        description=record.description,
        exposed=(),
    )


def _sandbox(grants: Grants) -> JSON:
    """Return the grants as the operator would write them: an edited entry can do what it could before."""
    folders = {"read": grants.folders_read, "write": grants.folders_write}
    granted: dict[str, JSON] = {
        key: [str(one) for one in places] for key, places in folders.items() if places
    }
    granted |= {key: True for key in ("network", "programs") if getattr(grants, key)}
    return granted or True


MAX_FILES = 60_000
MAX_BYTES = 400 * 1024 * 1024


class PackageTreeError(RecadoError):
    """Files that cannot be kept as a package; the text says why."""


def integrity_fault(place: str, sha256: str) -> str:
    """Return why a package must not be started; "" if it is what was approved, or was not installed by us.

    Reads every file: some tenths of a second.
    """
    if not sha256:
        return ""
    try:
        if digest(Path(place)) == sha256:
            return ""
    except (OSError, PackageTreeError) as error:
        return lazy("{path} cannot be read: {error}; install the server again", path=place, error=str(error))
    return lazy("{path} was changed since it was installed; install the server again", path=place)


def check_room(folder: Path) -> None:
    """Raise PackageTreeError if a package is too large."""
    size = 0
    for files, (_, entry) in enumerate(_walk(folder), 1):
        size += entry.stat(follow_symlinks=False).st_size
        if files > MAX_FILES or size > MAX_BYTES:
            most = f"{MAX_BYTES // 1024**2} MiB in {MAX_FILES} files"
            raise PackageTreeError(f"with what it needs the package has more than {most}")


def digest(folder: Path) -> str:
    """Return the sha256 over files and links. Raises PackageTreeError for links out and what is neither."""
    whole = hashlib.sha256()
    for path, entry in _walk(folder):
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


def _walk(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    for entry in entries(folder, recursive=True):
        if not entry.is_dir(follow_symlinks=False):
            yield os.path.relpath(entry.path, folder), entry
