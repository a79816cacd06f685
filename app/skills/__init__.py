"""Skills: folders with a SKILL.md, dropped in and found before the next turn."""

from app.skills.loader import InstalledSkills, SkillLoader
from app.skills.skill import RELEASE_SKILLS, Skill, load_skill
from app.skills.workers import Workers

__all__ = ["RELEASE_SKILLS", "InstalledSkills", "Skill", "SkillLoader", "Workers", "load_skill"]
