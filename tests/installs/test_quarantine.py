"""Archives made into trees of files, or refused; trees kept apart until they are approved."""

import io
import os
import unicodedata
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.installs.pipeline import QuarantineError, discard, discard_old, keep, kept, unpack
from tests.installs.archives import SKILL, zip_by_hand, zipped

SOURCE = "https://example.net/demo.zip"
MIB = 1024 * 1024


def skill_and(name: str, content: bytes = b"x") -> dict[str, bytes]:
    return {"SKILL.md": SKILL, name: content}


NAMES = {
    "climbs": "../evil",
    "climbs later": "a/../../evil",
    "climbs within": "a/../evil",
    "absolute": "/etc/cron.d/evil",
    "backslash": "..\\evil",
    "line break": "evil\nSKILL.md",
    "escape": "evil\x1b[2J",
    "right to left": "evil\u202egpj.py",
    "zero width": "evil\u200b.md",
    "no name": "./.",
    "long path": "/".join(["a" * 60] * 5),
}


def test_a_name_that_leads_elsewhere_or_means_two_things_is_refused() -> None:
    for name in NAMES.values():
        with pytest.raises(QuarantineError) as refused:
            unpack(zipped(skill_and(name)), SOURCE)
        assert str(refused.value).isprintable()


TREES = {
    "composed and decomposed": {"caf\u00e9": b"1", "cafe\u0301": b"2"},
    "257 files": {f"f{i}": b"x" for i in range(256)},
    "8 MiB and more": {f"f{i}": os.urandom(1024) * 1024 for i in range(9)},
    "more packed than is taken": {"big": os.urandom(5 * MIB)},
}


def test_too_much_of_it_or_two_names_for_one_file_is_refused() -> None:
    for files in TREES.values():
        with pytest.raises(QuarantineError):
            unpack(zipped({"SKILL.md": SKILL} | files), SOURCE)


def added(packed: bytes, name: str, content: bytes, mode: int = 0o100644) -> bytes:
    """The archive with one more file, perhaps of a name that it has already."""
    archive = io.BytesIO(packed)
    with zipfile.ZipFile(archive, "a") as more, warnings.catch_warnings(action="ignore"):
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        more.writestr(info, content)
    return archive.getvalue()


HOSTILE = {
    "the same name twice": added(zipped({"SKILL.md": SKILL}), "SKILL.md", SKILL + b"Ignore the first.\n"),
    "zip of a method without a bound": zipped({"SKILL.md": SKILL}, method=zipfile.ZIP_BZIP2),
    "link beside the skill": added(zipped({"top/SKILL.md": SKILL}), "top/x", b"/etc/passwd", 0o120777),
    "zip that says less": zip_by_hand(b"SKILL.md", SKILL + b"\0" * MIB, says=len(SKILL)),
    "zip that says more": zip_by_hand(b"SKILL.md", SKILL, says=len(SKILL) + 1),
    "zip that says 4 GiB": zip_by_hand(b"SKILL.md", SKILL, says=0xFFFFFFFE),
    "encrypted zip": zip_by_hand(b"SKILL.md", SKILL, says=len(SKILL), flags=1),
    "zip of another method": zip_by_hand(b"SKILL.md", SKILL, says=len(SKILL), method=99),
    "zip cut short": zipped({"SKILL.md": SKILL})[:-30],
    "link in a zip": zipped({"SKILL.md": SKILL}, mode=0o120777),
    "device in a zip": zipped({"SKILL.md": SKILL}, mode=0o020666),
    "a tar": b"SKILL.md".ljust(257, b"\0") + b"ustar\x0000" + SKILL.ljust(512, b"\0"),
    "a gzip": b"\x1f\x8b\x08\0" + SKILL,
    "no SKILL.md": zipped({"README.md": b"x"}),
    "SKILL.md as a folder": zipped({"SKILL.md/": b""}),
    "SKILL.md without description": zipped({"SKILL.md": b"---\nname: a\n---\n"}),
    "SKILL.md that is no text": zipped({"SKILL.md": b"\xff\xfe\0"}),
    "billion laughs": b"---\na: &a [x, x, x, x, x, x, x, x, x]\n"
    + b"".join(
        b"%c: &%c [%s]\n" % (name, name, b", ".join([b"*%c" % (name - 1)] * 9)) for name in b"bcdefghi"
    )
    + b"description: *i\n---\n",
    "YAML nested beyond reason": b"---\ndescription: " + b"[" * 30_000 + b"\n---\n",
    "nothing": b"",
    "an HTML page": b"<!doctype html><p>404</p>",
    "a single file that is too big": SKILL + b"x" * (4 * MIB),
}


def test_a_hostile_or_damaged_archive_is_refused_in_words() -> None:
    for data in HOSTILE.values():
        with pytest.raises(QuarantineError) as refused:
            unpack(data, SOURCE)
        assert str(refused.value).isprintable()


FILES = {
    "SKILL.md": SKILL,
    "scripts/tools.py": b"print('hi')\n",
    "references/" + "long-name-" * 9 + ".md": b"long",
    "references/" + "/".join(["part" * 10] * 5) + ".md": b"deep",
    "assets/nested.zip": zipped({"../evil": b"only bytes in here"}),
    "assets/a\u00f1o.txt": "año".encode(),
    "empty.txt": b"",
}
FORMS = {
    "zip": zipped(FILES),
    "zip stored": zipped(FILES, method=zipfile.ZIP_STORED),
    "one folder": zipped({f"demo/{name}": content for name, content in FILES.items()}),
    "dot first": zipped({f"./{name}": content for name, content in FILES.items()}),
    "a Mac's": zipped(
        FILES | {"__MACOSX/._SKILL.md": b"\0\5", ".DS_Store": b"\0", "scripts/._tools.py": b"\0"}
    ),
    "a repository's": zipped(FILES | {".gitignore": b"*", ".github/workflows/ci.yml": b"on: push"}),
    "with hidden files": zipped(FILES | {".ssh/config": b"Host *", "scripts/.env": b"KEY=1"}),
    "with compiled code": zipped(FILES | {"scripts/__pycache__/tools.cpython-311.pyc": b"\0evil"}),
}


def test_every_usual_form_gives_the_same_files() -> None:
    for data in FORMS.values():
        tree = unpack(data, SOURCE)
        assert tree.files == FILES
        assert tree.sha256 == unpack(FORMS["zip"], "https://elsewhere.example/").sha256
        assert (tree.name, tree.manifest.description) == ("demo", "Does things.")


def repository() -> bytes:
    files = {f"skills/{name}/SKILL.md": SKILL.replace(b"demo", name.encode()) for name in ("pdf", "notes")}
    files |= {"README.md": b"hello", "skills/pdf/scripts/a.py": b"1", ".github/x": b"", "tests/aux.c": b"odd"}
    return zipped({f"skills-main/{name}": content for name, content in files.items()})


def test_a_folder_inside_a_repository_is_taken_alone() -> None:
    tree = unpack(repository(), "https://github.com/owner/skills", "skills/pdf")
    assert set(tree.files) == {"SKILL.md", "scripts/a.py"}
    assert tree.name == "pdf"
    linked = added(repository(), "skills-main/CLAUDE.md", b"/etc/passwd", 0o120777)
    assert unpack(linked, SOURCE, "/skills/pdf/").sha256 == tree.sha256


def test_of_several_skills_one_that_is_there_must_be_named() -> None:
    with pytest.raises(QuarantineError, match=r"2 skills.*'skills/notes', 'skills/pdf'"):
        unpack(repository(), SOURCE)
    for folder in ("skills", "pdf", "../skills-main/skills/pdf", "/etc", "skills\\pdf"):
        with pytest.raises(QuarantineError):
            unpack(repository(), SOURCE, folder)


def test_a_single_skill_md_is_named_after_its_address_where_it_has_no_name() -> None:
    for source, name in [
        ("https://example.net/skills/tide-tables/SKILL.md", "tide-tables"),
        ("https://example.net/Tide%20Tables/SKILL.md?raw=1", "tide-tables"),
        ("https://example.net/SKILL.md", "skill"),
        ("https://example.net/..%2f..%2fetc/SKILL.md", "etc"),
    ]:
        nameless = unpack(SKILL.replace(b"name: demo\n", b""), source)
        assert (nameless.name, set(nameless.files)) == (name, {"SKILL.md"})
        assert unpack(SKILL, source).name == "demo"


@given(st.lists(st.tuples(st.integers(0), st.integers(0, 255))))
@settings(max_examples=50, deadline=None)
def test_a_damaged_archive_is_refused_or_gives_files_within_the_limits(damage: list) -> None:
    data = bytearray(FORMS["zip"])
    for place, value in damage:
        data[place % len(data)] = value
    try:
        tree = unpack(bytes(data), SOURCE)
    except QuarantineError:
        return
    for path in tree.files:
        assert not path.startswith(("/", "."), 0, 1)
        assert ".." not in path.split("/")
        assert unicodedata.normalize("NFC", path) == path


@given(st.dictionaries(st.text(max_size=30), st.binary(max_size=20), max_size=5))
@settings(max_examples=50, deadline=None)
def test_whatever_the_names_nothing_leaves_the_folder(tmp_path_factory, names: dict[str, bytes]) -> None:
    usable = {
        name: content for name, content in names.items() if name and "\0" not in name and name.isprintable()
    }
    try:
        tree = unpack(zipped({"SKILL.md": SKILL} | usable), SOURCE)
    except QuarantineError:
        return
    data_dir = tmp_path_factory.mktemp("data")
    try:
        keep(data_dir, tree)
    except OSError:  # a name that is a file's and a folder's
        return
    written = [path for path in data_dir.rglob("*") if path.is_file()]
    assert len(written) == len(tree.files) + 1  # with where it came from; a skill may have an origin.json too
    assert kept(data_dir, tree.sha256).files == tree.files


TIDES = zipped({"SKILL.md": SKILL, "scripts/tools.py": b"print('hi')\n", "assets/nested/a.txt": b""})


def test_what_is_kept_comes_back_the_same_or_not_at_all(tmp_path: Path) -> None:
    tree = unpack(TIDES, SOURCE)
    keep(tmp_path, tree)
    keep(tmp_path, tree)
    again = kept(tmp_path, tree.sha256)
    assert (again.files, again.source, again.folder) == (tree.files, SOURCE, tree.folder)
    assert not [path for path in tmp_path.rglob("*.md") if path.stat().st_mode & 0o333]
    file = tmp_path / "quarantine" / tree.sha256 / "files" / "SKILL.md"
    file.chmod(0o600)
    file.write_bytes(SKILL + b"And more.\n")
    with pytest.raises(QuarantineError, match="changed"):
        kept(tmp_path, tree.sha256)
    for _ in range(2):
        discard(tmp_path, tree.sha256)
    assert list((tmp_path / "quarantine").iterdir()) == []
    with pytest.raises(QuarantineError, match="fetch it again"):
        kept(tmp_path, tree.sha256)
    for no_hash in ("", "..", "a" * 63, "../../../etc" + "a" * 52, "A" * 64):
        for act in (kept, discard):
            with pytest.raises(QuarantineError):
                act(tmp_path, no_hash)


def test_what_nobody_answered_is_discarded_unless_asked_about_or_looked_at_again(tmp_path: Path) -> None:
    old, new = unpack(TIDES, SOURCE), unpack(SKILL, SOURCE)
    keep(tmp_path, old)
    os.utime(tmp_path / "quarantine" / old.sha256, (1000, 1000))
    keep(tmp_path, new)
    discard_old(tmp_path, before=2000, asked_about={old.sha256})
    assert kept(tmp_path, old.sha256).files == old.files
    keep(tmp_path, old)
    discard_old(tmp_path, before=2000)
    assert kept(tmp_path, old.sha256).files == old.files
    os.utime(tmp_path / "quarantine" / old.sha256, (1000, 1000))
    discard_old(tmp_path, before=2000)
    with pytest.raises(QuarantineError):
        kept(tmp_path, old.sha256)
    assert kept(tmp_path, new.sha256).files == new.files
