"""The skills as commands read them."""

from app.settings import Settings
from app.skills import SkillLoader
from app.skills.loader import InstalledSkills


def read_skills(settings: Settings) -> SkillLoader:
    """Load all skills as a server does, without running their code."""
    loader = SkillLoader(settings.skills_dir, installed=InstalledSkills.of(settings), runs_code=False)
    loader.refresh()
    return loader
