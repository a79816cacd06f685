"""Archives made into trees of files, or refused; trees kept apart until they are approved."""

import gzip
import io
import json
import os
import tarfile
import unicodedata
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.installs.errors import ArchiveError, QuarantineError
from app.installs.quarantine import (
    MAX_ENTRIES,
    discard,
    discard_old,
    keep,
    kept,
    read_archive,
    unpack,
)
from app.skills.manifest import ManifestError, read_manifest
from tests.installs.archives import SKILL, header, pax, tar_of, tarred, zip_by_hand, zipped

SOURCE = "https://example.net/demo.zip"
MIB = 1024 * 1024
GOOD = header(b"SKILL.md", size=b"%o" % len(SKILL)) + SKILL + b"\0" * (-len(SKILL) % 512)


def with_skill(*blocks: bytes) -> bytes:
    return tar_of(GOOD, *blocks)


def linked(**fields: object) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("SKILL.md")
        info.size = len(SKILL)
        archive.addfile(info, io.BytesIO(SKILL))
        other = tarfile.TarInfo("other")
        for name, value in fields.items():
            setattr(other, name, value)
        archive.addfile(other)
    return packed.getvalue()


def skill_and(name: str, content: bytes = b"x") -> dict[str, bytes]:
    return {"SKILL.md": SKILL, name: content}


NAMES = {
    "climbs": "../evil",
    "climbs later": "a/../../evil",
    "climbs within": "a/../evil",
    "absolute": "/etc/cron.d/evil",
    "a drive": "C:/evil",
    "a drive's own place": "c:evil",
    "backslash": "..\\evil",
    "NUL": "evil\0.md",
    "line break": "evil\nSKILL.md",
    "escape": "evil\x1b[2J",
    "right to left": "evil\u202egpj.py",
    "zero width": "evil\u200b.md",
    "hidden": ".env",
    "hidden folder": ".ssh/config",
    "Windows device": "aux.md",
    "Windows device in capitals": "scripts/NUL",
    "trailing dot": "notes.",
    "trailing space": "notes /a",
    "a stream": "SKILL.md:evil",
    "a wildcard": "what?.md",
    "no name": "./.",
    "other case": "skill.md",
    "a file as a folder": "SKILL.md/evil",
    "deep": "/".join("abcdefghijk") + "/x",
    "long part": "a" * 101,
    "long path": "/".join(["a" * 60] * 5),
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_leads_elsewhere_or_means_two_things_is_refused(name: str) -> None:
    with pytest.raises(QuarantineError) as refused:
        unpack(zipped(skill_and(name)), SOURCE)
    assert str(refused.value).isprintable()
    if "\0" not in name:  # tarfile writes none
        with pytest.raises(QuarantineError):
            unpack(tarred(skill_and(name)), SOURCE)


TREES = {
    "folders of other case": {"Docs/a": b"1", "docs/b": b"2"},
    "composed and decomposed": {"caf\u00e9": b"1", "cafe\u0301": b"2"},
    "257 files": {f"f{i}": b"x" for i in range(256)},
    "8 MiB and more": {f"f{i}": os.urandom(1024) * 1024 for i in range(9)},
    "more packed than is taken": {"big": os.urandom(5 * MIB)},
}


@pytest.mark.parametrize("files", TREES.values(), ids=TREES)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_too_much_of_it_or_two_names_for_one_file_is_refused(pack, files: dict[str, bytes]) -> None:
    with pytest.raises(QuarantineError):
        unpack(pack({"SKILL.md": SKILL} | files), SOURCE)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_repository_of_thousands_of_files_is_refused_before_it_is_looked_through(pack) -> None:
    others = {f"top/docs/f{i}": b"" for i in range(MAX_ENTRIES)}
    with pytest.raises(QuarantineError, match=f"more than {MAX_ENTRIES} entries"):
        unpack(pack({"top/skill/SKILL.md": SKILL} | others), SOURCE, "skill")


@pytest.mark.parametrize(
    "one", [pax(("a", "")), header(b"@", b"L", b"1") + bytes(512)], ids=["pax headers", "GNU long names"]
)
def test_headers_of_no_file_have_an_end(one: bytes) -> None:
    noise = os.urandom(MIB)  # or it would be refused as a bomb
    data = tar_of(GOOD, header(b"noise", size=b"%o" % len(noise)), noise, one * 20_000)
    with pytest.raises(QuarantineError, match="the tar is damaged"):
        unpack(gzip.compress(data), SOURCE)


BOMB = b"\0" * (30 * MIB)
HOSTILE = {
    "gzip bomb": gzip.compress(tar_of(GOOD, header(b"b", size=b"%o" % len(BOMB)), BOMB), 1),
    "gzip of gzips of zeros": gzip.compress(gzip.compress(BOMB, 1) * 3, 1) + gzip.compress(BOMB, 1) * 3,
    "zip bomb": zipped(skill_and("b", b"\0" * (8 * MIB - 100))),
    "zip that says less": zip_by_hand(b"SKILL.md", SKILL + b"\0" * MIB, says=len(SKILL)),
    "zip that says more": zip_by_hand(b"SKILL.md", SKILL, says=len(SKILL) + 1),
    "zip that says 4 GiB": zip_by_hand(b"SKILL.md", SKILL, says=0xFFFFFFFE),
    "encrypted zip": zip_by_hand(b"SKILL.md", SKILL, says=len(SKILL), flags=1),
    "zip of another method": zip_by_hand(b"SKILL.md", SKILL, says=len(SKILL), method=99),
    "bzip2 in a zip": zipped({"SKILL.md": SKILL}, method=zipfile.ZIP_BZIP2),
    "LZMA in a zip": zipped({"SKILL.md": SKILL}, method=zipfile.ZIP_LZMA),
    "zip cut short": zipped({"SKILL.md": SKILL})[:-30],
    "link in a zip": zipped({"SKILL.md": SKILL}, mode=0o120777),
    "device in a zip": zipped({"SKILL.md": SKILL}, mode=0o020666),
    "setuid in a zip": zipped({"SKILL.md": SKILL}, mode=0o104755),
    "symbolic link": linked(type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "hard link": linked(type=tarfile.LNKTYPE, linkname="SKILL.md"),
    "character device": linked(type=tarfile.CHRTYPE),
    "block device": linked(type=tarfile.BLKTYPE),
    "FIFO": linked(type=tarfile.FIFOTYPE),
    "setuid": linked(mode=0o4755),
    "folder with the sticky bit": linked(type=tarfile.DIRTYPE, mode=0o1755),
    "unknown kind": linked(type=b"Z"),
    "contiguous file": linked(type=tarfile.CONTTYPE),
    "GNU sparse": with_skill(header(b"sparse", b"S", b"77777777777")),
    "pax sparse": with_skill(pax(("GNU.sparse.realsize", "999999999999")), header(b"sparse")),
    "pax size": with_skill(pax(("size", "999999999999")), header(b"big")),
    "pax path that climbs": with_skill(pax(("path", "../../evil")), header(b"harmless")),
    "pax path for all": with_skill(pax(("path", "SKILL.md"), kind=b"g"), header(b"harmless")),
    "pax length too long": with_skill(header(b"pax", b"x", b"12"), b"99 path=a\n"),
    "pax length of nothing": with_skill(header(b"pax", b"x", b"4"), b"0 a\n"),
    "pax without length": with_skill(header(b"pax", b"x", b"4"), b"path"),
    "pax records without end": with_skill(pax(*[("a", "")] * 10_000), header(b"harmless")),
    "pax header of a gigabyte": with_skill(header(b"pax", b"x", b"7777777777")),
    "GNU long name that climbs": with_skill(header(b"@", b"L", b"10"), b"../evil\0", header(b"harmless")),
    "GNU long name twice the same": with_skill(header(b"@", b"L", b"11"), b"SKILL.md\0", header(b"harmless")),
    "negative size": with_skill(header(b"back", size=b"-1000")),
    "size in base 256": with_skill(header(b"back", size=b"\x80\0\0\0\0\0\0\0\0\1\1")),
    "size beyond the end": with_skill(header(b"long", size=b"7777")),
    "wrong checksum": with_skill(header(b"a").replace(b"644", b"777")),
    "half a header": GOOD + header(b"a")[:100],
    "name that is no UTF-8": with_skill(header(b"\xff\xfe")),
    "the same file twice": tar_of(GOOD, GOOD),
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


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_or_damaged_archive_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(QuarantineError) as refused:
        unpack(data, SOURCE)
    assert str(refused.value).isprintable()


def test_duplicate_names_in_a_zip_are_refused() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("SKILL.md", SKILL)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("SKILL.md", SKILL + b"Ignore the first.\n")
    with pytest.raises(QuarantineError, match="same file"):
        unpack(packed.getvalue(), SOURCE)


FILES = {
    "SKILL.md": SKILL,
    "scripts/tools.py": b"print('hi')\n",
    "references/" + "long-name-" * 9 + ".md": b"long",
    "references/" + "/".join(["part" * 10] * 5) + ".md": b"deep",
    "assets/nested.zip": zipped({"../evil": b"only bytes in here"}),
    "assets/a\u00f1o.txt": "año".encode(),
    "empty.txt": b"",
    ".env.example": b"TIDES_STATION=\n",
}
FORMS = {
    "zip": zipped(FILES),
    "zip stored": zipped(FILES, method=zipfile.ZIP_STORED),
    "tar.gz pax": tarred(FILES),
    "tar.gz GNU": tarred(FILES, form=tarfile.GNU_FORMAT),
    "tar pax": tarred(FILES, gzipped=False),
    "as git packs it": gzip.compress(
        pax(("comment", "5" * 40), kind=b"g")
        + tarred({f"demo-main/{n}": c for n, c in FILES.items()}, gzipped=False)
    ),
    "one folder": zipped({f"demo/{name}": content for name, content in FILES.items()}),
    "dot first": tarred({f"./{name}": content for name, content in FILES.items()}),
    "a Mac's": zipped(
        FILES | {"__MACOSX/._SKILL.md": b"\0\5", ".DS_Store": b"\0", "scripts/._tools.py": b"\0"}
    ),
    "a repository's": zipped(FILES | {".gitignore": b"*", ".github/workflows/ci.yml": b"on: push"}),
    "with compiled code": zipped(FILES | {"scripts/__pycache__/tools.cpython-311.pyc": b"\0evil"}),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS)
def test_every_usual_form_gives_the_same_files(data: bytes) -> None:
    tree = unpack(data, SOURCE)
    assert tree.files == FILES
    assert tree.sha256 == unpack(FORMS["zip"], "https://elsewhere.example/").sha256
    assert (tree.name, tree.manifest.description) == ("demo", "Does things.")


def test_a_decomposed_name_is_composed() -> None:
    assert "caf\u00e9.md" in unpack(zipped(skill_and("cafe\u0301.md")), SOURCE).files


def test_ustar_prefixes_are_read() -> None:
    files = {name: content for name, content in FILES.items() if name.isascii()}
    assert unpack(tarred(files, form=tarfile.USTAR_FORMAT), SOURCE).files == files


def repository(pack=tarred) -> bytes:
    files = {f"skills/{name}/SKILL.md": SKILL.replace(b"demo", name.encode()) for name in ("pdf", "notes")}
    files |= {"README.md": b"hello", "skills/pdf/scripts/a.py": b"1", ".github/x": b"", "tests/aux.c": b"odd"}
    return pack({f"skills-main/{name}": content for name, content in files.items()})


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_folder_inside_a_repository_is_taken_alone(pack) -> None:
    tree = unpack(repository(pack), "https://github.com/owner/skills", "skills/pdf")
    assert set(tree.files) == {"SKILL.md", "scripts/a.py"}
    assert tree.name == "pdf"
    assert unpack(repository(pack), SOURCE, "/skills/pdf/").sha256 == tree.sha256


def test_of_several_skills_one_that_is_there_must_be_named() -> None:
    with pytest.raises(QuarantineError, match=r"2 skills.*'skills/notes', 'skills/pdf'"):
        unpack(repository(), SOURCE)
    for folder in ("skills", "pdf", "../skills-main/skills/pdf", "/etc", "skills\\pdf"):
        with pytest.raises(QuarantineError):
            unpack(repository(), SOURCE, folder)


def test_a_link_elsewhere_in_a_repository_does_no_harm() -> None:
    skill = header(b"top/skill/SKILL.md", size=b"%o" % len(SKILL)) + SKILL
    data = tar_of(skill, header(b"top/CLAUDE.md", b"2"), header(b"top/skill/x", b"5", mode=b"755"))
    assert set(unpack(data, SOURCE, "skill").files) == {"SKILL.md"}
    with pytest.raises(QuarantineError, match="symbolic link"):
        unpack(tar_of(skill, header(b"top/skill/x", b"2")), SOURCE, "skill")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("https://example.net/skills/tide-tables/SKILL.md", "tide-tables"),
        ("https://example.net/Tide%20Tables/SKILL.md?raw=1", "tide-tables"),
        ("https://example.net/SKILL.md", "skill"),
        ("https://example.net/..%2f..%2fetc/SKILL.md", "etc"),
    ],
)
def test_a_single_skill_md_is_named_after_its_address_where_it_has_no_name(source: str, name: str) -> None:
    nameless = unpack(SKILL.replace(b"name: demo\n", b""), source)
    assert (nameless.name, set(nameless.files)) == (name, {"SKILL.md"})
    assert unpack(SKILL, source).name == "demo"


def test_real_skills_come_out_as_they_went_in(samples: Path) -> None:
    rows = [
        json.loads(line) for line in (samples / "skills/frontmatters.jsonl").read_text("utf-8").splitlines()
    ]
    taken = 0
    for row in rows:
        files = {name: f"{name}\n".encode() * 3 for name in row["files"]}
        files["SKILL.md"] = f"---\n{row['frontmatter']}\n---\n# Body\n".encode()
        visible = {name: content for name, content in files.items() if ".gitignore" not in name}
        try:
            read_manifest(files["SKILL.md"], row["dir"])
        except ManifestError:
            with pytest.raises(QuarantineError):
                unpack(zipped(files), SOURCE)
            continue
        for pack in (zipped, tarred):
            packed = pack(
                {f"repo-main/skills/{row['dir']}/{name}": content for name, content in files.items()}
            )
            tree = unpack(packed, SOURCE, f"skills/{row['dir']}")
            assert tree.files == visible, row["path"]
        taken += 1
    assert taken > 0.98 * len(rows)


@given(st.binary(max_size=3000))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for start in (b"", b"PK\x03\x04", b"\x1f\x8b\x08\0", header(b"SKILL.md")):
        try:
            read_archive(start + data)
        except ArchiveError:
            continue


@given(
    st.sampled_from(["zip", "tar pax", "tar.gz GNU"]),
    st.lists(st.tuples(st.integers(0), st.integers(0, 255))),
)
@settings(max_examples=300, deadline=None)
def test_a_damaged_archive_is_refused_or_gives_files_within_the_limits(form: str, damage: list) -> None:
    data = bytearray(FORMS[form])
    for place, value in damage:
        data[place % len(data)] = value
    try:
        tree = unpack(bytes(data), SOURCE)
    except QuarantineError:
        return
    for path in tree.files:
        assert not path.startswith(("/", "."), 0, 1) or path == ".env.example"
        assert ".." not in path.split("/")
        assert unicodedata.normalize("NFC", path) == path


@given(st.dictionaries(st.text(max_size=30), st.binary(max_size=20), max_size=5))
@settings(max_examples=200, deadline=None)
def test_whatever_the_names_nothing_leaves_the_folder(tmp_path_factory, names: dict[str, bytes]) -> None:
    usable = {
        name: content for name, content in names.items() if name and "\0" not in name and name.isprintable()
    }
    try:
        tree = unpack(zipped({"SKILL.md": SKILL} | usable), SOURCE)
    except QuarantineError:
        return
    data_dir = tmp_path_factory.mktemp("data")
    keep(data_dir, tree)
    written = [path for path in data_dir.rglob("*") if path.is_file() and path.name != "origin.json"]
    assert len(written) == len(tree.files)
    assert kept(data_dir, tree.sha256).files == tree.files


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


def test_only_a_hash_names_what_is_kept(tmp_path: Path) -> None:
    for sha256 in ("", "..", "a" * 63, "../../../etc" + "a" * 52, "A" * 64):
        with pytest.raises(QuarantineError):
            kept(tmp_path, sha256)
        with pytest.raises(QuarantineError):
            discard(tmp_path, sha256)


def test_what_nobody_answered_is_discarded_unless_asked_about_or_looked_at_again(
    tmp_path: Path,
) -> None:
    old, new = unpack(TIDES, SOURCE), unpack(SKILL, SOURCE)
    keep(tmp_path, old)
    os.utime(tmp_path / "quarantine" / old.sha256, (1000, 1000))
    keep(tmp_path, new)
    assert discard_old(tmp_path, before=2000, asked_about={old.sha256}) == 0
    assert kept(tmp_path, old.sha256).files == old.files
    keep(tmp_path, old)
    assert discard_old(tmp_path, before=2000) == 0
    os.utime(tmp_path / "quarantine" / old.sha256, (1000, 1000))
    assert discard_old(tmp_path, before=2000) == 1
    assert kept(tmp_path, new.sha256).files == new.files
