"""The store of installed skills: exactly the approved bytes, and who approved them."""

import dataclasses
import json
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.errors import RecadoError
from app.messages import JSON
from app.security import write_private
from app.skills.file_tree import Files, TreeError, check_tree, read_tree, remove_tree, write_tree
from app.skills.manifest import is_standard_name
from app.skills.phrases import FILE
from app.tools.tool import Audience

log = logging.getLogger(__name__)

# In the folder of each skill: says which version is installed, and is replaced in one step.
RECORD = "installed.json"


class InstallError(RecadoError):
    """A skill that could not be installed or removed; the text says why."""


class ApprovedTree(Protocol):
    """The files that are installed; `source` and `sent_on` as in `Installed`."""

    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def folder(self) -> str: ...
    @property
    def files(self) -> Files: ...
    @property
    def sent_on(self) -> str: ...


class ApprovedCard(Protocol):
    """The card that was approved for them."""

    @property
    def name(self) -> str: ...
    @property
    def sha256(self) -> str: ...
    @property
    def audience(self) -> Audience: ...
    @property
    def hosts(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Installed:
    """The current version of an installed skill: `folder` holds it, read-only.

    `source` is the person's address, `sent_on` the one on another host that it led to, "" where it did not.
    `approved_by` is a person's id, `installed_at` Unix seconds. Without `trusted` its tools count as
    sensitive. `hosts` are those that its card named.
    """

    name: str
    folder: Path
    sha256: str
    source: str
    origin_folder: str
    installed_at: float
    approved_by: str
    trusted: bool
    audience: Audience
    hosts: tuple[str, ...] = ()
    sent_on: str = ""

    @property
    def phrases(self) -> Path:
        """The file with the phrases that a model wrote for its tools, beside the approved bytes."""
        return self.folder.parent / FILE

    @property
    def is_sensitive(self) -> bool:
        """Tell whether its tools ask each time, whatever its own metadata says of them."""
        return not self.trusted

    def check(self) -> None:
        """Read all of it. Raises TreeError where it is not what was approved."""
        check_tree(self.folder, self.sha256)

    def read(self) -> dict[str, bytes]:
        """Return its files by path, as an update is compared with them. Raises TreeError."""
        return read_tree(self.folder)


def install(
    data_dir: Path,
    tree: ApprovedTree,
    card: ApprovedCard,
    *,
    approved_by: str,
    at: float,
    trusted: bool = False,
    reserved: frozenset[str] = frozenset(),
) -> Installed:
    """Write the tree to DATA_DIR/skills/<name>/<sha256>/ and make it the current version of that name.

    `card` is the one that was approved; `reserved` are the names of skills that were not
    installed. A crash leaves the version before or this one, whole. Raises InstallError.
    """
    if card.sha256 != tree.sha256 or card.name != tree.name:
        raise InstallError("these are not the bytes that the card was made from; look at it and ask again")
    check_free(tree.name, reserved)
    installed = Installed(
        name=tree.name,
        folder=_home(data_dir, tree.name) / tree.sha256,
        sha256=tree.sha256,
        source=tree.source,
        origin_folder=tree.folder,
        installed_at=at,
        approved_by=approved_by,
        trusted=trusted,
        audience=card.audience,
        hosts=card.hosts,
        sent_on=tree.sent_on,
    )
    try:
        write_tree(tree.files, installed.folder)
        record = {**dataclasses.asdict(installed), "folder": installed.folder.name}
        write_private(installed.folder.parent / RECORD, json.dumps(record))
    except (OSError, TreeError) as error:
        raise InstallError(f"{tree.name} could not be written: {error}") from error
    return installed


def check_free(name: str, reserved: frozenset[str]) -> None:
    """Raise InstallError for the name of a skill that was not installed."""
    if name in reserved:
        raise InstallError(f"there is a skill {name} that came another way; it is not replaced")


def current(data_dir: Path) -> list[Installed]:
    """Return what is installed, by name; reads one small record for each."""
    paths = sorted((data_dir / "skills").glob(f"*/{RECORD}"))
    return [installed for path in paths if (installed := _read_record(path)) is not None]


def remove(data_dir: Path, name: str) -> bool:
    """Remove a skill with all its versions; False where there was none of that name."""
    home = _home(data_dir, name)
    try:
        (home / RECORD).unlink()
    except FileNotFoundError:
        return False
    remove_tree(home)
    return True


def tidy(data_dir: Path) -> None:
    """Remove versions that no record names any more; for the start, when no call runs in one."""
    for home in (data_dir / "skills").glob("*"):
        if not home.is_dir() or (home / "SKILL.md").exists():  # the operator's, where SKILLS_DIR is this one
            continue
        if not (home / RECORD).exists():
            remove_tree(home)
        elif installed := _read_record(home / RECORD):
            _keep_only(home, {RECORD, FILE, installed.sha256})


def is_installed_folder(data_dir: Path, folder: Path) -> bool:
    """Tell whether the folder of a skill is one that `install` made."""
    place = Path(os.path.abspath(data_dir / "skills"))
    return Path(os.path.abspath(folder)).parents[1] == place


def _home(data_dir: Path, name: str) -> Path:
    if not is_standard_name(name):
        raise InstallError(f"{name!r} is no skill's name: lowercase letters, digits and single hyphens")
    return data_dir / "skills" / name


def _keep_only(home: Path, names: set[str]) -> None:
    for path in home.glob("*"):
        if path.name in names:
            continue
        if path.is_dir():
            remove_tree(path)
        else:
            path.unlink()


def _read_record(path: Path) -> Installed | None:
    """Return the record; None, with a line in the log, for one that is not ours."""
    try:
        record: JSON = json.loads(path.read_bytes())
        hosts = tuple(record["hosts"])
        installed = Installed(**{**record, "folder": path.parent / record["sha256"], "hosts": hosts})
    except (OSError, ValueError, TypeError, KeyError):
        installed = None
    if installed and installed.name == path.parent.name and re.fullmatch("[0-9a-f]{64}", installed.sha256):
        return installed
    log.warning("%s cannot be read: install the skill again", path)
    return None
