"""The example file names every setting, with the default it has."""

import re
from pathlib import Path

from app.settings import Settings
from app.skills import SkillLoader

EXAMPLE = Path(__file__).parents[1] / ".env.example"


def test_example_lists_every_setting_and_nothing_else() -> None:
    names = {field.alias or name.upper() for name, field in Settings.model_fields.items()}
    release = SkillLoader(EXAMPLE.parent / "skills")
    release.refresh()
    of_skills = {
        name for skill in release.skills if skill.bundled for name in skill.manifest.words("settings")
    }
    assert set(_example()) == names | of_skills


def test_example_shows_the_defaults(tmp_path: Path) -> None:
    uncommented = tmp_path / "env"
    uncommented.write_text("".join(f"{name}={value}\n" for name, value in _example().items()))
    named = Settings(_env_file=uncommented)  # type: ignore[call-arg]
    assert named == Settings(_env_file=None)  # type: ignore[call-arg]


def _example() -> dict[str, str]:
    return dict(re.findall(r"^#([A-Z_]+)=(.*)$", EXAMPLE.read_text("utf-8"), re.MULTILINE))
