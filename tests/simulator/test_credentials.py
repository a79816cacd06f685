from pathlib import Path

import pytest

from app.simulator import Credentials, load_credentials


def test_credentials_are_made_once_and_kept_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made = load_credentials(folder)
    assert load_credentials(folder) == made
    assert (folder / "simulator.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["simulator.json"]
    assert made.phone_number_id.isdigit()


def test_each_folder_has_its_own(tmp_path: Path) -> None:
    assert load_credentials(tmp_path / "a") != load_credentials(tmp_path / "b")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"access_token": 1}'])
def test_an_unreadable_file_is_replaced(tmp_path: Path, content: str) -> None:
    (tmp_path / "simulator.json").write_text(content)
    made = load_credentials(tmp_path)
    assert load_credentials(tmp_path) == made


def test_they_do_not_show_their_secrets() -> None:
    shown = repr(Credentials("token-x", "1", "secret-x", "verify-x"))
    assert "-x" not in shown
