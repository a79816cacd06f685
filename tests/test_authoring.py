"""Skill folders that an author begins, brings in and takes out."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.skills import load_skill
from app.skills.authoring import AuthoringError, OwnSkills
from app.skills.folder import MAX_FILES
from app.skills.manifest import read_manifest
from tests.skills.folders import write

STANDARD_FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}


@pytest.fixture
def own(tmp_path: Path) -> OwnSkills:
    release = tmp_path / "release"
    release.mkdir()
    (release / "bundled.txt").write_text("clock\n")
    return OwnSkills(tmp_path / "mine", tmp_path / "kept", release)


def lamps(place: Path, name: str = "lamps", says: str = "Switches a lamp.") -> Path:
    return write(place / name, f'def switch_lamp(room: str):\n    """{says}"""\n', about="Lamps.")


def test_a_new_skill_is_valid_under_the_standard_and_without_a_warning(own: OwnSkills) -> None:
    for name in ("groceries", "3d-prints", "x" * 64):
        skill = own.new(name)
        assert (skill.name, skill.folder.name) == (name, name)
        assert skill.faults == skill.warnings == ()
        assert len(skill.tools) == 2
        assert all(tool.phrases for tool in skill.tools)
        assert all(len(said) > 1 for tool in skill.tools for said in tool.phrases.values())
        manifest = read_manifest((skill.folder / "SKILL.md").read_bytes(), name)
        assert set(manifest.fields) <= STANDARD_FIELDS
        assert all(isinstance(value, str) for value in manifest.fields["metadata"].values())


@pytest.mark.slow
def test_the_tests_of_a_new_skill_run_with_plain_pytest_and_without_recado(own: OwnSkills) -> None:
    folder = own.new("groceries").folder
    sources = [*folder.glob("scripts/*.py"), *folder.glob("tests/*.py")]
    assert not re.search(r"^\s*(from|import) app\b", "\n".join(map(Path.read_text, sources)), re.MULTILINE)
    pytest_alone = [sys.executable, "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(pytest_alone, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    assert load_skill(folder).warnings == ()


def test_a_name_that_cannot_be_or_is_taken_is_refused(own: OwnSkills, tmp_path: Path) -> None:
    for name in ("", "Groceries", "../up", "a--b", "año", "x" * 65):
        with pytest.raises(AuthoringError, match="lowercase letters, digits and single hyphens"):
            own.new(name)
    assert not (tmp_path / "mine").exists()
    own.new("groceries")
    write(tmp_path / "mine" / "other", name="lamps")
    (tmp_path / "mine" / "half-done").mkdir()
    for name in ("groceries", "lamps", "half-done", "clock"):
        with pytest.raises(AuthoringError, match="already"):
            own.new(name)


def test_a_folder_is_copied_whole_under_the_skills_name_without_hidden_files_and_caches(own, tmp_path):
    source = lamps(tmp_path / "elsewhere").rename(
        tmp_path / "elsewhere" / "Lamps-main"
    )  # as it is downloaded
    (source / "references").mkdir()
    (source / "references" / "rooms.md").write_text("kitchen")
    (source / "rooms.md").symlink_to("references/rooms.md")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    for hidden in (".git/config", "__pycache__/tools.pyc", ".env"):
        (source / hidden).parent.mkdir(exist_ok=True)
        (source / hidden).write_text("x")
    copy = tmp_path / "mine" / "lamps"
    assert own.add(source).folder == copy
    files = {str(one.relative_to(copy)) for one in copy.rglob("*") if not one.is_dir()}
    assert files == {"SKILL.md", "scripts/tools.py", "references/rooms.md", "rooms.md", "run.sh"}
    assert (copy / "rooms.md").read_text() == "kitchen"
    assert os.access(copy / "run.sh", os.X_OK)
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["lamps"]


def _rename(folder: Path) -> None:
    (folder / "SKILL.md").write_text("---\nname: Über\ndescription: Lamps.\n---\n")
    folder.rename(folder.parent / "Über")


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: os.mkfifo(folder / "pipe"), "is a named pipe"),
    (lambda folder: [(folder / f"{number}.txt").touch() for number in range(MAX_FILES)], "too big"),
    (lambda folder: (folder / "large.bin").write_bytes(bytes(9 * 1024 * 1024)), "too big"),
    (lambda folder: (folder / "SKILL.md").write_text("---\nname: lamps\n---\n"), "has no description"),
    (lambda folder: (folder / "scripts" / "tools.py").write_text("def oops(:\n"), "tools.py"),
    (_rename, "'Über' cannot be a skill's name"),
]


def test_what_cannot_be_taken_leaves_nothing_behind(own: OwnSkills, tmp_path: Path) -> None:
    for number, (spoil, words) in enumerate(SPOILT):
        spoil(lamps(tmp_path / f"down{number}"))
        (source,) = (tmp_path / f"down{number}").iterdir()
        with pytest.raises((AuthoringError, OSError), match=re.escape(words)):
            own.add(source)
        assert not list((tmp_path / "mine").glob("*"))
