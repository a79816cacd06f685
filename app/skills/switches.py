"""Skills that an owner turned off or kept for owners: DATA_DIR/skills.json, by the names of skills."""

import logging
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from app.errors import RecadoError
from app.security import write_private
from app.skills.folder import Stamp, stamp
from app.skills.skill import Skill

log = logging.getLogger(__name__)

FILE = "skills.json"
TURNED_OFF = "it is turned off in the console"


class Switch(BaseModel):
    """The switches of one skill."""

    model_config = ConfigDict(extra="forbid")

    off: bool = False
    owners_only: bool = False


_FILE = TypeAdapter(dict[str, Switch])


class SkillSwitches:
    """Reads the file again once it changed.

    While it cannot be read, what was read last holds, and all other skills are for owners alone.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
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
            return replace(skill, tools=(), available=False, reason=TURNED_OFF)
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
