"""The servers that skills bring in their mcp.json: their names, and where their secrets are kept."""

import hashlib
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.mcp.mapping_file import MappingError, read_mapping
from app.mcp.pins import LONGEST_NAME, is_server_name
from app.mcp.secrets import SecretError, Secrets
from app.messages import JSON
from app.skills.folder import read_regular
from app.skills.installed import current
from app.skills.servers import read_servers
from app.skills.skill import Skill

log = logging.getLogger(__name__)


class SkillSource(Protocol):
    """Knows the skills that there are now."""

    @property
    def skills(self) -> Sequence[Skill]: ...


@dataclass(frozen=True, slots=True)
class SkillFile:
    """The place of a skill's mcp.json; `source` is the address it came from, None on this disk."""

    skill: str
    path: Path
    source: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Tell whether the skill was installed, and not put on this disk by a person."""
        return self.source is not None

    def entries(self) -> Iterable[tuple[str, JSON]]:
        """Return its servers. Raises MappingError."""
        return _foreign_entries(self.path) if self.is_foreign else read_mapping(self.path).entries.items()

    def server_name(self, name: str, taken: Collection[str]) -> str:
        """Return the name of one of its servers; a skill from elsewhere never gets the name, and with it
        the secrets, of another's."""
        if not self.is_foreign and name not in taken:
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
        if not self.is_foreign:
            return ""
        return f"skill-{hashlib.sha256(f'{self.source} {server}'.encode()).hexdigest()[:24]}"


def skill_files(source: SkillSource) -> list[SkillFile]:
    """Return where the usable skills may name servers."""
    return [
        SkillFile(skill.name, skill.folder / "mcp.json", skill.installed.source if skill.installed else None)
        for skill in source.skills
        if skill.available
    ]


def secret_names(data_dir: Path, skill: str) -> frozenset[str]:
    """Return under which names the secrets of an installed skill's servers are kept.

    Empty if there is no such skill, or its servers cannot be read. Blocks.
    """
    try:
        return frozenset(_secret_names(data_dir, skill))
    except MappingError:
        return frozenset()


def forget_unused_secrets(data_dir: Path, skill: str, before: frozenset[str]) -> None:
    """After a change of a skill, forget the secrets of servers that it does not have any more. Blocks."""
    secrets = Secrets(data_dir)
    try:
        for name in before.difference(_secret_names(data_dir, skill)):
            secrets.forget(name)
    except (MappingError, SecretError) as error:
        log.warning("secrets of the servers that %s had stay: %s", skill, error)


def _secret_names(data_dir: Path, skill: str) -> Iterator[str]:
    for one in current(data_dir):
        if one.name == skill:
            file = SkillFile(one.name, one.folder / "mcp.json", one.source)
            yield from (file.secrets_name(file.server_name(name, ())) for name, _ in file.entries())


def _foreign_entries(path: Path) -> Iterable[tuple[str, JSON]]:
    try:
        servers, _ = read_servers(read_regular(path))  # what is refused in it stood on its card
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise MappingError(f"{path} cannot be read: {error.strerror or error}") from error
    return [
        (one.name, {"url": one.url, "headers": dict(one.headers)})
        if one.url
        else (one.name, {"registry": one.registry, "version": one.version})
        for one in servers
    ]
