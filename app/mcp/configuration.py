"""Which servers there are: those of the operator's file, those installed, and those that skills bring."""

import logging
import os
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from app.mcp import installed
from app.mcp.installed import InstalledServer, with_smithery_key
from app.mcp.mapping_file import MappingError, ServerMapping, read_mapping
from app.mcp.pins import ServerDefinition, ServerState, is_server_name
from app.mcp.secrets import Secrets
from app.mcp.server_entry import parse_entry
from app.mcp.skill_servers import SkillFile, SkillSource, skill_files
from app.messages import JSON
from app.processes.sandbox import Grants
from app.settings import Settings
from app.skills.folder import stamp, stamps_below

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WantedServer:
    """A server of the registry that a skill names and that is not installed; `version` "" is the newest."""

    skill: str
    registry_id: str
    version: str = ""


class Configuration:
    """The servers as they are configured, read again when one of the files has changed.

    `environment` fills in `${VARIABLE}` of what the operator wrote, after the server's own secrets.
    """

    def __init__(
        self, settings: Settings, environment: Mapping[str, str], skills: SkillSource | None = None
    ) -> None:
        self.path = settings.mcp_config_path
        self.secrets = Secrets(settings.data_dir)
        self._smithery_key = settings.smithery_api_key.get_secret_value()
        self._data_dir = settings.data_dir
        self._environment = dict(environment)
        self._skills = skills
        self._stamps: object = None
        self._mapping = ServerMapping({})
        self._definitions: tuple[ServerDefinition, ...] = ()
        self._faults: tuple[str, ...] = ()
        self._wanted: tuple[WantedServer, ...] = ()

    @property
    def faults(self) -> Sequence[str]:
        """The faults of whole files, a line each, with the cure."""
        return self._faults

    @property
    def wanted(self) -> Sequence[WantedServer]:
        """The servers that skills would like to have installed."""
        return self._wanted

    def look(self) -> Sequence[ServerDefinition]:
        """Return every server under a name of its own; the same object while nothing has changed.

        If the file is broken the servers that it named before stay. Blocks briefly; never raises.
        """
        files = skill_files(self._skills) if self._skills is not None else []
        stamps = (
            stamp(self.path),
            [(file, stamp(file.path)) for file in files],
            stamps_below(self._data_dir / "mcp", installed.RECORD),
            stamps_below(self.secrets.folder),
        )
        if stamps != self._stamps:  # taken before the reading: a change meanwhile is read the next time
            self._read(files)
            self._stamps = stamps
        return self._definitions

    def report(self, states: Sequence[ServerState]) -> JSON:
        """Return the servers and their states as JSON, without commands, addresses and secrets."""
        return {
            "servers": [_row(state) for state in states],
            "faults": list(self._faults),
            "wanted": [asdict(one) for one in self._wanted],
        }

    def _read(self, files: Iterable[SkillFile]) -> None:
        faults: list[str] = []
        try:
            self._mapping = read_mapping(self.path)
            faults += self._mapping.notes
        except MappingError as error:
            kept = "; the servers that it named before stay" if self._mapping.entries else ""
            faults.append(f"{error}{kept}")
        records = {record.name: record for record in installed.records(self._data_dir)}
        found = {name: self._of_file(name, entry, records) for name, entry in self._mapping.entries.items()}
        wanted = self._add_of_skills(files, found, faults)
        for fault in set(faults) - set(self._faults):
            log.warning("%s", fault)
        installed_ids = {record.registry_id for record in records.values()}
        self._definitions = tuple(found.values())
        self._faults = tuple(faults)
        self._wanted = tuple(one for one in wanted if one.registry_id not in installed_ids)

    def _of_file(self, name: str, entry: JSON, records: Mapping[str, InstalledServer]) -> ServerDefinition:
        """Return the server of an entry; what was approved, as long as it agrees with an install's record."""
        own = self._own_secrets(name)
        record = records.get(name)
        if record is None and installed.has_record(self._data_dir, name):
            fault = "the record of what was approved cannot be read; remove it and install it again"
            return ServerDefinition(name, "installed", audience="owners", fault=fault)
        if record is None:
            return parse_entry(name, entry, ChainMap(own, self._environment))
        if installed.agrees(record, entry):
            enabled = entry.get("enabled", True) is not False
            keyed = with_smithery_key(record, self._smithery_key, own)
            return replace(installed.to_definition(keyed, own), enabled=enabled)
        # The operator edited it; it still gets no more than what was approved.
        edited = parse_entry(name, entry, own)
        if not edited.sandboxed or edited.grants != Grants():
            return edited
        approved = installed.to_definition(record, own)
        return replace(edited, grants=approved.grants, home=approved.home)

    def _add_of_skills(
        self, files: Iterable[SkillFile], found: dict[str, ServerDefinition], faults: list[str]
    ) -> list[WantedServer]:
        """Add the servers of skills to those found; return what the skills would like to have."""
        wanted: list[WantedServer] = []
        for file in files:
            try:
                entries = file.entries()
            except MappingError as error:
                faults.append(f"skill {file.skill}: {error}")
                continue
            for name, entry in entries:
                server = file.server_name(name, found)
                if isinstance(entry, dict) and "registry" in entry:
                    version = str(entry.get("version", ""))
                    wanted.append(WantedServer(file.skill, str(entry["registry"]), version))
                elif server in found:
                    faults.append(
                        f"skill {file.skill}: its server {name} is left out: there is another {server}"
                    )
                else:
                    found[server] = self._of_skill(file, server, entry)
        return wanted

    def _of_skill(self, file: SkillFile, name: str, entry: JSON) -> ServerDefinition:
        kept_as = file.secrets_name(name)
        own = self._own_secrets(kept_as or name)
        values = own if file.is_foreign else ChainMap(own, self._environment)
        read = parse_entry(name, entry, values, origin="skill", folder=os.path.abspath(file.path.parent))
        return replace(read, kept_as=kept_as)

    def _own_secrets(self, name: str) -> dict[str, str]:
        return self.secrets.get(name) if is_server_name(name) else {}


def _row(state: ServerState) -> JSON:
    definition = state.definition or ServerDefinition(state.name)
    return {
        "name": state.name,
        "phase": state.phase,
        "reason": state.reason,
        "kind": "remote" if definition.url else "program",
        "origin": definition.origin,
        "version": definition.version,
        "audience": definition.audience,
        "sandboxed": definition.sandboxed,
        "trusted": definition.trusted,
        "revision": state.revision,
        "tools": list(state.tools),
        "held_back": [
            {"tool": one.tool, "before": one.before, "after": one.after} for one in state.held_back
        ],
        "dropped": [{"tool": tool, "reason": reason} for tool, reason in state.dropped],
        "missing": list(definition.missing),
        "exposed": list(definition.exposed),
        "deaths": state.deaths,
    }
