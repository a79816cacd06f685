"""Trees kept apart until somebody approves them, and what is found of them afterwards."""

import os
from pathlib import Path

import pytest

from app.installs.quarantine import QuarantineError, discard, discard_old, keep, kept, unpack
from app.skills.file_tree import TreeError, check_tree
from tests.skills.archives import SKILL, zipped

SOURCE = "https://example.net/demo.zip"
TIDES = zipped({"SKILL.md": SKILL, "scripts/tools.py": b"print('hi')\n", "assets/nested/a.txt": b""})


def test_what_is_kept_comes_back_the_same_after_a_restart(tmp_path: Path) -> None:
    tree = unpack(TIDES, SOURCE)
    keep(tmp_path, tree)
    keep(tmp_path, tree)
    again = kept(tmp_path, tree.sha256)
    assert (again.files, again.source, again.folder) == (tree.files, SOURCE, tree.folder)
    assert not [path for path in tmp_path.rglob("*.md") if path.stat().st_mode & 0o333]
    discard(tmp_path, tree.sha256)
    discard(tmp_path, tree.sha256)
    assert list((tmp_path / "quarantine").iterdir()) == []
    with pytest.raises(QuarantineError, match="fetch it again"):
        kept(tmp_path, tree.sha256)


def test_what_was_changed_while_it_waited_is_refused(tmp_path: Path) -> None:
    tree = unpack(TIDES, SOURCE)
    keep(tmp_path, tree)
    file = tmp_path / "quarantine" / tree.sha256 / "files" / "SKILL.md"
    file.chmod(0o600)
    file.write_bytes(SKILL + b"And more.\n")
    with pytest.raises(QuarantineError, match="changed"):
        kept(tmp_path, tree.sha256)


@pytest.mark.parametrize("sha256", ["", "..", "a" * 63, "../../../etc" + "a" * 52, "A" * 64])
def test_only_a_hash_names_what_is_kept(tmp_path: Path, sha256: str) -> None:
    with pytest.raises(QuarantineError):
        kept(tmp_path, sha256)
    with pytest.raises(QuarantineError):
        discard(tmp_path, sha256)


def test_what_nobody_answered_is_discarded(tmp_path: Path) -> None:
    old, new = unpack(TIDES, SOURCE), unpack(SKILL, SOURCE)
    keep(tmp_path, old)
    os.utime(tmp_path / "quarantine" / old.sha256, (1000, 1000))
    keep(tmp_path, new)
    assert discard_old(tmp_path, before=2000, asked_about={old.sha256}) == 0
    assert kept(tmp_path, old.sha256).files == old.files
    assert discard_old(tmp_path, before=2000) == 1
    assert kept(tmp_path, new.sha256).files == new.files


def test_what_is_looked_at_once_more_waits_once_more(tmp_path: Path) -> None:
    tree = unpack(SKILL, SOURCE)
    keep(tmp_path, tree)
    os.utime(tmp_path / "quarantine" / tree.sha256, (1000, 1000))
    keep(tmp_path, tree)
    assert discard_old(tmp_path, before=2000) == 0


@pytest.mark.parametrize("kind", ["link", "FIFO", "extra file"])
def test_a_folder_with_more_in_it_is_not_what_was_approved(tmp_path: Path, kind: str) -> None:
    (tmp_path / "SKILL.md").write_bytes(SKILL)
    sha256 = unpack(SKILL, SOURCE).sha256
    check_tree(tmp_path, sha256)
    other = tmp_path / "other"
    if kind == "link":
        other.symlink_to("SKILL.md")
    elif kind == "FIFO":
        os.mkfifo(other)
    else:
        other.write_bytes(b"")
    with pytest.raises(TreeError):
        check_tree(tmp_path, sha256)
