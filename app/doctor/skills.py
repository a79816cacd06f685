"""Check of the skills on disk."""

from collections.abc import Iterator

from app.doctor.finding import FAIL, OK, WARN, Finding
from app.settings import Settings
from app.skills import RELEASE_SKILLS, SkillLoader
from app.skills.installed_skills import InstalledSkills
from app.skills.skill import bundled_names


def check_skills(settings: Settings) -> Iterator[Finding]:
    """Report faults of skills, those that cannot be used and why, and missing bundled ones."""
    folder = settings.skills_dir
    if "skills_dir" in settings.model_fields_set and not folder.is_dir():
        fact = f"SKILLS_DIR={folder} is no folder: no skill of your own is there"
        yield Finding(FAIL, "skills", fact, "make it, or mend SKILLS_DIR")
    loader = SkillLoader(folder, elsewhere=InstalledSkills.of(settings))
    loader.refresh()
    yield _shipped(loader)
    own = [skill for skill in loader.skills if not (skill.bundled or skill.installed)]
    if own:
        apart = sum(bool(skill.tools) and skill.available for skill in own)
        fact = f"{len(own)} more in {settings.skills_dir}, {apart} with tools, each in a process of its own"
        yield Finding(OK, "skills", fact)
    if installed := [skill for skill in loader.skills if skill.installed]:
        fact = f"{len(installed)} installed from addresses: {', '.join(skill.name for skill in installed)}"
        yield Finding(OK, "skills", fact)
    for skill in loader.skills:
        where = f"{skill.name} ({skill.folder})"
        for fault in skill.faults:
            yield Finding(FAIL, "skills", f"{where}: {fault}", "mend it and try: recado skills check")
        if skill.reason and not skill.faults:
            yield Finding(WARN, "skills", f"{where}: {skill.reason}")
    for clash in loader.clashes:
        yield Finding(WARN, "skills", clash, "rename one of the two")


def _shipped(loader: SkillLoader) -> Finding:
    wanted = bundled_names(RELEASE_SKILLS)
    there = {skill.folder.name for skill in loader.skills if skill.bundled and skill.available}
    if not wanted:
        fact = f"the skills of the release are not in {RELEASE_SKILLS}"
        return Finding(WARN, "skills", fact, "install Recado from its folder: make run")
    if wanted - there:
        fact = f"of the release's skills these do not work: {', '.join(sorted(wanted - there))}"
        return Finding(FAIL, "skills", fact, "bring back their folders from the release")
    return Finding(OK, "skills", f"the release's {len(wanted)} work: {', '.join(sorted(wanted))}")
