"""The operator's own skill folders: made, copied in, removed. Each appears or goes in one step."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from string import Template

from app.errors import RecadoError
from app.i18n import program
from app.skills.folder import NOT_COUNTED, is_skill
from app.skills.manifest import is_standard_name
from app.skills.skill import RELEASE_SKILLS, Skill, bundled_names, is_bundled, load_skill

# What `recado skills new` writes: a small skill that works, made to be changed; .txt is left off.
_NEW_SKILL = Path(__file__).with_name("new_skill")
_LONGEST_NAME = 50  # characters of a removed folder's name: with its stamp it must fit into 255 bytes


class AuthoringError(RecadoError):
    """A skill that cannot be made, added or removed; the text says why and what to do."""


class OwnSkills:
    """Makes, adds and removes the folders of `skills_dir`; `removed` keeps what was removed."""

    def __init__(self, skills_dir: Path, removed: Path, release: Path = RELEASE_SKILLS) -> None:
        self._folder = skills_dir
        self._removed = removed
        self._release = release

    def new(self, name: str) -> Skill:
        """Write a small skill that works. Raises AuthoringError for a name that cannot be or is taken."""
        target = self._free_place(name)
        words, stem = name.replace("-", " "), name.replace("-", "_")
        names = {"words": words, "title": words.capitalize(), "stem": stem, "upper": stem.upper()}
        with _arriving(target) as folder:
            for template in _NEW_SKILL.rglob("*.txt"):
                file = folder / template.relative_to(_NEW_SKILL).with_suffix("")
                file.parent.mkdir(exist_ok=True)
                text = Template(template.read_text("utf-8")).substitute(names, name=name)
                file.write_text(text, encoding="utf-8")
            folder.rename(target)
        return self._load(target)

    def add(self, source: Path) -> Skill:
        """Copy a skill folder in. Raises AuthoringError for one with faults, and for a name that is taken."""
        source = Path(os.path.abspath(source))
        skill = self._load(source)
        if skill.faults:
            faults = "\n".join(f"  {fault}" for fault in skill.faults)
            raise AuthoringError(f"{source} has faults and was not added:\n{faults}")
        name = next((one for one in (skill.name, source.name) if is_standard_name(one)), skill.name)
        target = self._free_place(name, skill.name)
        with _arriving(target) as folder:
            hidden = shutil.ignore_patterns(".*", *NOT_COUNTED)
            shutil.copytree(source, folder, symlinks=True, ignore=hidden, dirs_exist_ok=True)
            folder.rename(target)
        return self._load(target)

    def remove(self, name: str) -> Path:
        """Remove a skill by its folder's or its own name; return where it is kept. Raises AuthoringError."""
        found = self._find(name)
        if found is not None:
            self._removed.mkdir(parents=True, exist_ok=True)
            kept = self._removed / f"{found.name[:_LONGEST_NAME]}-{datetime.now():%Y%m%d-%H%M%S-%f}"
            return Path(shutil.move(found, kept))
        names = ", ".join(folder.name for folder in self._own()) or "none"
        raise AuthoringError(f"no skill of yours is named {name!r}; there are: {names}")

    def _own(self) -> Iterator[Path]:
        for folder in sorted(self._folder.iterdir()) if self._folder.is_dir() else ():
            if not folder.name.startswith(".") and is_skill(folder) and not is_bundled(folder, self._release):
                yield folder

    def _find(self, name: str) -> Path | None:
        """Return the folder of that name, else the one whose SKILL.md has that name."""
        folders = list(self._own())
        exact = next((folder for folder in folders if folder.name == name), None)
        return exact or next((folder for folder in folders if self._load(folder).name == name), None)

    def _free_place(self, *names: str) -> Path:
        """Return the place of a new skill of the first name. Raises AuthoringError if one is taken."""
        if not is_standard_name(names[0]):
            raise AuthoringError(
                f"{names[0]!r} cannot be a skill's name: 1 to 64 lowercase letters, digits and single "
                "hyphens, such as tide-tables"
            )
        target = self._folder / names[0]
        if os.path.lexists(target) or any(map(self._find, names)) or bundled_names(self._release) & {*names}:
            raise AuthoringError(
                f"there is a skill {names[0]!r} already; choose another name, or take that one out first: "
                f"{program()} skills remove {names[0]}"
            )
        return target

    def _load(self, folder: Path) -> Skill:
        return load_skill(folder, release=self._release)


@contextmanager
def _arriving(target: Path) -> Iterator[Path]:
    """Make a hidden folder beside the target, to be renamed once it is whole."""
    folder = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
