"""The skills as commands look at them."""

from app.settings import Settings
from app.skills import SkillLoader
from app.skills.elsewhere import Elsewhere


def read_skills(settings: Settings) -> SkillLoader:
    """What a server would find; no code of theirs runs."""
    loader = SkillLoader(settings.skills_dir, elsewhere=Elsewhere.of(settings), runs_code=False)
    loader.refresh()
    return loader
