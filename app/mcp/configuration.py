"""The configured servers: those of the operator's file, those installed, and those that skills bring.

For each server there is a file with the secrets that it alone is given.
"""

import hashlib
import json
import logging
import os
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from app.errors import RecadoError
from app.i18n import lazy, to_json
from app.mcp import approved
from app.mcp.definitions import (
    LONGEST_NAME,
    NAME_RULE,
    ServerDefinition,
    ServerState,
    is_server_name,
    parse_entry,
)
from app.messages import JSON
from app.processes.sandbox import Grants
from app.security import locked, write_private
from app.settings import Settings, is_own
from app.skills.folder import read_regular
from app.skills.installed import RECORD, current
from app.skills.loader import SkillLoader
from app.skills.servers import read_servers
from app.tools.plain import sendable

log = logging.getLogger(__name__)

LONGEST_SECRET = 16 * 1024
_VARIABLE = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)
_KEYS = ("mcpServers", "servers")
_SECRETS = TypeAdapter(dict[str, str])


class FileError(RecadoError):
    """A file of servers or of secrets that cannot be used; the text says what to do, and holds no secret."""


def read_mapping(path: Path) -> Mapping[str, JSON]:
    """Return the entries of a file by name, as they are written; none without a file. Raises FileError."""
    return _read(path)[1]


def add_server(path: Path, name: str, entry: Mapping[str, JSON]) -> None:
    """Write an entry, in place of the one of that name. Raises FileError."""
    with _changing(path) as servers:
        servers[name] = dict(entry)


def remove_server(path: Path, name: str) -> None:
    """Take an entry out if it is there. Raises FileError."""
    if name in read_mapping(path):
        with _changing(path) as servers:
            servers.pop(name, None)


def edit_server(path: Path, name: str, **fields: JSON) -> None:
    """Set these fields of an entry, and take out those that are None. Raises FileError."""
    with _changing(path) as servers:
        entry = servers.get(name)
        if not isinstance(entry, dict):
            raise FileError(f"{path} has no server {name}")
        entry.update(fields)
        for field in [field for field, value in fields.items() if value is None]:
            del entry[field]


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, JSON]]:
    """Hand out the servers of a file and write them afterwards. Raises FileError."""
    with _writing(path):
        whole, servers = _read(path)
        yield servers
        text = json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
        write_private(Path(os.path.realpath(path)), text)  # a link to it stays a link


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Hold the lock of a file that is written. Raises FileError."""
    try:
        with locked(path):
            yield
    except OSError as error:
        why = error.strerror or error
        fault = f"{path} cannot be written: {why}; run this as the user of the server"
        raise FileError(fault) from error


def _read(path: Path) -> tuple[dict[str, JSON], dict[str, JSON]]:
    """Return a whole file, and the servers in it."""
    try:
        whole = sendable(json.loads(_content(path)))
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not JSON: {error}") from None
    if whole == {}:
        whole["mcpServers"] = {}
    key = next((key for key in _KEYS if key in whole), "") if isinstance(whole, dict) else ""
    if not key or not isinstance(whole[key], dict):
        raise FileError(f'{path} names no servers; write {{"mcpServers": {{NAME: {{…}}}}}}')
    return whole, whole[key]


def _content(path: Path) -> bytes:
    """Return the bytes of a file of JSON, those of an empty object where there is none. Raises FileError."""
    try:
        return read_regular(path)
    except FileNotFoundError:
        return b"{}"
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from error


class Secrets:
    """DATA_DIR/secrets/<server>: names and values. They resolve for that server and for no other."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "secrets"

    def get(self, server: str) -> dict[str, str]:
        """Return its secrets by name; none, and a line in the log, if the file cannot be read."""
        try:
            return self._read(server) if is_server_name(server) else {}
        except FileError as error:
            log.warning("%s", error)
            return {}

    def put(self, server: str, name: str, value: str) -> None:
        """Keep a secret, in place of one of that name. Raises FileError for what cannot be one."""
        if not _VARIABLE.fullmatch(name):
            raise FileError(f"{name[:80]!r} is no variable's name: letters, digits and _, not a digit first")
        if is_own(name):
            raise FileError(
                f"{name} is a setting of this assistant, which no server is given: write "
                f"${{SERVER_{name.upper()}}} in the server's entry and give that one"
            )
        if not 0 < len(value) <= LONGEST_SECRET or "\0" in value:
            raise FileError(f"the value of {name} has 1 to {LONGEST_SECRET} characters, none of them NUL")
        path = self._path(server)
        with _writing(path):
            kept = {**self._read(server), name: value}
            self.folder.chmod(0o700)
            write_private(path, json.dumps(kept))

    def forget(self, server: str) -> None:
        """Remove all secrets of a server."""
        path = self._path(server)
        if path.exists():
            with _writing(path):
                path.unlink(missing_ok=True)

    def _read(self, server: str) -> dict[str, str]:
        path = self._path(server)
        content = _content(path)
        try:
            return _SECRETS.validate_json(content)
        except ValueError:  # its text would show the content
            raise FileError(f"{path} is no object of texts; remove it and give the secrets again") from None

    def _path(self, server: str) -> Path:
        if not is_server_name(server):
            raise FileError(f"{server[:60]!r} is no server's name: {NAME_RULE}")
        return self.folder / server


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The place of a skill's mcp.json; `source` is the address it came from, None where a person put it."""

    skill: str
    path: Path
    source: str | None = None

    def entries(self) -> Iterable[tuple[str, JSON]]:
        """Return its servers. Raises FileError."""
        if self.source is None:
            return read_mapping(self.path).items()
        servers, _ = read_servers(_content(self.path))  # what is refused in it stood on its card
        return [(one.name, {"url": one.url, "headers": one.headers}) for one in servers if one.url]

    def server_name(self, name: str, taken: Collection[str]) -> str:
        """Return the name of one of its servers.

        An installed skill never gets the name of another's server, and with it that one's secrets.
        """
        if self.source is None and name not in taken:
            return name
        joined = f"{self.skill}_{name}"  # skill names have no _: no two of them give the same
        if is_server_name(joined):
            return joined
        mark = hashlib.sha256(f"{self.skill}/{name}".encode()).hexdigest()[:10]
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", joined).lstrip("_-")
        return f"{plain[: LONGEST_NAME - 11]}-{mark}"

    def secrets_name(self, server: str) -> str:
        """Return the name under which a server's secrets are kept, "" for its own.

        For a skill from elsewhere it depends on the address: an earlier skill of that name shares nothing.
        """
        if self.source is None:
            return ""
        return f"skill-{hashlib.sha256(f'{self.source} {server}'.encode()).hexdigest()[:24]}"


class Configuration:
    """The servers as they are configured.

    `environment` fills in `${VARIABLE}` of what the operator wrote, after the server's own secrets.
    """

    def __init__(
        self, settings: Settings, environment: Mapping[str, str], skills: SkillLoader | None = None
    ) -> None:
        self.path = settings.mcp_config_path
        self.secrets = Secrets(settings.data_dir)
        self._data_dir = settings.data_dir
        self._environment = dict(environment)
        self._skills = skills
        self._mapping: Mapping[str, JSON] = {}
        self.faults: tuple[str, ...] = ()  # the faults of whole files, a line each, with the cure

    def look(self) -> Sequence[ServerDefinition]:
        """Read the files, and return every server under a name of its own.

        If the operator's file is broken the servers that it named before stay. Blocks briefly; never raises.
        """
        faults: list[str] = []
        try:
            self._mapping = read_mapping(self.path)
        except FileError as error:
            kept = "; the servers that it named before stay" if self._mapping else ""
            faults.append(f"{error}{kept}")
        found = {name: self._of_file(name, entry) for name, entry in self._mapping.items()}
        self._add_of_skills(found, faults)
        for fault in set(faults) - set(self.faults):
            log.warning("%s", fault)
        self.faults = tuple(faults)
        return list(found.values())

    def report(self, states: Sequence[ServerState]) -> JSON:
        """Return the servers and their states as JSON, without commands, addresses and secrets."""
        return {"servers": list(map(_row, states)), "faults": list(self.faults)}

    def _of_file(self, name: str, entry: JSON) -> ServerDefinition:
        """Return the server of an entry; what was approved, as long as it agrees with an install's record."""
        own = self.secrets.get(name)
        if not approved.has_record(self._data_dir, name):
            return parse_entry(name, entry, ChainMap(own, self._environment))
        record = approved.read_record(self._data_dir, name)
        if record is None:
            fault = lazy("the record of what was approved cannot be read; remove it and install it again")
            return ServerDefinition(name, "installed", audience="owners", fault=fault)
        if approved.agrees(record, entry):
            return approved.to_definition(record, own, entry)
        # The operator edited it; it still gets no more than what was approved.
        edited = parse_entry(name, entry, own)
        if not edited.sandboxed or edited.grants != Grants():
            return edited
        unchanged = approved.to_definition(record, own)
        return replace(edited, grants=unchanged.grants, home=unchanged.home)

    def _add_of_skills(self, found: dict[str, ServerDefinition], faults: list[str]) -> None:
        usable = [skill for skill in self._skills.skills if skill.available] if self._skills else []
        for skill in usable:
            source = skill.installed.source if skill.installed else None
            file = SkillFile(skill.name, skill.folder / "mcp.json", source)
            try:
                entries = file.entries()
            except FileError as error:
                faults.append(lazy("skill {name}: {reason}", name=file.skill, reason=error.told))
                continue
            for name, entry in entries:
                server = file.server_name(name, found)
                if isinstance(entry, dict) and "registry" in entry:
                    continue  # its card names it; nothing is installed by itself
                if server in found:
                    why = lazy(
                        "its server {name} is left out: there is another {other}", name=name, other=server
                    )
                    faults.append(lazy("skill {name}: {reason}", name=file.skill, reason=why))
                    continue
                kept_as, folder = file.secrets_name(server), os.path.abspath(skill.folder)
                own = self.secrets.get(kept_as or server)
                values = ChainMap(own, self._environment) if source is None else own
                read = parse_entry(server, entry, values, origin="skill", folder=folder)
                found[server] = replace(read, kept_as=kept_as)


def _row(state: ServerState) -> JSON:
    definition = state.definition or ServerDefinition(state.name)
    row = {key: getattr(state, key) for key in ("name", "phase", "reason", "revision")}
    row |= {
        key: getattr(definition, key) for key in ("origin", "version", "audience", "sandboxed", "trusted")
    }
    row |= {"tools": list(state.tools), "missing": list(definition.missing), "said": to_json(state.reason)}
    row["held_back"] = [asdict(one) for one in state.held_back]
    row["dropped"] = [{"tool": tool, "reason": reason} for tool, reason in state.dropped]
    return row


def forget_unused_secrets(data_dir: Path) -> None:
    """Forget the secrets of servers that no installed skill has any more. Blocks."""
    secrets = Secrets(data_dir)
    try:
        skills = current(data_dir)
        if len(skills) < len(list((data_dir / "skills").glob(f"*/{RECORD}"))):
            return  # the record of one cannot be read, whose secrets may be needed again
        used: set[str] = set()
        for one in skills:
            file = SkillFile(one.name, one.folder / "mcp.json", one.source)
            used |= {file.secrets_name(file.server_name(name, ())) for name, _ in file.entries()}
        for path in secrets.folder.glob(f"skill-{'[0-9a-f]' * 24}"):
            if path.name not in used:
                secrets.forget(path.name)
    except FileError as error:
        log.warning("secrets of servers that skills had stay: %s", error)
