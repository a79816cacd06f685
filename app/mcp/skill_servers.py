"""The servers that skills bring: what they are called, and under which name their secrets are kept."""

import hashlib
import logging
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from app.mcp.definitions import LONGEST_NAME, is_server_name
from app.mcp.mapping import MappingError, read_file
from app.mcp.secrets import SecretError, Secrets
from app.messages import JSON
from app.skills import SkillLoader
from app.skills.folder import read_regular
from app.skills.installed import current
from app.skills.servers import read_servers

log = logging.getLogger(__name__)

SkillServers = Callable[[], Iterable[tuple[str, Path, str | None]]]
"""The name of each skill, where its mcp.json would be, and the address it came from, None for one that a
person put on the disk."""


def of_skills(loader: SkillLoader) -> SkillServers:
    """Where those skills may name servers that can be used."""
    return lambda: [
        (skill.name, skill.folder / "mcp.json", skill.installed.source if skill.installed else None)
        for skill in loader.skills
        if skill.available
    ]


def entries_of(path: Path, is_foreign: bool) -> Iterable[tuple[str, JSON]]:
    """Those of a skill's mcp.json. Raises MappingError."""
    if not is_foreign:
        return read_file(path).entries.items()
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


def name_of(skill: str, name: str, is_foreign: bool, taken: Collection[str]) -> str:
    """Its own where that is free; one from elsewhere never gets a name, and with it secrets, of another's."""
    if not is_foreign and name not in taken:
        return name
    joined = f"{skill}_{name}"  # no standard name has a _, so that no two of them are joined to the same
    if is_server_name(joined):
        return joined
    mark = hashlib.sha256(f"{skill}/{name}".encode()).hexdigest()[:10]
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", joined).lstrip("_-")
    return f"{plain[: LONGEST_NAME - 11]}-{mark}"


def kept_as(source: str, name: str) -> str:
    """Under which name the secrets of a skill from elsewhere are kept: one that left that name behind, or a
    skill of the same name from another address, gives it none."""
    return f"skill-{hashlib.sha256(f'{source} {name}'.encode()).hexdigest()[:24]}"


def kept_for(data_dir: Path, skill: str) -> frozenset[str]:
    """Under which names the secrets of the servers are kept that a skill from elsewhere brings now.

    Empty where there is no such skill, or its servers cannot be read. Blocks.
    """
    try:
        return _kept_for(data_dir, skill)
    except MappingError:
        return frozenset()


def forget_gone(data_dir: Path, skill: str, before: frozenset[str]) -> None:
    """Forgets those of the secrets that were kept before a change of a skill which it has no server for any
    more: nothing leads to them. Blocks."""
    secrets = Secrets(data_dir)
    try:
        for name in before - _kept_for(data_dir, skill):
            secrets.forget(name)
    except (MappingError, SecretError) as error:
        log.warning("secrets of the servers that %s had stay: %s", skill, error)


def _kept_for(data_dir: Path, skill: str) -> frozenset[str]:
    return frozenset(
        kept_as(one.source, name_of(one.name, name, True, ()))
        for one in current(data_dir)
        if one.name == skill
        for name, _ in entries_of(one.folder / "mcp.json", True)
    )
