"""Which servers there are: those of the operator's file, those installed, and those that skills bring."""

import hashlib
import logging
import os
import re
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app.i18n import lazy, to_json
from app.mcp import installed
from app.mcp.definitions import LONGEST_NAME, ServerDefinition, ServerState, is_server_name, parse_entry
from app.mcp.files import MappingError, SecretError, Secrets, read_mapping
from app.messages import JSON
from app.processes.sandbox import Grants
from app.settings import Settings
from app.skills.folder import read_regular
from app.skills.installed import RECORD, Installed, current
from app.skills.loader import SkillLoader
from app.skills.servers import read_servers

_KEPT_FOR_SKILL = re.compile(r"skill-[0-9a-f]{24}")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The place of a skill's mcp.json; `source` is the address it came from, None where a person put it."""

    skill: str
    path: Path
    source: str | None = None

    def entries(self) -> Iterable[tuple[str, JSON]]:
        """Return its servers. Raises MappingError."""
        if self.source is None:
            return read_mapping(self.path).items()
        try:
            servers, _ = read_servers(read_regular(self.path))  # what is refused in it stood on its card
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise MappingError(f"{self.path} cannot be read: {error.strerror or error}") from error
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
        except MappingError as error:
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
        own = self._own_secrets(name)
        if not installed.has_record(self._data_dir, name):
            return parse_entry(name, entry, ChainMap(own, self._environment))
        record = installed.read(self._data_dir, name)
        if record is None:
            fault = lazy("the record of what was approved cannot be read; remove it and install it again")
            return ServerDefinition(name, "installed", audience="owners", fault=fault)
        if installed.agrees(record, entry):
            return installed.to_definition(record, own, entry)
        # The operator edited it; it still gets no more than what was approved.
        edited = parse_entry(name, entry, own)
        if not edited.sandboxed or edited.grants != Grants():
            return edited
        approved = installed.to_definition(record, own)
        return replace(edited, grants=approved.grants, home=approved.home)

    def _add_of_skills(self, found: dict[str, ServerDefinition], faults: list[str]) -> None:
        usable = [skill for skill in self._skills.skills if skill.available] if self._skills else []
        for skill in usable:
            source = skill.installed.source if skill.installed else None
            file = SkillFile(skill.name, skill.folder / "mcp.json", source)
            try:
                entries = file.entries()
            except MappingError as error:
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
                else:
                    found[server] = self._of_skill(file, server, entry)

    def _of_skill(self, file: SkillFile, name: str, entry: JSON) -> ServerDefinition:
        kept_as = file.secrets_name(name)
        own = self._own_secrets(kept_as or name)
        values = ChainMap(own, self._environment) if file.source is None else own
        read = parse_entry(name, entry, values, origin="skill", folder=os.path.abspath(file.path.parent))
        return replace(read, kept_as=kept_as)

    def _own_secrets(self, name: str) -> dict[str, str]:
        return self.secrets.get(name) if is_server_name(name) else {}


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
        used = {name for one in skills for name in _secret_names(one)}
        for path in secrets.folder.glob("skill-*"):
            if _KEPT_FOR_SKILL.fullmatch(path.name) and path.name not in used:
                secrets.forget(path.name)
    except (MappingError, SecretError) as error:
        log.warning("secrets of servers that skills had stay: %s", error)


def _secret_names(skill: Installed) -> Iterator[str]:
    file = SkillFile(skill.name, skill.folder / "mcp.json", skill.source)
    return (file.secrets_name(file.server_name(name, ())) for name, _ in file.entries())
