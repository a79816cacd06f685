"""The skills as commands look at them."""

from app.settings import Settings
from app.skills import SkillLoader
from app.skills.installed_skills import InstalledSkills


def read_skills(settings: Settings) -> SkillLoader:
    """What a server would find; no code of theirs runs."""
    loader = SkillLoader(settings.skills_dir, elsewhere=InstalledSkills.of(settings), runs_code=False)
    loader.refresh()
    return loader
