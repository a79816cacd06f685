"""Approved servers of the registry with their files, and the approved tools of every server.

A server runs as it was approved, or not at all; a tool that changed is held back until it is approved again.
"""

import hashlib
import json
import logging
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, TypeAdapter, ValidationError

from app.i18n import lazy
from app.mcp.definitions import HeldBack, ServerDefinition, ServerState, is_server_name, parse_entry
from app.messages import JSON
from app.people import Audience
from app.processes.sandbox import Grants
from app.security import write_private
from app.skills.findings import Finding
from app.skills.folder import read_regular
from app.tools.paths import entries

log = logging.getLogger(__name__)

RECORD = "installed.json"
HOME = "data"

_SECRET = re.compile(r"\$\{(\w+)(:-)?\}", re.ASCII)

# A tool as `tools/list` gives it.
Definition = Mapping[str, JSON]
# What the model or an owner is told of a tool: a change of any of them is a change of the tool.
_PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class InstalledServer:
    """A server of the registry as it is planned, and as it was approved: a package, or a `url`.

    `env`, `url` and `headers` hold `${VARIABLE}` where its own secrets are filled in, which are given outside
    the chat. Of a package (`kind` npm or pypi) a plan has the arguments; once installed it has the whole
    `command`, with its files in `folder`, an absolute path, and their `sha256`. `subject` is the sha256 of
    the plan, which an owner's yes is for; `approved_by` a person's id, "console" or "shell", `installed_at`
    Unix seconds. `replaces` is the subject of the install that it would replace, or "", `updated_from` the
    version of that one; `edited` tells that the operator changed that one's entry, which would be lost.
    """

    name: str
    registry_id: str
    version: str
    subject: str = ""
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
    kind: str = ""
    identifier: str = ""
    findings: tuple[Finding, ...] = ()
    replaces: str = ""
    edited: bool = False

    @property
    def label(self) -> str:
        return f"{self.registry_id} {self.version}"

    @property
    def command_line(self) -> str:
        """The whole command of a plan: the package's own program with its arguments; "" for a remote."""
        if self.url:
            return ""
        runtime, joint = ("node", "@") if self.kind == "npm" else ("python", "==")
        return shlex.join([runtime, f"{self.identifier}{joint}{self.version}", *self.args])

    @property
    def secrets(self) -> dict[str, bool]:
        """The names of its secrets, and whether it cannot do without."""
        texts = (self.url, *(value for _, value in (*self.env, *self.headers)))
        found = (match for text in texts for match in _SECRET.finditer(text))
        return {match[1]: not match[2] for match in found}


_RECORDS = TypeAdapter(InstalledServer)


def home_of(data_dir: Path, name: str) -> Path:
    """Return the folder of a server. Raises ValueError for what is no server's name."""
    if not is_server_name(name):
        raise ValueError(f"{name!r} is no server's name")
    return data_dir.absolute() / "mcp" / name


def records(data_dir: Path) -> list[InstalledServer]:
    """Return what is installed, by name."""
    names = sorted(path.parent.name for path in (data_dir / "mcp").glob(f"*/{RECORD}"))
    found = (read_record(data_dir, name) for name in names if is_server_name(name))
    return [record for record in found if record is not None]


def has_record(data_dir: Path, name: str) -> bool:
    """Tell whether a server has a record, readable or not."""
    return is_server_name(name) and (data_dir / "mcp" / name / RECORD).exists()


def read_record(data_dir: Path, name: str) -> InstalledServer | None:
    """Return a server's record; None if there is none or, with a line in the log, it cannot be read."""
    path = home_of(data_dir, name) / RECORD
    try:
        record = from_json(read_regular(path))
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
    return _RECORDS.dump_json(record).decode()


def from_json(text: str | bytes) -> InstalledServer:
    """Read what `to_json` wrote, also in an earlier version. Raises ValueError for anything else."""
    return _RECORDS.validate_json(text)


def entry_of(record: InstalledServer) -> dict[str, JSON]:
    """Return its entry in the file of the operator, who may edit it; then it is the operator's."""
    if record.url:
        headers = {"headers": dict(record.headers)} if record.headers else {}
        return {"type": "http", "url": record.url, **headers, "enabled": True}
    grants = record.grants  # written so that an edited entry can do what it could before
    granted: dict[str, JSON] = {
        "read": [str(one) for one in grants.folders_read],
        "write": [str(one) for one in grants.folders_write],
        "network": grants.network,
        "programs": grants.programs,
    }
    return {
        "command": record.command,
        "args": list(record.args),
        "cwd": record.folder,
        "env": dict(record.env),
        "sandbox": {key: value for key, value in granted.items() if value} or True,
        "enabled": True,
    }


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
        exposed=False,
    )


def integrity_fault(place: str, sha256: str) -> str:
    """Return why a package must not be started; "" if it is what was approved, or was not installed by us.

    Reads every file: some tenths of a second.
    """
    try:
        if not sha256 or digest(Path(place)) == sha256:
            return ""
    except (OSError, ValueError) as error:
        return lazy("{path} cannot be read: {error}; install the server again", path=place, error=str(error))
    return lazy("{path} was changed since it was installed; install the server again", path=place)


def digest(folder: Path) -> str:
    """Return the sha256 over files and links. Raises ValueError for links out and what is neither."""
    whole = hashlib.sha256()
    for entry in entries(folder, recursive=True):
        mode, path = entry.stat(follow_symlinks=False).st_mode, os.path.relpath(entry.path, folder)
        if stat.S_ISDIR(mode):
            continue
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(folder / path))
            # Its own Python is a link to the one that made it.
            if not target.is_relative_to(folder.resolve()) and target != Path(sys.executable).resolve():
                raise ValueError(f"{path} is a link out of the package")
            line = f"link {os.readlink(folder / path)}"
        elif stat.S_ISREG(mode):
            with open(folder / path, "rb") as file:
                line = hashlib.file_digest(file, "sha256").hexdigest()
        else:
            raise ValueError(f"{path} is neither a file nor a link")
        whole.update(f"{line} {mode:o} {path}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


class _PinsFile(BaseModel):
    tools: dict[str, dict[Literal["definition"], dict[str, JSON]]]


def pinned(raw: Definition) -> dict[str, JSON]:
    """Return what is approved of a definition."""
    return {key: raw[key] for key in _PINNED if raw.get(key) is not None}


def definition_hash(raw: Definition) -> str:
    """Return the sha256 of what is pinned of a definition."""
    return _hash(pinned(raw))


def differences(before: Definition | None, after: Definition) -> list[tuple[str, str | None, str | None]]:
    """Return what changed of a definition: the place in it, the value there before and now, None for none."""
    was, now = dict(values(pinned(before or {}))), dict(values(pinned(after)))
    places = dict.fromkeys((*now, *was))
    return [(place, was.get(place), now.get(place)) for place in places if was.get(place) != now.get(place)]


def values(value: JSON, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the single values in a definition as texts, each after its place, such as `inputSchema.type`."""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from values(part, f"{place}.{name}" if place else name)
    else:
        yield place, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def hashes(held_back: Sequence[HeldBack]) -> dict[str, str]:
    """Return the sha256 of each definition that is held back, by tool."""
    return {one.tool: definition_hash(one.after) for one in held_back}


def subject_of(state: ServerState) -> str:
    """Return the hash of all that an approval of what a server has held back covers."""
    return _hash([state.name, hashes(state.held_back)])


class Pins:
    """One server's approved definitions, kept whole in a file that only we can read.

    A file that cannot be read approves nothing: an owner is asked, and `fault` says so. In a trial they are
    only looked at: what was never approved counts as approved. Reads and writes the disk: not for the event
    loop.
    """

    def __init__(self, data_dir: Path, server: str, *, is_trial: bool = False) -> None:
        self.fault = ""
        self._is_trial = is_trial
        self._path = data_dir / "mcp" / server / "pins.json"

    def compare(self, raws: Sequence[Definition]) -> tuple[Sequence[Definition], Sequence[HeldBack]]:
        """Return those that are still what was approved, and those that differ or are new.

        If nothing ever was approved, all are now. Raises OSError.
        """
        known = self._read()
        if known is None and not self.fault:
            if not self._is_trial:
                self._write({raw["name"]: raw for raw in raws})
            return raws, ()
        known = known or {}
        known_hashes = {name: definition_hash(definition) for name, definition in known.items()}
        approved, held_back = [], []
        for raw in raws:
            name = raw["name"]
            if known_hashes.get(name) == definition_hash(raw):
                approved.append(raw)
            else:
                held_back.append(HeldBack(name, after=raw, before=known.get(name)))
        return approved, held_back

    def approve(self, raws: Sequence[Definition], shown: Mapping[str, str]) -> None:
        """Approve those that are what was shown (sha256 by tool); earlier ones stay."""
        chosen = {raw["name"]: raw for raw in raws if shown.get(raw["name"]) == definition_hash(raw)}
        if chosen:
            self._write({**(self._read() or {}), **chosen})

    def _read(self) -> dict[str, Definition] | None:
        self.fault = ""
        try:
            tools = _PinsFile.model_validate_json(self._path.read_bytes()).tools
            return {name: pin["definition"] for name, pin in tools.items() if pin}
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            why = f"{error.error_count()} faults" if isinstance(error, ValidationError) else str(error)
            self.fault = lazy(
                "{path} cannot be read, so no tool in it is approved: {reason}",
                path=str(self._path),
                reason=why,
            )
            return None

    def _write(self, definitions: Mapping[str, Definition]) -> None:
        tools = {name: {"definition": pinned(one)} for name, one in sorted(definitions.items())}
        write_private(self._path, json.dumps({"tools": tools}))
        self.fault = ""


def _hash(value: JSON) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
