"""The skills that came from elsewhere, as the loader asks for them: checked, no freer than their cards."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills.file_tree import TreeError
from app.skills.folder import Stamp, signature, stamp, stamps_below
from app.skills.installed import RECORD, Installed, current
from app.skills.phrases import phrases
from app.skills.runner import Workers
from app.skills.skill import Skill, broken_skill, load_skill
from app.tools import Tool


class InstalledSkills:
    """The current versions in DATA_DIR/skills.

    `refusal()` says why code from elsewhere must not run here, "" where it may; it may take seconds.
    """

    def __init__(self, data_dir: Path, refusal: Callable[[], str]) -> None:
        self._data_dir = data_dir
        self._refusal = refusal
        self._stamps: Mapping[str, Stamp] = {}
        self._installed: dict[str, Installed] = {}
        self._phrases: dict[str, Stamp] = {}

    @classmethod
    def of(cls, settings: Settings) -> "InstalledSkills":
        """As the settings say; a trial of the sandbox decides once it matters."""
        return cls(settings.data_dir, Sandbox(settings).refusal)

    def look(self) -> Mapping[str, Installed]:
        """What is installed, by its folder's absolute path: a few file times where nothing changed."""
        stamps = stamps_below(self._data_dir / "skills", RECORD)
        if stamps != self._stamps:
            self._stamps = stamps
            self._installed = {os.path.abspath(one.folder): one for one in current(self._data_dir)}
        return self._installed

    def load(self, installed: Installed, *, release: Path, workers: Workers | None) -> Skill:
        """Reads all of it, and takes no more than was approved."""
        folder = Path(os.path.abspath(installed.folder))
        version = signature(folder)
        try:
            installed.check()
        except TreeError as error:
            skill = broken_skill(folder, str(error), version=version)
        else:
            skill = load_skill(folder, release=release, workers=workers, version=version, from_elsewhere=True)
        unrun = self._refusal() if skill.tools else ""
        self._phrases[str(folder)] = stamp(installed.phrases)
        brought = {tool: said for tool, said in skill.phrases.items() if any(said.values())}
        silent = {tool.name: tool.description for tool in skill.tools if tool.name not in brought}
        written = phrases(installed.phrases, silent)
        return replace(
            skill,
            phrases={**brought, **written},
            written=frozenset(written),
            name=installed.name,
            audience=installed.audience,
            tools=() if unrun else tuple(_limited(tool, installed) for tool in skill.tools),
            reason=skill.reason or (f"its tools do not run: {unrun}" if unrun else ""),
            unrun=unrun,
            installed=installed,
        )

    def is_outdated(self, skill: Skill) -> bool:
        """Whether it was approved anew, its phrases are others, or its code may or may not run by now."""
        installed = self._installed.get(str(skill.folder))
        if installed is None or installed != skill.installed:
            return True
        if stamp(installed.phrases) != self._phrases.get(str(skill.folder)):
            return True
        return bool(skill.unrun) and self._refusal() != skill.unrun


def _limited(tool: Tool, installed: Installed) -> Tool:
    """What its own metadata says may only ask for more care."""
    return tool.replace(
        category=installed.name,
        sensitive=tool.sensitive or installed.is_sensitive,
        audience=installed.audience,
        code=installed.sha256,
    )
