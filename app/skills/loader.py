"""The skills of all folders: compared before each turn, loaded, reloaded, removed."""

import logging
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from app.errors import RecadoError
from app.i18n import lazy
from app.people import Audience
from app.processes.sandbox import Sandbox
from app.security import write_private
from app.settings import Settings
from app.skills.folder import Signature, Stamp, is_skill, signature, stamp
from app.skills.installed import Installed, TreeError, current, is_installed_folder
from app.skills.skill import RELEASE_SKILLS, Skill, broken_skill, bundled_names, load_skill
from app.skills.workers import FailureReporter, Workers
from app.tools import Tool
from app.tools.tool import fitting_name, name_mark

log = logging.getLogger(__name__)

# Names of tools that no skill may bring.
RESERVED = frozenset({"load_skill", "read_skill_file", "run_skill_script"})


def build_skills(
    settings: Settings, sandbox: Sandbox, reporter: FailureReporter
) -> "tuple[SkillLoader, Workers, SkillSwitches]":
    """Build the loader of all skills, with the workers that run their code, and what turns skills off."""
    installed = InstalledSkills(settings, sandbox)
    workers = Workers(prefix=installed.prefix, reporter=reporter)
    loader = SkillLoader(settings.skills_dir, workers=workers, installed=installed)
    return loader, workers, installed.switches


class SkillLoader:
    """Loads the skills of `skills_dir`, the bundled ones of the release, and the `installed` ones.

    `refresh` is called before each turn; the other methods answer from what it found. Without `workers` each
    call of a tool of a folder that is not bundled has a worker of its own; without `runs_code` all are read
    as texts, and no tool's code runs.
    """

    def __init__(
        self,
        skills_dir: Path,
        bundled: Path = RELEASE_SKILLS,
        workers: Workers | None = None,
        installed: "InstalledSkills | None" = None,
        *,
        runs_code: bool = True,
    ) -> None:
        self._skills_dir = skills_dir
        self._release = bundled
        self._workers = workers
        self._runs_code = runs_code
        self._store = installed
        self._records: Mapping[str, Installed] = {}
        self._loaded: dict[str, Skill] = {}
        self.skills: tuple[Skill, ...] = ()  # every one by name, also those that are broken or unavailable
        self.clashes: tuple[str, ...] = ()  # which names two skills share, and what happened to the second
        self.tools: tuple[Tool, ...] = ()  # the tools that may be offered, each under a unique name

    @property
    def skill_names(self) -> Collection[str]:
        """The names of all skills, also of broken and unavailable ones."""
        return {skill.name for skill in self.skills}

    def skill(self, name: str) -> Skill | None:
        """Return the skill of that name, the one in use where folders share it; None where there is none."""
        named = [skill for skill in self.skills if skill.name == name]
        return next((skill for skill in named if skill.available), named[0] if named else None)

    def refresh(self) -> bool:
        """Load what differs from the last look; return False where nothing does: only file times are read."""
        before, after = self._loaded, dict[str, Skill]()
        for path in self._folders():
            version = signature(path)
            if version[0] is not None or is_skill(path):
                after[path] = self._current(path, version)
        self._loaded = after
        is_switched = self._store is not None and self._store.switches.refresh()
        if after == before and not is_switched:
            return False
        self._arrange()
        if self._workers is not None:
            self._workers.keep({skill.folder: skill.version for skill in after.values()})
        return True

    def _folders(self) -> Iterator[str]:
        release, own = os.path.abspath(self._release), os.path.abspath(self._skills_dir)
        paths = [os.path.join(release, name) for name in sorted(bundled_names(self._release))]
        paths += sorted(map(str, Path(own).glob("[!.]*/")))
        if self._store is not None:
            self._records = self._store.records()
        yield from dict.fromkeys((*paths, *self._records))

    def _current(self, path: str, version: Signature) -> Skill:
        known = self._loaded.get(path)
        if known is not None and known.version == version and not self._outdated(known):
            return known
        skill = self._load(Path(path), version)
        for fault in skill.faults:
            log.warning("skill %s (%s): %s", skill.name, path, fault)
        return skill

    def _load(self, folder: Path, version: Signature) -> Skill:
        installed = self._records.get(str(folder))
        try:
            if self._store is not None and installed is not None:
                return self._store.load(installed, release=self._release, workers=self._workers)
            return load_skill(
                folder,
                release=self._release,
                workers=self._workers,
                version=version,
                runs_code=self._runs_code,
            )
        except Exception as error:  # one folder never stops the others
            log.exception("skill folder %s could not be loaded", folder)
            fault = f"it could not be loaded: {type(error).__name__}: {error}"
            return broken_skill(folder, fault, version=version)

    def _outdated(self, skill: Skill) -> bool:
        """Tell whether its record or the sandbox changed, or whether it is set aside."""
        if skill.installed is not None and self._records.get(str(skill.folder)) != skill.installed:
            return True
        if skill.unrun and self._store is not None and self._store.sandbox.refusal() != skill.unrun:
            return True
        return self._workers is not None and self._workers.aside(skill.folder, skill.version) != skill.aside

    def _arrange(self) -> None:
        clashes: list[str] = []
        taken: dict[str, Skill] = {}
        skills: list[Skill] = []
        for skill in sorted(self._loaded.values(), key=_precedence):
            first = taken.setdefault(skill.name, skill)
            if first is not skill:
                named = {"path": first.folder, "name": skill.name}
                reason = lazy("the folder {path} has a skill of the same name {name!r}", **named)
                clashes.append(lazy("{path} is left out: {reason}", path=str(skill.folder), reason=reason))
                skill = replace(skill, tools=(), available=False, reason=skill.reason or reason)
            skills.append(self._store.switches.apply(skill) if self._store is not None else skill)
        tools: dict[str, Tool] = {}
        for skill in sorted(skills, key=lambda one: (not one.bundled, bool(one.installed), one.name)):
            for tool in skill.tools if skill.available else ():
                name = _offered_name(tool.name, skill.name, RESERVED | tools.keys())
                if name != tool.name:
                    clashes.append(f"{skill.name}: the tool {tool.name} is offered as {name}")
                tools[name] = tool if name == tool.name else tool.replace(name=name)
        for clash in sorted(set(clashes) - set(self.clashes)):
            log.warning("skills clash: %s", clash)
        self.skills = tuple(sorted(skills, key=lambda one: (one.name, str(one.folder))))
        self.tools, self.clashes = tuple(tools.values()), tuple(clashes)


class InstalledSkills:
    """The installed skills in DATA_DIR/skills, loaded as their cards allow.

    `sandbox` decides whether their code may run here; its first trial may take seconds.
    """

    def __init__(self, settings: Settings, sandbox: Sandbox | None = None) -> None:
        self._data_dir = settings.data_dir
        self.sandbox = sandbox or Sandbox(settings)
        self.switches = SkillSwitches(settings.data_dir)

    def prefix(self, folder: Path) -> Sequence[str]:
        """Return the sandbox that the worker of an installed skill starts in; others have none."""
        return self.sandbox.command(folder) if is_installed_folder(self._data_dir, folder) else ()

    def records(self) -> Mapping[str, Installed]:
        """Return what is installed, by its folder's absolute path."""
        return {os.path.abspath(one.folder): one for one in current(self._data_dir)}

    def load(self, installed: Installed, *, release: Path, workers: Workers | None) -> Skill:
        """Load one, taking no more than was approved."""
        folder = Path(os.path.abspath(installed.folder))
        version = signature(folder)
        try:
            installed.check()
        except TreeError as error:
            skill = broken_skill(folder, str(error), version=version)
        else:
            skill = load_skill(folder, release=release, workers=workers, version=version, is_installed=True)
        unrun = self.sandbox.refusal() if skill.tools else ""
        # Only `GUEST_TOOLS` opens to guests what came from elsewhere; metadata may only ask for more care.
        audience: Audience = "owners" if installed.audience == "owners" else "members"
        card: dict[str, Any] = {"category": installed.name, "audience": audience, "code": installed.sha256}
        tools = [one.replace(sensitive=one.sensitive or not installed.trusted, **card) for one in skill.tools]
        return replace(
            skill,
            name=installed.name,
            audience=audience,
            tools=() if unrun else tuple(tools),
            reason=skill.reason or (lazy("its tools do not run: {reason}", reason=unrun) if unrun else ""),
            unrun=unrun,
            installed=installed,
        )


class Switch(BaseModel, extra="forbid"):
    """The switches of one skill."""

    off: bool = False
    owners_only: bool = False


_FILE = TypeAdapter(dict[str, Switch])


class SkillSwitches:
    """Skills that an owner turned off or kept for owners: DATA_DIR/skills.json, read again once it changed.

    While it cannot be read, what was read last holds, and all other skills are for owners alone.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "skills.json"
        self._stamp: Stamp = None
        self._switches: dict[str, Switch] = {}
        self._other = Switch()  # of a skill that the file does not name

    def refresh(self) -> bool:
        """Read the file if it changed; return whether it did. Blocks briefly."""
        if (found := stamp(self._path)) == self._stamp:
            return False
        self._stamp = found
        try:
            self._switches, self._other = self._read(), Switch()
        except RecadoError as error:
            self._other = Switch(owners_only=True)
            log.error("skills are for owners alone: %s", error)
        return True

    def of(self, skill: str) -> Switch:
        """Return the switches of a skill, as they were read last."""
        return self._switches.get(skill, self._other)

    def put(self, skill: str, switch: Switch) -> None:
        """Keep the switches of a skill. Raises RecadoError if the file cannot be read. Blocks."""
        kept = {name: one for name, one in {**self._read(), skill: switch}.items() if one != Switch()}
        write_private(self._path, _FILE.dump_json(kept, indent=2))

    def apply(self, skill: Skill) -> Skill:
        """Return a skill as its switches allow."""
        switch = self.of(skill.name)
        if switch.off:
            return replace(skill, tools=(), available=False, reason=lazy("it is turned off in the console"))
        if switch.owners_only:
            tools = tuple(tool.replace(audience="owners") for tool in skill.tools)
            return replace(skill, tools=tools, audience="owners")
        return skill

    def _read(self) -> dict[str, Switch]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise RecadoError(
                f"{self._path} cannot be read ({type(error).__name__}): mend it, or delete it"
            ) from error


def _precedence(skill: Skill) -> tuple[bool, ...]:
    """Sort skills of one name: bundled ones first, as no other may do what they do; installed ones last."""
    is_misnamed = skill.folder.name != skill.name
    return not skill.bundled, bool(skill.installed), not skill.available, bool(skill.faults), is_misnamed


def _offered_name(tool: str, skill: str, taken: Collection[str]) -> str:
    """Return the tool's own name, or `<skill>_<tool>` where another skill has it; always a valid one."""
    for name in (tool, f"{skill}_{tool}"):
        if (valid := fitting_name(name)) not in taken:
            return valid
    return fitting_name(f"{skill}_{name_mark(f'{skill}/{tool}')}_{tool}")
