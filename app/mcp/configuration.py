"""Which servers there are: the operator's file, what was installed, and what skills bring."""

import logging
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.mcp import installed
from app.mcp.declared import declare
from app.mcp.definitions import ServerDefinition, is_server_name
from app.mcp.hosting import with_smithery_key
from app.mcp.installed import InstalledServer
from app.mcp.mapping import MappingError, Servers, read_file
from app.mcp.secrets import Secrets
from app.mcp.skill_servers import SkillServers, entries_of, kept_as, name_of
from app.messages import JSON
from app.processes.sandbox import Grants
from app.settings import Settings
from app.skills.folder import stamp, stamps_below

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A server of the registry that a skill names and that is not installed; `version` "" is the newest."""

    skill: str
    registry_id: str
    version: str = ""


class Configuration:
    """The servers as they are written down, read again when a file of theirs has changed.

    `environment` fills in `${VARIABLE}` of what the operator wrote, after the server's own secrets.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        skill_servers: SkillServers = lambda: (),
    ) -> None:
        self.path = settings.mcp_config_path
        self.secrets = Secrets(settings.data_dir)
        self._smithery_key = settings.smithery_api_key.get_secret_value()
        self._data_dir = settings.data_dir
        self._environment = dict(environment)
        self._skill_servers = skill_servers
        self._seen: object = None
        self._servers = Servers({})
        self._definitions: tuple[ServerDefinition, ...] = ()
        self._faults: tuple[str, ...] = ()
        self._wanted: tuple[Wanted, ...] = ()

    @property
    def faults(self) -> Sequence[str]:
        """What is wrong with whole files, a line each, with the cure."""
        return self._faults

    @property
    def wanted(self) -> Sequence[Wanted]:
        """What skills would like to have installed."""
        return self._wanted

    def look(self) -> Sequence[ServerDefinition]:
        """Every server under a name of its own; the same object while nothing has changed. Blocks briefly.

        Where the file is broken the servers that it named before stay. Never raises.
        """
        skills = tuple(self._skill_servers())
        seen = (
            stamp(self.path),
            [(skill, source, stamp(path)) for skill, path, source in skills],
            stamps_below(self._data_dir / "mcp", installed.RECORD),
            stamps_below(self.secrets.folder),
        )
        if seen != self._seen:  # of before the reading: what changes meanwhile is read the next time
            self._read(skills)
            self._seen = seen
        return self._definitions

    def _read(self, skills: Iterable[tuple[str, Path, str | None]]) -> None:
        faults: list[str] = []
        try:
            self._servers = read_file(self.path)
            faults += self._servers.notes
        except MappingError as error:
            kept = "; the servers that it named before stay" if self._servers.entries else ""
            faults.append(f"{error}{kept}")
        records = {record.name: record for record in installed.records(self._data_dir)}
        found = {name: self._written(name, entry, records) for name, entry in self._servers.entries.items()}
        wanted = self._add_of_skills(skills, found, faults)
        for fault in set(faults) - set(self._faults):
            log.warning("%s", fault)
        there = {record.registry_id for record in records.values()}
        self._definitions = tuple(found.values())
        self._faults = tuple(faults)
        self._wanted = tuple(one for one in wanted if one.registry_id not in there)

    def _written(self, name: str, entry: JSON, records: Mapping[str, InstalledServer]) -> ServerDefinition:
        """What stands in the file; while it agrees with the record of an install, what was approved."""
        own = self._own(name)
        record = records.get(name)
        if record is None and _has_record(self._data_dir, name):
            fault = "the record of what was approved cannot be read; remove it and install it again"
            return ServerDefinition(name, "installed", audience="owners", fault=fault)
        if record is None:
            return declare(name, entry, ChainMap(own, self._environment))
        if installed.agrees(record, entry):
            enabled = entry.get("enabled", True) is not False
            keyed = with_smithery_key(record, self._smithery_key, own)
            return replace(installed.definition(keyed, own), enabled=enabled)
        # The operator's by now; still it is given no more than what its yes was for.
        edited = declare(name, entry, own)
        if not edited.sandboxed or edited.grants != Grants():
            return edited
        approved = installed.definition(record, own)
        return replace(edited, grants=approved.grants, home=approved.home)

    def _add_of_skills(
        self,
        skills: Iterable[tuple[str, Path, str | None]],
        found: dict[str, ServerDefinition],
        faults: list[str],
    ) -> list[Wanted]:
        """Adds what skills bring to what was found; gives what they would like to have."""
        wanted: list[Wanted] = []
        for skill, path, source in skills:
            try:
                entries = entries_of(path, source is not None)
            except MappingError as error:
                faults.append(f"skill {skill}: {error}")
                continue
            for name, entry in entries:
                called = name_of(skill, name, source is not None, found)
                if isinstance(entry, dict) and "registry" in entry:
                    wanted.append(Wanted(skill, str(entry["registry"]), str(entry.get("version", ""))))
                elif called in found:
                    faults.append(f"skill {skill}: its server {name} is left out: there is another {called}")
                else:
                    found[called] = self._of_skill(called, entry, path, source)
        return wanted

    def _of_skill(self, name: str, entry: JSON, path: Path, source: str | None) -> ServerDefinition:
        kept = kept_as(source, name) if source is not None else ""
        own = self._own(kept or name)
        values = own if source is not None else ChainMap(own, self._environment)
        declared = declare(name, entry, values, origin="skill", folder=os.path.abspath(path.parent))
        return replace(declared, kept_as=kept)

    def _own(self, name: str) -> dict[str, str]:
        return self.secrets.get(name) if is_server_name(name) else {}


def _has_record(data_dir: Path, name: str) -> bool:
    return is_server_name(name) and (data_dir / "mcp" / name / installed.RECORD).exists()
