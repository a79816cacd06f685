"""Variables of skills: found wherever the operator wrote them, and never our own."""

from pathlib import Path

import pytest

from app.settings import SECRET_VARIABLES, is_own, skill_environment, take_settings

WRITTEN = """\
TIDES_STATION=4711
TIDES_UNIT="metres" # of height
BOTH=of the file
EMPTY=
WHATSAPP_APP_SECRET=hush
Admin_Token=hush
DATA_DIR=elsewhere
"""


def test_skills_find_variables_of_the_process_and_of_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text(WRITTEN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BOTH", "of the process")
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    take_settings()
    found = skill_environment()
    assert (found["TIDES_STATION"], found["TIDES_UNIT"], found["BOTH"]) == (
        "4711",
        "metres",
        "of the process",
    )
    assert "EMPTY" not in found
    assert not [name for name, value in found.items() if value in ("hush", "elsewhere")]


def test_there_need_be_no_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDES_STATION", "12")
    assert skill_environment()["TIDES_STATION"] == "12"


@pytest.mark.parametrize("name", [*SECRET_VARIABLES, "DATA_DIR", "port", "Workspace_Dir", "LLM_MODEL"])
def test_our_own_settings_are_never_a_skills(name: str) -> None:
    assert is_own(name)


@pytest.mark.parametrize("name", ["TIDES_STATION", "HOME", "RECADO"])
def test_other_variables_are(name: str) -> None:
    assert not is_own(name)
