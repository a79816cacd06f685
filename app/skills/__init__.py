"""Skills: folders with a SKILL.md, dropped in and found before the next turn."""

from typing import TYPE_CHECKING

from app.lazy import lazily

if TYPE_CHECKING:
    from app.skills.loader import Changes, SkillLoader
    from app.skills.manifest import Manifest, ManifestError
    from app.skills.runner import Workers
    from app.skills.skill import RELEASE_SKILLS, Skill, load_skill

__getattr__ = lazily(
    __name__,
    {
        "loader": ("Changes", "SkillLoader"),
        "manifest": ("Manifest", "ManifestError"),
        "runner": ("Workers",),
        "skill": ("RELEASE_SKILLS", "Skill", "load_skill"),
    },
)
