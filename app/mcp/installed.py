"""The servers that an owner agreed to: what was approved of each, kept beside its files."""

import dataclasses
import json
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.mcp.definitions import ServerDefinition, is_server_name
from app.mcp.templates import Filling, TemplateError, is_secret
from app.messages import JSON
from app.processes.sandbox import Grants
from app.skills.folder import read_regular
from app.tools.tool import Audience

log = logging.getLogger(__name__)

RECORD = "installed.json"
HOME = "data"


@dataclass(frozen=True, slots=True)
class InstalledServer:
    """One server as it was approved: `command` with what it consists of in `folder`, or `url`.

    `package` is its name and version, `lock_sha256` of the file with those of all that it needs.
    `env` and `headers` hold `${VARIABLE}`, which its own secrets fill in. `sha256` is of the files in
    `folder`, `subject` what the yes was for, `approved_by` a person's id, `installed_at` Unix seconds.
    `older_sdk`: it was installed with mcp<2, because it does not run with what its package asks for.
    `updated_from`: the version whose place it took, "" for none.
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
    """The absolute path of its package; "" for a remote."""
    sha256: str = ""
    package: str = ""
    lock_sha256: str = ""
    grants: Grants = field(default_factory=Grants)
    audience: Audience = "owners"
    trusted: bool = False
    older_sdk: bool = False
    updated_from: str = ""
    description: str = ""


def home_of(data_dir: Path, name: str) -> Path:
    """Where all of a server lies. Raises ValueError for what is no server's name."""
    if not is_server_name(name):
        raise ValueError(f"{name!r} is no server's name")
    return data_dir.absolute() / "mcp" / name


def records(data_dir: Path) -> list[InstalledServer]:
    """What is installed, by name: a small file for each is read."""
    names = sorted(path.parent.name for path in (data_dir / "mcp").glob(f"*/{RECORD}"))
    found = (read(data_dir, name) for name in names if is_server_name(name))
    return [record for record in found if record is not None]


def read(data_dir: Path, name: str) -> InstalledServer | None:
    """None where there is none; and a line in the log where it cannot be read."""
    path = home_of(data_dir, name) / RECORD
    try:
        record = _from_json(json.loads(read_regular(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError):
        record = None
    if record is None or record.name != name:
        log.warning("%s cannot be read: remove the server and install it again", path)
        return None
    return record


def text_of(record: InstalledServer) -> str:
    """What is kept of it."""
    return json.dumps(dataclasses.asdict(record), default=str)


def entry_of(record: InstalledServer) -> dict[str, JSON]:
    """How it stands in the file of the operator, who may edit it; then it is the operator's."""
    if record.url:
        headers = {"headers": dict(record.headers)} if record.headers else {}
        return {"type": "http", "url": record.url, **headers, "enabled": True}
    started: dict[str, JSON] = {"command": record.command, "args": list(record.args), "cwd": record.folder}
    return {**started, "env": dict(record.env), "sandbox": _sandbox(record.grants), "enabled": True}


def is_edited(record: InstalledServer, entry: JSON) -> bool:
    """Whether the operator made an entry their own; one that was taken out is none."""
    return entry is not None and not agrees(record, entry)


def agrees(record: InstalledServer, entry: JSON) -> bool:
    """Whether an entry is still what was approved; it may be turned off and on."""
    return isinstance(entry, dict) and {**entry, "enabled": True} == entry_of(record)


def definition(record: InstalledServer, secrets: dict[str, str]) -> ServerDefinition:
    """The server ready to be started, with only its own secrets filled in; `fault` where that cannot be."""
    filling = Filling(secrets)
    try:
        env = _filled(record.env, filling)
        headers = _filled(record.headers, filling)
        url = filling.fill(record.url)
        fault = ""
    except TemplateError as error:
        env, headers, url, fault = (), (), "", str(error)
    place = Path(record.folder).parent if record.folder else None
    return ServerDefinition(
        name=record.name,
        origin="installed",
        command=record.command,
        args=record.args,
        env=env,
        url=url,
        headers=headers,
        folder=record.folder,
        home=str(place / HOME) if place else "",
        sha256=record.sha256,
        sandboxed=not record.url,
        grants=record.grants,
        audience=record.audience,
        trusted=record.trusted,
        version=record.version,
        description=record.description,
        missing=filling.missing,
        hidden=(*filling.secrets, *(value for name, value in (*env, *headers) if is_secret(name, value))),
        fault=fault,
    )


def _sandbox(grants: Grants) -> JSON:
    """As the operator would write it, so that an entry which is edited can do what it could before."""
    folders = {"read": grants.folders_read, "write": grants.folders_write}
    granted: dict[str, JSON] = {
        key: [str(one) for one in places] for key, places in folders.items() if places
    }
    granted |= {key: True for key in ("network", "programs") if getattr(grants, key)}
    return granted or True


def _filled(templates: tuple[tuple[str, str], ...], filling: Filling) -> tuple[tuple[str, str], ...]:
    """Those that come to nothing are left out: they may be given and were not."""
    filled = ((name, filling.fill(template)) for name, template in templates)
    return tuple((name, text) for name, text in filled if text)


def _from_json(kept: dict[str, Any]) -> InstalledServer:
    pairs = {key: tuple((name, text) for name, text in kept[key]) for key in ("env", "headers")}
    grants = Grants.of(kept["grants"])
    return InstalledServer(**{**kept, **pairs, "args": tuple(kept["args"]), "grants": grants})
