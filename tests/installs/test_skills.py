"""Skills from an address: whose address is fetched, what a yes is for, what lies on the disk."""

import ast
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.http.transport import Fetched, Transport
from app.installs.card_text import CardWriter
from app.installs.cards import SkillCard, examine, make_card
from app.installs.pipeline import Approval, InstallError, Quarantined, QuarantineError, keep, unpack
from app.installs.skills import SkillInstaller, is_written_in, remove_skill, tidy_skills
from app.settings import Settings
from app.skills.installed import Installed, TreeError, current, read_tree
from app.skills.loader import InstalledSkills
from app.skills.skill import load_skill
from app.tools import Tool
from tests.installs.archives import SKILL, TOOLS, install_tree, zipped

ADDRESS = "https://example.org/tides.zip"
SOURCE = "https://example.net/demo.zip"


def test_an_address_is_the_persons_own_only_if_they_wrote_all_of_it() -> None:
    for text, address, is_own in [
        (f"install {ADDRESS}", ADDRESS, True),
        (f"install {ADDRESS}.", ADDRESS, True),
        (f"({ADDRESS})", ADDRESS, True),
        (f"*{ADDRESS}*", ADDRESS, True),
        ("instala example.org/tides.zip", ADDRESS, True),
        ("HTTPS://Example.ORG/tides.zip, por favor", ADDRESS, True),
        (f"{ADDRESS}#tables", f"{ADDRESS}#tables", True),
        (f"or {ADDRESS}#x/tides.", f"{ADDRESS}#x/tides", True),
        ("https://example.org/tides.zip?a=1", ADDRESS, False),
        (ADDRESS, f"{ADDRESS}?stolen=words", False),
        (f"{ADDRESS} please", f"{ADDRESS}#x/evil", False),
        (f"{ADDRESS}#x/tides", ADDRESS, False),
        ("https://example.org/", ADDRESS, False),
        ("http://example.org/tides.zip", ADDRESS, False),
        ("https://example.org.evil.net/tides.zip", ADDRESS, False),
        ("https://example.org@evil.net/tides.zip", "https://evil.net/tides.zip", False),
        ("", ADDRESS, False),
        (ADDRESS, "no address", False),
    ]:
        assert is_written_in(address, ["hello", text]) is is_own


class Archives(Transport):
    """Answers with archives by address; keeps what it was asked, and may redirect to another address."""

    def __init__(self, archives: Mapping[str, bytes], redirect: str = "") -> None:
        super().__init__()
        self._archives = archives
        self.redirect = redirect
        self.asked: list[str] = []

    async def fetch(self, url: str, **options: object) -> Fetched:  # type: ignore[override]
        self.asked.append(url)
        body = next(body for part, body in self._archives.items() if part in url)
        return Fetched(self.redirect or url, 200, {}, body)


def settings_of(folder: Path) -> Settings:
    return Settings(
        _env_file=None, DATA_DIR=folder, SKILLS_DIR=folder / "own", FREE_SPACE_MB=0, sandbox="off"
    )  # type: ignore[call-arg]


def installer_of(folder: Path, archives: Mapping[str, bytes], redirect: str = "") -> SkillInstaller:
    return SkillInstaller(settings_of(folder), Archives(archives, redirect), folder)


async def approve(installer: SkillInstaller, subject: str, address: str = ADDRESS) -> Installed:
    return await installer.commit(Approval(subject, "person_1", address=address))


@pytest.fixture
def installer(tmp_path: Path) -> SkillInstaller:
    return installer_of(tmp_path, {"": zipped({"SKILL.md": SKILL})})


@pytest.mark.slow
async def test_a_yes_holds_for_the_name_that_was_shown(tmp_path: Path) -> None:
    nameless = b"---\ndescription: Tides.\n---\nTides.\n"
    archives = {"": zipped({"alpha/SKILL.md": nameless})}
    installer = installer_of(tmp_path, archives)
    shown = await installer.propose(ADDRESS)
    archives[""] = zipped({"bank-login/SKILL.md": nameless})
    await installer.propose(ADDRESS)
    with pytest.raises(QuarantineError, match="another name"):
        await approve(installer, shown.subject)


@pytest.mark.slow
async def test_a_yes_to_one_address_or_folder_is_none_to_another(tmp_path: Path) -> None:
    installer = installer_of(tmp_path, {"": zipped({"a/x/SKILL.md": SKILL, "a/y/SKILL.md": SKILL})})
    shown = await installer.propose(f"{ADDRESS}#x")
    assert f"From: “{ADDRESS}#x”" in whole(shown)
    with pytest.raises(QuarantineError, match="another address"):
        await approve(installer, shown.subject, "https://evil.net/tides.zip")
    await installer.propose(f"{ADDRESS}#y")
    with pytest.raises(QuarantineError, match="another address"):
        await approve(installer, shown.subject, f"{ADDRESS}#x")


def whole(candidate: SkillCard) -> str:
    return CardWriter(settings_of(Path())).whole("en", candidate).text


@pytest.mark.slow
async def test_a_yes_to_a_new_skill_replaces_none_that_came_meanwhile(tmp_path: Path) -> None:
    good, evil = (zipped({"SKILL.md": SKILL + word}) for word in (b"good", b"evil"))
    installer = installer_of(tmp_path, {"good": good, "evil": evil})
    of_evil = await installer.propose("https://evil.example/demo.zip")
    of_good = await installer.propose("https://good.example/demo.zip")
    kept = await approve(installer, of_good.subject, "https://good.example/demo.zip")
    with pytest.raises(InstallError, match="changed meanwhile"):
        await approve(installer, of_evil.subject, "https://evil.example/demo.zip")
    assert installer.installed("demo") == kept


@pytest.mark.slow
async def test_a_name_that_is_taken_is_refused_before_anybody_is_asked(
    installer: SkillInstaller, tmp_path: Path
) -> None:
    (tmp_path / "own" / "demo").mkdir(parents=True)
    with pytest.raises(InstallError, match="came another way"):
        await installer.propose(ADDRESS)
    assert not (tmp_path / "quarantine").exists()
    (tmp_path / "own" / "demo").rmdir()
    candidate = await installer.propose(ADDRESS)
    (tmp_path / "own" / "demo").mkdir()
    with pytest.raises(InstallError, match="came another way"):
        await approve(installer, candidate.subject)


COSTLY = {
    "deep.py": b"(" * 200_000,
    "long.py": b"x = [" + b"1," * 20_000 + b"]",
    "scripts/tools.py": b"a\n" * 5_000,
    **{f"{n}.py": b"f(%d)\n" % n * 100 for n in range(50)},
}
parsed: set[object] = set()  # sources that this process parsed
sys.addaudithook(
    lambda event, details: parsed.add(details[0]) if event == "compile" and details[0] is not None else None
)


async def test_a_page_of_a_repository_is_its_folder_and_no_file_of_it_is_parsed_in_the_server(
    tmp_path: Path,
) -> None:
    noise = {"noise": os.urandom(100_000)}  # or it would be refused as a bomb
    files = {f"skills-main/sea/tides/{name}": text for name, text in {**COSTLY, **noise}.items()}
    others = {f"skills-main/{name}/SKILL.md": SKILL for name in ("sea/tides", "land/other")}
    transport = Archives({"": zipped({**others, **files})})
    parsed.clear()
    installer = SkillInstaller(settings_of(tmp_path), transport, tmp_path)
    made = await installer.propose("https://github.com/ana/skills/blob/v1.2/sea/tides/SKILL.md")
    assert transport.asked == ["https://codeload.github.com/ana/skills/zip/v1.2"]
    assert made.files.keys() >= COSTLY.keys()
    assert parsed.isdisjoint(COSTLY.values())
    ast.parse(b"1")
    assert b"1" in parsed


def test_what_takes_longer_than_it_may_is_refused(tmp_path: Path) -> None:
    tree = unpack(SKILL, ADDRESS)
    keep(tmp_path, tree)
    with pytest.raises(QuarantineError, match="cannot be looked through within"):
        examine(tmp_path, tree.sha256, seconds=0.001)
    assert examine(tmp_path, tree.sha256) == make_card(tree)


def test_a_skill_that_names_more_than_anybody_reads_is_refused() -> None:
    for files, reason in [
        ({"a.md": b"".join(b"https://h%d.net/\n" % n for n in range(101))}, "101 hosts"),
        ({"scripts/tools.py": b"".join(b'def t%d():\n    """T."""\n' % n for n in range(101))}, "101 tools"),
    ]:
        with pytest.raises(QuarantineError, match=reason):
            make_card(tree_of(files=files))


def tree_of(text: bytes = b"", files: Mapping[str, bytes] | None = None) -> Quarantined:
    return unpack(zipped({"SKILL.md": SKILL + text, **(files or {})}), SOURCE)


WITH_TOOLS = {"scripts/tools.py": TOOLS}


def test_exactly_the_approved_bytes_are_installed_read_only(tmp_path: Path) -> None:
    tree = tree_of(files=WITH_TOOLS)
    made = install_tree(tmp_path, tree, trusted=True)
    assert made.folder == tmp_path / "skills" / "demo" / tree.sha256
    assert read_tree(made.folder) == tree.files
    assert current(tmp_path) == [made]
    assert (made.source, made.approved_by) == (SOURCE, "person_1")
    assert (made.trusted, made.audience) == (True, "members")
    places = [made.folder, *made.folder.rglob("*")]
    assert not [place for place in places if place.stat().st_mode & 0o222]
    assert not made.folder.stat().st_mode & 0o077
    made.check()
    assert not install_tree(tmp_path, tree).trusted


CHANGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda tools: tools.write_bytes(TOOLS + b"#"),
    "one more file": lambda tools: tools.with_name("more.py").write_bytes(b""),
    "one file less": lambda tools: tools.unlink(),
    "a link": lambda tools: tools.symlink_to(tools.rename(tools.parents[4] / "tools.py")),
    "a FIFO": lambda tools: os.mkfifo(tools.with_name("pipe")),
    "compiled code": lambda tools: tools.with_name("tools.cpython-311.pyc").write_bytes(b"evil"),
}


def test_a_changed_folder_is_told_at_the_check(tmp_path: Path) -> None:
    for name, change in CHANGES.items():
        place = tmp_path / name
        made = install_tree(place, tree_of(files=WITH_TOOLS))
        open_up(made.folder)
        change(made.folder / "scripts" / "tools.py")
        (made,) = current(place)
        with pytest.raises(TreeError):
            made.check()


def open_up(folder: Path) -> None:
    for place in (folder, folder / "scripts", folder / "scripts" / "tools.py"):
        place.chmod(0o700)


@pytest.mark.slow
async def test_a_changed_folder_is_not_mended_by_a_yes(tmp_path: Path) -> None:
    made = install_tree(tmp_path, tree_of(files=WITH_TOOLS))
    open_up(made.folder)
    (made.folder / "scripts" / "tools.py").write_bytes(TOOLS + b"#")
    installer = installer_of(tmp_path, {"": zipped({"SKILL.md": SKILL, **WITH_TOOLS})})
    candidate = await installer.propose(ADDRESS)
    assert candidate.replaces
    with pytest.raises(InstallError, match="could not be written"):
        await approve(installer, candidate.subject)


def test_an_update_replaces_the_old_version_goes_at_the_next_start_and_a_removal_leaves_nothing(
    tmp_path: Path,
) -> None:
    old = install_tree(tmp_path, tree_of())
    new = install_tree(tmp_path, tree_of(b"More.\n", files=WITH_TOOLS))
    assert current(tmp_path) == [new]
    old.check()
    tidy_skills(tmp_path)
    assert not old.folder.exists()
    new.check()
    back = install_tree(tmp_path, tree_of(), trusted=True)
    assert current(tmp_path) == [back]
    assert remove_skill(tmp_path, "demo")
    assert not remove_skill(tmp_path, "demo")
    assert current(tmp_path) == []
    assert list((tmp_path / "skills").iterdir()) == []


def test_only_a_plain_name_can_be_removed(tmp_path: Path) -> None:
    for name in ("", ".", "..", "../quarantine", "a/b", "Demo", "demo\n", "a" * 65):
        with pytest.raises(InstallError):
            remove_skill(tmp_path, name)


def test_a_record_that_is_none_is_left_out_and_named(tmp_path: Path, caplog: Any) -> None:
    made = install_tree(tmp_path, tree_of())
    path = made.folder.parent / "installed.json"
    record = json.loads(path.read_bytes())
    changes = ({"name": "other"}, {"name": "calculator"}, {"sha256": "../../../etc"})
    for written in ("", "[]", "{}", *(json.dumps(record | change) for change in changes)):
        caplog.clear()
        path.write_text(written)
        assert current(tmp_path) == []
        assert "installed.json" in caplog.text
        tidy_skills(tmp_path)
        assert made.folder.exists()
    path.write_text(json.dumps(record | {"folder": "/etc"}))
    assert current(tmp_path) == [made]


def test_a_tool_of_other_code_is_another_tool_to_a_yes(tmp_path: Path) -> None:
    mended = TOOLS.replace(b"return station", b"return station + station")
    installed = InstalledSkills(settings_of(tmp_path))
    first, second = (
        installed.load(
            install_tree(tmp_path, tree_of(files={"scripts/tools.py": code})), release=tmp_path, workers=None
        )
        for code in (TOOLS, mended)
    )
    assert first.tools[0].input_schema == second.tools[0].input_schema
    assert first.tools[0].definition_hash != second.tools[0].definition_hash
    assert first.tools[0].code == first.installed.sha256  # type: ignore[union-attr]


def test_a_dropped_folder_asks_again_once_its_code_was_changed_and_not_for_its_words(tmp_path: Path) -> None:
    folder = tmp_path / "tides"
    (folder / "scripts").mkdir(parents=True)

    def tool(text: bytes, code: bytes, beside: bytes) -> Tool:
        (folder / "SKILL.md").write_bytes(text)
        (folder / "scripts" / "tools.py").write_bytes(code)
        (folder / "scripts" / "beside.py").write_bytes(beside)
        return load_skill(folder).tools[0]

    first = tool(SKILL, TOOLS, b"A = 1\n")
    again = tool(SKILL + b"More words.\n", TOOLS, b"A = 1\n")
    assert again.definition_hash == first.definition_hash
    assert again.replace(name="other").definition_hash != first.definition_hash
    assert tool(SKILL, TOOLS + b"#\n", b"A = 1\n").definition_hash != first.definition_hash
    assert tool(SKILL, TOOLS, b"A = 2\n").definition_hash != first.definition_hash
