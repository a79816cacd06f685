"""Skills: folders with a SKILL.md, dropped in and found before the next turn."""

from app.skills.loader import Changes, SkillLoader, skills_summary
from app.skills.manifest import Manifest, ManifestError
from app.skills.skill import RELEASE_SKILLS, Skill, load_skill

__all__ = [
    "RELEASE_SKILLS",
    "Changes",
    "Manifest",
    "ManifestError",
    "Skill",
    "SkillLoader",
    "load_skill",
    "skills_summary",
]
