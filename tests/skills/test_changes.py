"""Before each message the files are compared: whatever changes what a skill is counts at the next look."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.skills import SkillLoader
from tests.skills.folders import write

CODE = 'def brew() -> str:\n    """Brews."""\n    return "tea"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Skills in folders of their own and behind links, one as Kubernetes mounts a ConfigMap."""
    root = tmp_path / "place"
    write(root / "skills/tea", CODE)
    write(root / "outside/linked", CODE.replace("brew", "lead"), name="link")
    (root / "skills/link").symlink_to("../outside/linked")
    (root / "outside/linked.py").write_text("")
    (root / "skills/tea/scripts/linked.py").symlink_to("../../../outside/linked.py")
    (root / "skills/later").symlink_to("../outside/later")
    (root / "skills/circle").symlink_to("circle")
    (root / "skills/mapped").mkdir()
    (root / "skills/mapped/SKILL.md").symlink_to("..data/SKILL.md")
    (root / "skills/mapped/..data").symlink_to("..one")
    write(root / "skills/mapped/..one", name="mapped")
    (root / "skills/tea/scripts/rooms/lamps").mkdir(parents=True)
    (root / "skills/tea/scripts/rooms/lamps/__init__.py").write_text("A = 1")
    for name in ("references", "references/more", "assets"):
        (root / "skills/tea" / name).mkdir()
        (root / "skills/tea" / name / "a.md").write_text("A.")
    for folder, _, _ in os.walk(root):
        os.utime(folder, (1, 1))  # its last change is longer ago than file times can tell apart
    return root


def _replace(path: Path, text: str = "x") -> None:
    """Replace a file as editors and installers do."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def _replace_in_time(path: Path) -> None:
    kept = path.stat()
    path.write_text(path.read_text().replace("Brews", "Steep"))
    os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))


def _relink(link: Path, to: str) -> None:
    new = link.with_name("new-link")
    new.symlink_to(to)
    new.replace(link)


def _swap(folder: Path) -> None:
    """Put a copy in place of a whole folder."""
    shutil.copytree(folder, folder.with_name("copy"), symlinks=True)
    folder.rename(folder.with_name("old"))
    folder.with_name("copy").rename(folder)


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file is replaced": lambda root: _replace(root / "skills/tea/SKILL.md"),
    "a module of a package is changed": lambda root: (
        root / "skills/tea/scripts/rooms/lamps/__init__.py"
    ).write_text("A = 22"),
    "a file gets another text of the same length and time": lambda root: _replace_in_time(
        root / "skills/tea/scripts/tools.py"
    ),
    "a folder that a link leads to comes": lambda root: write(root / "outside/later", CODE),
    "a linked file is written": lambda root: (root / "outside/linked.py").write_text("1"),
    "a link leads to another folder": lambda root: _relink(root / "skills/link", "tea"),
    "a ConfigMap is another": lambda root: _relink(root / "skills/mapped/..data", "..two"),
    "all skills are swapped": lambda root: _swap(root / "skills"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_counts_at_the_next_look(root: Path, change: Callable[[Path], object]) -> None:
    loader = SkillLoader(root / "skills", root / "none")
    loader.refresh()
    assert {skill.name for skill in loader.skills} == {"tea", "link", "mapped"}
    assert not loader.refresh()
    change(root)
    assert loader.refresh()
    assert not loader.refresh()
