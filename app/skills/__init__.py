"""Skills: folders with a SKILL.md, dropped in and found before the next turn."""

from app.skills.loader import InstalledSkills, SkillLoader, build_skills
from app.skills.skill import RELEASE_SKILLS, Skill, load_skill
from app.skills.workers import Workers
