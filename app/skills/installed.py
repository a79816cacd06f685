"""The installed skills that came from elsewhere: exactly the approved bytes, and who approved them."""

import dataclasses
import json
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import RecadoError
from app.messages import JSON
from app.security import write_private
from app.skills.file_tree import TreeError, check_tree, read_tree, remove_tree, write_tree
from app.skills.manifest import is_standard_name
from app.skills.phrases import FILE
from app.tools.tool import Audience

if TYPE_CHECKING:  # each start reads what is installed, few look at what could be
    from app.installs.quarantine import Quarantined
    from app.installs.skill_cards import Card

log = logging.getLogger(__name__)

RECORD = "installed.json"
"""In the folder of each: says what is installed, and is replaced in one step."""


class InstallError(RecadoError):
    """What could not be installed or removed; the text says why."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The current version of one: `folder` holds it, read-only.

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
        """The file with what a model wrote for its tools: beside the approved bytes, no part of them."""
        return self.folder.parent / FILE

    @property
    def is_sensitive(self) -> bool:
        """Whether its tools ask each time, whatever its own metadata says of them."""
        return not self.trusted

    def check(self) -> None:
        """Reads all of it. Raises TreeError where it is not what was approved."""
        check_tree(self.folder, self.sha256)

    def tree(self) -> "Quarantined":
        """Its bytes once more, for the card that an update is compared with. Raises TreeError."""
        from app.installs.quarantine import Quarantined

        return Quarantined(self.source, self.origin_folder, read_tree(self.folder), self.sent_on)


def install(
    data_dir: Path,
    tree: "Quarantined",
    card: "Card",
    *,
    approved_by: str,
    at: float,
    trusted: bool = False,
    reserved: frozenset[str] = frozenset(),
) -> Installed:
    """Writes the tree to DATA_DIR/skills/<name>/<sha256>/ and makes it the current version of that name.

    `card` is the one that was approved; `reserved` are names of skills that came otherwise. A crash leaves
    the version before or this one, whole. Raises InstallError.
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
    """Raises InstallError for the name of a skill that came otherwise."""
    if name in reserved:
        raise InstallError(f"there is a skill {name} that came another way; it is not replaced")


def current(data_dir: Path) -> list[Installed]:
    """What is installed, by name: a small file for each is read, none of their own."""
    paths = sorted((data_dir / "skills").glob(f"*/{RECORD}"))
    return [installed for path in paths if (installed := _read_record(path)) is not None]


def remove(data_dir: Path, name: str) -> bool:
    """Removes a skill with all its versions; False where there was none of that name."""
    home = _home(data_dir, name)
    try:
        (home / RECORD).unlink()
    except FileNotFoundError:
        return False
    remove_tree(home)
    return True


def tidy(data_dir: Path) -> None:
    """Removes versions that nothing names any more: at the start, when no call can be running in one."""
    for home in (data_dir / "skills").glob("*"):
        if not home.is_dir() or (home / "SKILL.md").exists():  # the operator's, where SKILLS_DIR is this one
            continue
        if not (home / RECORD).exists():
            remove_tree(home)
        elif installed := _read_record(home / RECORD):
            _keep_only(home, {RECORD, FILE, installed.sha256})


def is_from_elsewhere(data_dir: Path, folder: Path) -> bool:
    """Whether the folder of a skill is one that `install` made."""
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
    """None, and a line in the log, for a record that is not one of ours."""
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
