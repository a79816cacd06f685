"""Skills: folders with a SKILL.md, dropped in and found before the next turn."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.skills.loader import Changes, SkillLoader, skills_summary
    from app.skills.manifest import Manifest, ManifestError
    from app.skills.runner import Workers
    from app.skills.skill import RELEASE_SKILLS, Skill, load_skill

__all__ = [
    "RELEASE_SKILLS",
    "Changes",
    "Manifest",
    "ManifestError",
    "Skill",
    "SkillLoader",
    "Workers",
    "load_skill",
    "skills_summary",
]

_HOMES = {
    "RELEASE_SKILLS": "skill",
    "Changes": "loader",
    "Manifest": "manifest",
    "ManifestError": "manifest",
    "Skill": "skill",
    "SkillLoader": "loader",
    "Workers": "runner",
    "load_skill": "skill",
    "skills_summary": "loader",
}


def __getattr__(name: str) -> object:
    """Names are imported when they are first used: a worker needs little of this."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
