"""Whether a look still holds: whatever could make another one see more must end it."""

import mmap
import os
import resource
import shutil
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.assistant import Assistant
from app.settings import Settings
from app.skills import SkillLoader
from app.skills.watch import Watch
from tests.skills.folders import write

CODE = 'def brew() -> str:\n    """Brews."""\n    return "tea"\n'


@dataclass(frozen=True)
class Place:
    """A skill of each kind, and a data folder beside, in which only some names matter."""

    root: Path
    watch: Watch

    @property
    def tea(self) -> Path:
        return self.root / "skills/tea"

    def look(self) -> list[str]:
        """The skills there are, with their descriptions."""
        self.watch.begin()
        loader = SkillLoader(self.root / "skills", self.root / "none", watch=self.watch)
        loader.refresh()
        self.watch.stamp(str(self.root / "data/mcp.json"))
        self.watch.stamps_below(self.root / "data/mcp/servers", "installed.json")
        self.watch.confirm()
        return [f"{skill.name} {skill.description} {len(skill.tools)}" for skill in loader.skills]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path / "place"
    write(root / "skills/tea", CODE)
    write(root / "outside/linked", CODE.replace("brew", "lead"), name="link")
    (root / "skills/link").symlink_to("../outside/linked")
    (root / "outside/linked.py").write_text("")
    (root / "skills/tea/scripts/linked.py").symlink_to("../../../outside/linked.py")
    (root / "skills/later").symlink_to("../outside/later")
    (root / "skills/circle").symlink_to("circle")
    (root / "skills/chain").symlink_to("../outside/current")
    (root / "outside/current").symlink_to("linked")
    (root / "skills/mapped").mkdir()  # as Kubernetes mounts a ConfigMap
    (root / "skills/mapped/SKILL.md").symlink_to("..data/SKILL.md")
    (root / "skills/mapped/..data").symlink_to("..one")
    write(root / "skills/mapped/..one", name="mapped")
    (root / "skills/tea/mcp.json").symlink_to("../../outside/servers.json")
    (root / "data").mkdir()
    place = Place(root, Watch())
    place.look()
    place.look()
    if not place.watch.holds():
        pytest.skip("nothing tells of changed files on this file system")
    return place


def _replaced(path: Path, text: str) -> None:
    """As editors and installers do."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)


def _appended(path: Path) -> None:
    with path.open("a") as file:
        file.write("x")


def _mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:1] = b"#"


def _swapped(folder: Path) -> None:
    """The whole folder, for one that looks the same."""
    shutil.copytree(folder, folder.with_name("copy"), symlinks=True)
    folder.rename(folder.with_name("old"))
    folder.with_name("copy").rename(folder)


def _relinked(link: Path, to: str) -> None:
    new = link.with_name("new-link")
    new.symlink_to(to)
    new.replace(link)


CHANGES: dict[str, Callable[[Place], object]] = {
    "a skill comes": lambda place: write(place.root / "skills/coffee", CODE),
    "a folder comes": lambda place: (place.root / "skills/empty").mkdir(),
    "a skill goes": lambda place: shutil.rmtree(place.tea),
    "a skill is moved away": lambda place: place.tea.rename(place.root / "away"),
    "a text is written over": lambda place: (place.tea / "SKILL.md").write_text("x"),
    "a byte is added": lambda place: _appended(place.tea / "SKILL.md"),
    "a file is emptied": lambda place: os.truncate(place.tea / "scripts/tools.py", 0),
    "a file is replaced": lambda place: _replaced(place.tea / "SKILL.md", "x"),
    "a file is written through memory": lambda place: _mapped(place.tea / "scripts/tools.py"),
    "a file's times are set": lambda place: os.utime(place.tea / "SKILL.md", (1, 1)),
    "a file cannot be read any more": lambda place: (place.tea / "SKILL.md").chmod(0),
    "a module comes": lambda place: (place.tea / "scripts/more.py").write_text(""),
    "a module goes": lambda place: (place.tea / "scripts/tools.py").unlink(),
    "a folder for phrases comes": lambda place: (place.tea / "assets").mkdir(),
    "what a link leads to comes": lambda place: (place.root / "outside/servers.json").write_text("{}"),
    "a folder comes that a link leads to": lambda place: write(place.root / "outside/later", CODE),
    "a link that a link leads to leads elsewhere": lambda place: _relinked(
        place.root / "outside/current", "nowhere"
    ),
    "a ConfigMap is another": lambda place: _relinked(place.root / "skills/mapped/..data", "..two"),
    "what is around all of it is swapped": lambda place: _swapped(place.root),
    "another name of a file is written to": lambda place: _under_another_name(place.tea / "SKILL.md"),
    "what a link leads to is written": lambda place: (place.root / "outside/linked.py").write_text("1"),
    "what a link leads to is replaced": lambda place: _replaced(place.root / "outside/linked.py", "1"),
    "a text in a linked folder is written": lambda place: (place.root / "outside/linked/SKILL.md").write_text(
        "x"
    ),
    "a linked folder is swapped": lambda place: _swapped(place.root / "outside/linked"),
    "a link leads elsewhere": lambda place: _relinked(place.root / "skills/link", "tea"),
    "all skills are swapped": lambda place: _swapped(place.root / "skills"),
    "all skills go": lambda place: shutil.rmtree(place.root / "skills"),
    "a file comes for which there was a place": lambda place: (place.root / "data/mcp.json").write_text("{}"),
    "a folder comes far above what is looked for": lambda place: (place.root / "data/mcp").mkdir(),
}


def _under_another_name(path: Path) -> None:
    other = path.parents[2] / "other"
    other.hardlink_to(path)
    other.write_text("x")


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_change_goes_unheard(place: Place, change: Callable[[Place], object]) -> None:
    change(place)
    assert not place.watch.holds()
    changed = place.look()
    assert not place.watch.holds(), "what came while it looked might be missed"
    assert place.look() == changed
    assert place.watch.holds()


def test_a_change_during_a_look_is_not_lost(place: Place) -> None:
    (place.tea / "SKILL.md").write_text("x")
    place.look()
    (place.tea / "scripts/more.py").write_text("")  # after what it looked at, before it holds
    place.look()
    assert not place.watch.holds()
    place.look()
    assert place.watch.holds()


def test_what_comes_bit_by_bit_is_heard_at_each_bit(place: Place) -> None:
    """From a folder far above to the file: each step is followed once it is there."""
    home = place.root / "data/mcp/servers/maps"
    for folder in (home.parents[1], home.parent, home):
        folder.mkdir()
        assert not place.watch.holds()
        place.look()
        place.look()
        assert place.watch.holds()
    (home / "installed.json").write_text("{}")
    assert not place.watch.holds()


def test_what_else_happens_beside_is_not_listened_to(place: Place) -> None:
    with sqlite3.connect(place.root / "data/recado.db") as conn:
        conn.execute("PRAGMA journal_mode=WAL")
        conn.execute("CREATE TABLE t AS SELECT 1")
    conn.close()
    (place.tea / "notes.txt").write_text("no part of the skill")
    (place.root / "data/media").mkdir()
    assert place.watch.holds()


def test_too_many_notices_end_it(place: Place) -> None:
    for number in range(20_000):
        (place.tea / f"n{number % 2}").write_text("")
        (place.tea / f"n{number % 2}").unlink()
    assert not place.watch.holds()


@pytest.mark.parametrize("path", ["/proc/self/status", "/sys/kernel"])
def test_where_changes_may_go_unheard_no_look_holds(place: Place, path: str) -> None:
    for _ in range(3):
        place.watch.begin()
        place.watch.stamp(path)
        place.watch.confirm()
        assert not place.watch.holds()


def test_a_look_that_could_not_see_all_does_not_hold(place: Place) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        assert place.look() == []
        assert not place.watch.holds()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert place.look() != []


def test_a_look_that_came_to_no_end_ends_what_held(place: Place) -> None:
    place.watch.begin()
    assert not place.watch.holds()


def test_after_its_time_no_look_holds(tmp_path: Path) -> None:
    place = Place(tmp_path, Watch(seconds=0))
    for _ in range(3):
        place.look()
        assert not place.watch.holds()


def test_nothing_holds_once_it_is_closed(place: Place) -> None:
    place.watch.close()
    assert not place.watch.holds()
    place.look()
    place.look()
    assert not place.watch.holds()


WRITTEN = {
    "the operator's servers": "mcp_servers.json",
    "a server's secrets": "secrets/maps",
    "the record of an installed server": "mcp/maps/installed.json",
    "the record of an installed skill": "skills/tea/installed.json",
}


@pytest.mark.parametrize("file", WRITTEN.values(), ids=WRITTEN)
async def test_all_that_an_assistant_looks_at_shares_one_watch(tmp_path: Path, file: str) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = Settings(  # type: ignore[call-arg]
        _env_file=None,
        DATA_DIR=tmp_path,
        database_url=f"sqlite:///{tmp_path}/recado.db",
        mcp_config_path=tmp_path / "mcp_servers.json",
    )
    assistant = Assistant(settings)
    for change in (lambda: path.write_text("{}"), lambda: path.write_text("[]"), path.unlink):
        for _ in range(3):
            await assistant.abilities.refresh_for_message(time.time())
        if not assistant.watch.holds():
            pytest.skip("nothing tells of changed files on this file system")
        change()
        assert not assistant.watch.holds()
    await assistant.abilities.close()
