"""Which addresses are a person's own, and where a skill is fetched from."""

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from app.http.errors import FetchError
from app.http.transport import Fetched, Transport
from app.installs.quarantine import QuarantineError, unpack
from app.installs.skill_card_text import card_text
from app.installs.skill_cards import card
from app.installs.skill_examining import examine
from app.installs.skill_installer import Installer, UnknownSkill, is_written_in
from app.skills.installed import InstallError
from tests.skills.archives import SKILL, tarred, zipped

ADDRESS = "https://example.org/tides.zip"


@pytest.mark.parametrize(
    ("text", "address", "is_own"),
    [
        (f"install {ADDRESS}", ADDRESS, True),
        (f"install {ADDRESS}.", ADDRESS, True),
        (f"({ADDRESS})", ADDRESS, True),
        (f"*{ADDRESS}*", ADDRESS, True),
        ("instala example.org/tides.zip", ADDRESS, True),
        ("HTTPS://Example.ORG/tides.zip, por favor", ADDRESS, True),
        (f"{ADDRESS}#tables", f"{ADDRESS}#tables", True),
        ("https://example.org/tides.zip?a=1", ADDRESS, False),
        (ADDRESS, f"{ADDRESS}?stolen=words", False),
        ("https://example.org/", ADDRESS, False),
        ("http://example.org/tides.zip", ADDRESS, False),
        ("https://example.org.evil.net/tides.zip", ADDRESS, False),
        ("https://example.org@evil.net/tides.zip", "https://evil.net/tides.zip", False),
        ("", ADDRESS, False),
        (ADDRESS, "no address", False),
    ],
)
def test_an_address_is_the_persons_own_only_if_they_wrote_all_of_it(
    text: str, address: str, is_own: bool
) -> None:
    assert is_written_in(address, ["hello", text]) is is_own


class Archives(Transport):
    """Answers with archives by address; keeps what it was asked."""

    def __init__(self, archives: Mapping[str, bytes]) -> None:
        super().__init__()
        self._archives = archives
        self.asked: list[str] = []

    async def get(self, url: str, **options: object) -> Fetched:  # type: ignore[override]
        self.asked.append(url)
        return Fetched(url, 200, {}, next(body for part, body in self._archives.items() if part in url))


@pytest.mark.parametrize(
    ("page", "fetched"),
    [
        (
            "https://github.com/ana/skills/tree/main/sea/tides",
            "https://codeload.github.com/ana/skills/zip/main",
        ),
        (
            "https://github.com/ana/skills/blob/v1.2/sea/tides/SKILL.md",
            "https://codeload.github.com/ana/skills/zip/v1.2",
        ),
        ("https://github.com/ana/skills#sea/tides", "https://codeload.github.com/ana/skills/zip/HEAD"),
        ("https://github.com/ana/skills.git#sea/tides", "https://codeload.github.com/ana/skills/zip/HEAD"),
        ("https://example.net/all.zip#sea/tides", "https://example.net/all.zip"),
    ],
)
async def test_a_page_of_a_repository_stands_for_its_archive_and_folder(
    page: str, fetched: str, tmp_path: Path
) -> None:
    other = SKILL.replace(b"demo", b"other")
    archive = zipped({"skills-main/sea/tides/SKILL.md": SKILL, "skills-main/land/other/SKILL.md": other})
    transport = Archives({"": archive})
    installer = Installer(transport, tmp_path, tmp_path / "skills", tmp_path)
    assert (await installer.preview(page)).card.name == "demo"
    assert transport.asked == [fetched]


@pytest.fixture
def installer(tmp_path: Path) -> Installer:
    return Installer(Archives({"": zipped({"SKILL.md": SKILL})}), tmp_path, tmp_path / "own", tmp_path)


async def test_only_https_is_fetched(installer: Installer) -> None:
    with pytest.raises(FetchError, match="https addresses only"):
        await installer.preview("http://example.org/tides.zip")


async def test_what_was_looked_at_is_installed_once_however_often_it_is_asked_for(
    installer: Installer, tmp_path: Path
) -> None:
    preview = await installer.preview(ADDRESS)
    sha256 = preview.card.sha256
    first = await installer.install(preview.subject, ADDRESS, approved_by="person_1")
    again = await installer.install(preview.subject, ADDRESS, approved_by="person_1")
    assert first == again
    assert await installer.installed("demo") == first
    with pytest.raises(InstallError, match="updated meanwhile"):
        await installer.remove("demo", "0" * 64)
    await installer.remove("demo", sha256)
    with pytest.raises(UnknownSkill):
        await installer.remove("demo", sha256)
    with pytest.raises(QuarantineError):
        await installer.install(preview.subject, ADDRESS, approved_by="person_1")


async def test_a_yes_holds_for_the_name_that_was_shown(tmp_path: Path) -> None:
    nameless = b"---\ndescription: Tides.\n---\nTides.\n"
    archives = {"": zipped({"alpha/SKILL.md": nameless})}
    installer = Installer(Archives(archives), tmp_path, tmp_path / "own", tmp_path)
    shown = await installer.preview("https://example.org/all.zip")
    archives[""] = zipped({"bank-login/SKILL.md": nameless})
    await installer.preview("https://example.org/all.zip")
    with pytest.raises(QuarantineError, match="another name"):
        await installer.install(shown.subject, "https://example.org/all.zip", approved_by="person_1")


async def test_a_yes_to_one_folder_of_an_archive_is_none_to_another(tmp_path: Path) -> None:
    installer = Installer(
        Archives({"": zipped({"a/x/SKILL.md": SKILL, "a/y/SKILL.md": SKILL})}), tmp_path, tmp_path / "own"
    )
    shown = await installer.preview(f"{ADDRESS}#x")
    assert "From: “https://example.org/tides.zip#x”" in card_text("en", shown.card).whole
    await installer.preview(f"{ADDRESS}#y")
    with pytest.raises(QuarantineError, match="another address"):
        await installer.install(shown.subject, f"{ADDRESS}#x", approved_by="person_1")


class Redirecting(Archives):
    """Sends whoever asks on to another address."""

    def __init__(self, to: str) -> None:
        super().__init__({"": zipped({"SKILL.md": SKILL})})
        self.to = to

    async def get(self, url: str, **options: object) -> Fetched:  # type: ignore[override]
        return replace(await super().get(url, **options), url=self.to)


async def test_a_card_and_the_record_name_the_host_that_a_site_sent_us_on_to(tmp_path: Path) -> None:
    site = Redirecting("https://cdn.example.net/files/tides.zip?key=secret")
    installer = Installer(site, tmp_path, tmp_path / "own", tmp_path)
    preview = await installer.preview(ADDRESS)
    shown = "https://cdn.example.net/files/tides.zip?…"
    line = f"From: “{ADDRESS}”, which sent me on to “{shown}”"
    assert line in card_text("en", preview.card).whole.split("\n")
    assert installer.look(preview.subject).card.sent_on == shown
    made = await installer.install(preview.subject, ADDRESS, approved_by="person_1")
    assert (made.source, made.sent_on) == (ADDRESS, shown)
    assert (await installer.installed("demo")).sent_on == shown
    for to, before in (("https://cdn.example.net/other", ""), (ADDRESS, "cdn.example.net")):
        site.to = to
        change = (await installer.preview(ADDRESS)).change
        assert change is not None
        assert change.host_before == before
    text = card_text("en", preview.card, change).whole
    assert "Its files came from another host before: “cdn.example.net”" in text


async def test_a_redirect_within_a_site_is_no_news(tmp_path: Path) -> None:
    installer = Installer(
        Redirecting("https://example.org/v2/tides.zip"), tmp_path, tmp_path / "own", tmp_path
    )
    assert (await installer.preview(ADDRESS)).card.sent_on == ""


async def test_a_yes_to_a_new_skill_replaces_none_that_came_meanwhile(tmp_path: Path) -> None:
    good, evil = (zipped({"SKILL.md": SKILL + word}) for word in (b"good", b"evil"))
    installer = Installer(Archives({"good": good, "evil": evil}), tmp_path, tmp_path / "own", tmp_path)
    of_evil = await installer.preview("https://evil.example/demo.zip")
    of_good = await installer.preview("https://good.example/demo.zip")
    kept = await installer.install(of_good.subject, "https://good.example/demo.zip", approved_by="person_1")
    with pytest.raises(InstallError, match="changed meanwhile"):
        await installer.install(of_evil.subject, "https://evil.example/demo.zip", approved_by="person_1")
    assert await installer.installed("demo") == kept


def test_the_folder_of_an_address_is_the_persons_too() -> None:
    said = ["install https://e.org/a.zip please, or https://e.org/b.zip#x/tides."]
    assert is_written_in("https://e.org/a.zip", said)
    assert is_written_in("https://e.org/b.zip#x/tides", said)
    assert not is_written_in("https://e.org/a.zip#x/evil", said)
    assert not is_written_in("https://e.org/b.zip", said)


async def test_a_yes_to_one_address_is_none_to_another(installer: Installer) -> None:
    subject = (await installer.preview(ADDRESS)).subject
    with pytest.raises(QuarantineError, match="another address"):
        await installer.install(subject, "https://evil.net/tides.zip", approved_by="person_1")


async def test_a_name_that_is_taken_is_refused_before_anybody_is_asked(
    installer: Installer, tmp_path: Path
) -> None:
    (tmp_path / "own" / "demo").mkdir(parents=True)
    with pytest.raises(InstallError, match="came another way"):
        await installer.preview(ADDRESS)
    assert not (tmp_path / "quarantine").exists()


COSTLY = {
    "nested": {"deep.py": b"(" * 200_000},
    "a long line": {"long.py": b"x = [" + b"1," * 20_000 + b"]"},
    "tools": {"scripts/tools.py": b"a\n" * 5_000},
    "many": {f"{n}.py": b"f(%d)\n" % n * 100 for n in range(50)},
}


@pytest.mark.parametrize("files", COSTLY.values(), ids=COSTLY)
async def test_no_file_is_parsed_in_the_process_that_serves_people(
    files: Mapping[str, bytes], tmp_path: Path
) -> None:
    noise = {"noise": os.urandom(100_000)}  # or it would be refused as a bomb
    installer = Installer(
        Archives({"": tarred({"SKILL.md": SKILL, **files, **noise})}), tmp_path, tmp_path / "own"
    )
    parsed.clear()
    made = (await installer.preview(ADDRESS)).card
    assert {file.path for file in made.files} >= files.keys()
    assert parsed.isdisjoint(files.values())
    ast.parse(b"1")
    assert b"1" in parsed


parsed: set[object] = set()
"""Sources that this process parsed."""
sys.addaudithook(
    lambda event, details: parsed.add(details[0]) if event == "compile" and details[0] is not None else None
)


def test_the_process_that_looks_through_a_skill_comes_with_little() -> None:
    code = "import sys, app.installs.skill_examining; print([m for m in %r if m in sys.modules])"
    heavy = ("pydantic", "pydantic_settings", "starlette", "structlog", "rich")
    found = subprocess.run(
        [sys.executable, "-c", code % (heavy,)], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_what_takes_longer_than_it_may_is_refused() -> None:
    tree = unpack(SKILL, ADDRESS)
    with pytest.raises(QuarantineError, match="cannot be looked through within"):
        examine(tree, seconds=0.001)
    assert examine(tree) == card(tree)


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a.md": b"".join(b"https://h%d.net/\n" % n for n in range(101))}, "101 hosts"),
        ({"a.sh": b"".join(b"export KEY%d=\n" % n for n in range(101))}, "101 variables"),
        ({"scripts/tools.py": b"".join(b'def t%d():\n    """T."""\n' % n for n in range(101))}, "101 tools"),
    ],
)
async def test_a_skill_that_names_more_than_anybody_reads_is_refused(
    files: Mapping[str, bytes], reason: str, tmp_path: Path
) -> None:
    installer = Installer(Archives({"": zipped({"SKILL.md": SKILL, **files})}), tmp_path, tmp_path / "own")
    with pytest.raises(QuarantineError, match=reason):
        await installer.preview(ADDRESS)
    assert not (tmp_path / "quarantine").exists()
