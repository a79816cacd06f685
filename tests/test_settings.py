"""What the variables may be, and those of skills: found wherever they were written, and never our own."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import SECRET_VARIABLES, Settings, is_own, skill_environment, take_settings
from app.skills import SkillLoader

WRITTEN = """\
TIDES_STATION=4711
TIDES_UNIT="metres" # of height
BOTH=of the file
EMPTY=
WHATSAPP_APP_SECRET=hush-hush-hush-hush
Admin_Token=hush-hush-hush-hush
DATA_DIR=elsewhere
"""


def test_skills_find_variables_of_the_process_and_of_the_env_file(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text(WRITTEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOTH", "of the process")
    monkeypatch.setenv("OPENAI_API_KEY", "hush-hush-hush-hush")
    take_settings()
    found = skill_environment()
    wanted = {"TIDES_STATION": "4711", "TIDES_UNIT": "metres", "BOTH": "of the process"}
    assert wanted.items() <= found.items()
    assert "EMPTY" not in found
    assert not [name for name, value in found.items() if value in ("hush-hush-hush-hush", "elsewhere")]


def test_our_own_settings_are_never_a_skills() -> None:
    for name in [*SECRET_VARIABLES, "DATA_DIR", "port", "Workspace_Dir", "LLM_MODEL"]:
        assert is_own(name)


def test_a_path_may_begin_at_home_as_in_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("DATA_DIR=~/recado\nDATABASE_URL=sqlite:///~/recado/messages.db\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    settings = Settings()
    assert settings.data_dir == tmp_path / "home" / "recado"
    assert settings.database == tmp_path / "home" / "recado" / "messages.db"


def test_the_line_end_of_a_file_is_no_part_of_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHATSAPP_APP_SECRET", "0123456789abcdef\r\n")
    monkeypatch.setenv("WHATSAPP_ACCESS_TOKEN", " \n")
    monkeypatch.setenv("CONFIRMATION_MODE", "yolo ")
    settings = Settings()
    assert settings.whatsapp_app_secret.get_secret_value() == "0123456789abcdef"
    assert not settings.whatsapp_credentials["WHATSAPP_ACCESS_TOKEN"]
    assert settings.confirmation_mode == "yolo"


def test_what_nothing_could_be_done_with_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in {
        "DATA_QUOTA_MB": "inf",
        "RATE_LIMIT_WINDOW": "1e400",
        "RATE_LIMIT_MAX": "9" * 23,
        "ALLOWED_PHONE_NUMBERS": "5215512345678;5215587654321",
        "OWNER_PHONE_NUMBERS": "+52 55 1234 5678 +52 55 8765 4321",
    }.items():
        with monkeypatch.context() as shell:
            shell.setenv(variable, value)
            with pytest.raises(ValidationError):
                Settings()


EXAMPLE = Path(__file__).parents[1] / ".env.example"


def _example() -> dict[str, str]:
    return dict(re.findall(r"^#([A-Z_]+)=(.*)$", EXAMPLE.read_text("utf-8"), re.MULTILINE))


def test_the_example_file_names_every_setting_and_nothing_else_with_its_default(tmp_path: Path) -> None:
    names = {field.alias or name.upper() for name, field in Settings.model_fields.items()}
    release = SkillLoader(EXAMPLE.parent / "skills")
    release.refresh()
    bundled = [skill for skill in release.skills if skill.bundled]
    assert set(_example()) == names | {name for one in bundled for name in one.manifest.words("settings")}
    uncommented = tmp_path / "env"
    uncommented.write_text("".join(f"{name}={value}\n" for name, value in _example().items()))
    assert Settings(_env_file=uncommented) == Settings(_env_file=None)
