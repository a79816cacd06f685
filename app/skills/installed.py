"""The records of installed skills: which bytes were approved, and by whom."""

import json
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path

from app.messages import JSON
from app.people import Audience
from app.skills.file_tree import check_tree

log = logging.getLogger(__name__)

# In the folder of each: says what is installed, and is replaced in one step.
RECORD = "installed.json"


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

    def check(self) -> None:
        """Read all of it. Raises TreeError where it is not what was approved."""
        check_tree(self.folder, self.sha256)


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
        record: JSON = json.loads(path.read_bytes())
        hosts = tuple(record["hosts"])
        installed = Installed(**{**record, "folder": path.parent / record["sha256"], "hosts": hosts})
    except (OSError, ValueError, TypeError, KeyError):
        installed = None
    if installed and installed.name == path.parent.name and re.fullmatch("[0-9a-f]{64}", installed.sha256):
        return installed
    log.warning("%s cannot be read: install the skill again", path)
    return None
