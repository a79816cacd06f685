"""All skills of the folders: compared before each turn, loaded, reloaded, removed."""

import dataclasses
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from app.skills.manifest import shortened
from app.skills.skill import (
    RELEASE_SKILLS,
    Skill,
    broken_skill,
    bundled_names,
    load_skill,
    missing,
)
from app.tools import Tool

log = logging.getLogger(__name__)

KNOWN_FILES = ("SKILL.md", "scripts/tools.py", "assets/phrases.yaml", "mcp.json")
MAX_TOOL_NAME = 64
SHORTEST_DESCRIPTION = 40

Signature = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of the skills that came, changed and went since the last look."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class SkillLoader:
    """The skills of `skills_dir`, and those that bundled.txt names in the release's own folder."""

    def __init__(self, skills_dir: Path, bundled: Path = RELEASE_SKILLS) -> None:
        self._skills_dir = skills_dir
        self._release = bundled
        self._named: tuple[int, int] | None = (0, 0)
        self._names: frozenset[str] = frozenset()
        self._loaded: dict[str, tuple[Signature, Skill]] = {}
        self._skills: tuple[Skill, ...] = ()
        self._tools: tuple[Tool, ...] = ()
        self._phrases: dict[str, dict[str, tuple[str, ...]]] = {}
        self._clashes: tuple[str, ...] = ()

    @property
    def skills(self) -> tuple[Skill, ...]:
        """Every skill by name, those that are broken or unavailable included."""
        return self._skills

    @property
    def clashes(self) -> tuple[str, ...]:
        """Names that two skills share, and what became of the second, in words."""
        return self._clashes

    def tools(self) -> tuple[Tool, ...]:
        """The tools that may be offered, each under a name of its own."""
        return self._tools

    def phrases(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Example phrases by offered tool name and language."""
        return self._phrases

    def skill(self, name: str) -> Skill | None:
        """The skill of that name, the one in use where folders share it; None where there is none."""
        named = [skill for skill in self._skills if skill.name == name]
        return next((skill for skill in named if skill.available), named[0] if named else None)

    def refresh(self) -> Changes:
        """Looks at the folders and loads what differs: a few file times when nothing does."""
        before = {path: skill for path, (_, skill) in self._loaded.items()}
        self._loaded = {path: self._current(path) for path in self._folders()}
        after = {path: skill for path, (_, skill) in self._loaded.items()}
        changes = Changes(
            added=tuple(skill.name for path, skill in after.items() if path not in before),
            changed=tuple(
                skill.name for path, skill in after.items() if path in before and before[path] is not skill
            ),
            removed=tuple(skill.name for path, skill in before.items() if path not in after),
        )
        if changes:
            self._arrange()
        return changes

    def _folders(self) -> Iterator[str]:
        stamp = _stamp(os.path.join(self._release, "bundled.txt"))
        if stamp != self._named:
            self._named, self._names = stamp, bundled_names(self._release)
        release = os.path.abspath(self._release)
        own = os.path.abspath(self._skills_dir)
        paths = [os.path.join(release, name) for name in sorted(self._names)]
        paths += [os.path.join(own, name) for name in _directories(own)]
        for path in dict.fromkeys(paths):
            if os.path.lexists(os.path.join(path, "SKILL.md")):
                yield path

    def _current(self, path: str) -> tuple[Signature, Skill]:
        """The skill as loaded before where nothing of it changed, else read anew."""
        signature = _signature(path)
        known = self._loaded.get(path)
        if known is not None and known[0] == signature and not self._outdated(known[1]):
            return known
        skill = self._load(Path(path))
        for fault in skill.faults:
            log.warning("skill %s (%s): %s", skill.name, path, fault)
        return signature, skill

    def _load(self, folder: Path) -> Skill:
        try:
            return load_skill(folder, release=self._release)
        except Exception as error:  # one folder never stops the others
            log.exception("skill folder %s could not be loaded", folder)
            return broken_skill(folder, f"it could not be loaded: {type(error).__name__}: {error}")

    def _outdated(self, skill: Skill) -> bool:
        """Whether what it needs of the machine came or went, or bundled.txt no longer names it."""
        needs = skill.manifest.requirements
        if needs and missing(needs) != skill.lacks:
            return True
        return skill.bundled and skill.folder.name not in self._names

    def _arrange(self) -> None:
        clashes: list[str] = []
        taken: dict[str, Skill] = {}
        skills: list[Skill] = []
        for skill in sorted((skill for _, skill in self._loaded.values()), key=self._precedence):
            first = taken.setdefault(skill.name, skill)
            if first is not skill:
                reason = f"the folder {first.folder} has a skill of the same name {skill.name!r}"
                clashes.append(f"{skill.folder} is left out: {reason}")
                skill = dataclasses.replace(skill, tools=(), available=False, reason=reason)
            skills.append(skill)
        tools: dict[str, Tool] = {}
        phrases: dict[str, dict[str, tuple[str, ...]]] = {}
        for skill in sorted(skills, key=lambda one: (not one.bundled, one.name)):
            for tool in skill.tools if skill.available else ():
                name = _offered_name(tool.name, skill.name, tools)
                if name != tool.name:
                    clashes.append(f"{skill.name}: the tool {tool.name} is offered as {name}")
                tools[name] = tool if name == tool.name else tool.replace(name=name)
                if tool.name in skill.phrases:
                    phrases[name] = dict(skill.phrases[tool.name])
        for clash in sorted(set(clashes) - set(self._clashes)):
            log.warning("skills clash: %s", clash)
        self._skills = tuple(sorted(skills, key=lambda one: (one.name, str(one.folder))))
        self._tools, self._phrases, self._clashes = tuple(tools.values()), phrases, tuple(clashes)

    def _precedence(self, skill: Skill) -> tuple[bool, bool, bool, str]:
        """Of one name: a folder that works, one of that very name, the operator's before the release's."""
        shipped = skill.folder.parent != Path(os.path.abspath(self._skills_dir))
        return (bool(skill.faults), skill.folder.name != skill.name, shipped, str(skill.folder))


def skills_summary(skills: Iterable[Skill], limit: int = 8000) -> str:
    """A line "- name: description" for each skill that may be offered.

    Beyond `limit` characters descriptions are shortened evenly; no name is ever left out.
    """
    offered = [skill for skill in skills if skill.available]
    lines = [f"- {skill.name}: {skill.description}" for skill in offered]
    if not offered or sum(map(len, lines)) + len(lines) <= limit:
        return "\n".join(lines)
    names = sum(len(skill.name) + 5 for skill in offered)
    each = max(SHORTEST_DESCRIPTION, (limit - names) // len(offered))
    return "\n".join(f"- {skill.name}: {shortened(skill.description, each)}" for skill in offered)


def _directories(path: str) -> list[str]:
    """Names of the folders in it, links to folders too; none where it is not there."""
    try:
        with os.scandir(path) as entries:
            return sorted(
                entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()
            )
    except OSError:
        return []


def _signature(folder: str) -> Signature:
    return tuple(_stamp(f"{folder}/{name}") for name in KNOWN_FILES)


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _offered_name(tool: str, skill: str, taken: dict[str, Tool]) -> str:
    """The tool's own name, or `<skill>_<tool>` where another skill has it; always a valid one."""
    for name in (tool, f"{skill}_{tool}"):
        if (valid := _valid_name(name)) not in taken:
            return valid
    mark = hashlib.sha256(f"{skill}/{tool}".encode()).hexdigest()[:8]
    return _valid_name(f"{skill}_{mark}_{tool}")


def _valid_name(name: str) -> str:
    """A name that model servers take; a shortened one keeps its end and gets a stable hash in the middle."""
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if len(clean) <= MAX_TOOL_NAME:
        return clean
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{clean[: MAX_TOOL_NAME - 50]}_{mark}_{clean[-40:]}"
