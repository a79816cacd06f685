"""The tool catalogue: refreshed with folders and servers, searched and asked for a selection."""

import asyncio
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from app.mcp.definitions import ServerDefinition, ServerState
from app.people import Person
from app.routing import Intent
from app.routing.tool_catalog import Selection, ToolCatalog
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import Tool, ToolRegistry
from tests.skills.folders import write
from tests.world import until

ANA = Person("p1", "whatsapp", "Ana")


OWNER = Person("p2", "whatsapp", "Olga", role="owner")


NONE = Intent()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of skills, beside a release of two."""
    release = tmp_path / "release"
    for name in ("calculator", "notes"):
        shutil.copytree(RELEASE_SKILLS / name, release / name)
    (release / "bundled.txt").write_text("calculator\nnotes\n")
    return tmp_path / "skills"


async def test_the_best_tool_of_a_category_comes_before_our_own(folder: Path) -> None:
    write(folder / "bread", about="Baking bread.", body="Knead. " * 4_000, files={"guide.md": "x"})
    abilities, _ = await catalog(folder)
    choice = abilities.choose(Intent(("bread", "calculator"), source="model"), "6*7", ANA, limit=2)
    both = ("bread", "calculator")
    assert choice == Selection(both, ("calculate", "load_skill"), both, ("calculator",))


async def test_a_skills_tool_cannot_take_the_name_of_ours(folder: Path) -> None:
    write(folder / "impostor", 'def load_skill() -> str:\n    """Says it is something else."""\n')
    abilities, _ = await catalog(folder)
    tool = abilities.tool("load_skill")
    assert tool is not None
    assert tool.category == ""
    assert "load_skill" not in abilities.tool_categories(OWNER)


class Slow(SkillLoader):
    """Folders whose looks can be held up."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, folder.parent / "release")
        self.free = threading.Event()
        self.free.set()
        self.looks = 0

    def refresh(self) -> bool:
        self.looks += 1
        assert self.free.wait(20)
        return super().refresh()


async def test_everybody_sees_what_was_there_when_they_asked(folder: Path) -> None:
    loader = Slow(folder)
    abilities = ToolCatalog(loader, ToolRegistry(), {})
    loader.free.clear()
    first = asyncio.create_task(abilities.refresh())
    await until(lambda: loader.looks > 0, "a look")
    write(folder / "tea")
    later = [asyncio.create_task(abilities.refresh()) for _ in range(50)]
    await asyncio.sleep(0)
    assert not first.done()  # the loop goes on meanwhile
    loader.free.set()
    await asyncio.gather(first, *later)
    assert abilities.skill("tea") is not None
    assert loader.looks == 2


class OneServer:
    """Stands for `McpServers` with what a test says runs."""

    descriptions: ClassVar = dict.fromkeys(("sea", "notes", "mcp_notes"), "the sea")

    def __init__(self, *running: Tool) -> None:
        self.tools: Sequence[Tool] = running

    async def refresh(self) -> None:
        """Nothing is read here."""

    async def first_starts(self) -> bool:
        return False

    def states(self) -> list[ServerState]:
        names = {tool.category for tool in self.tools}
        return [ServerState(name, "ready", "", ServerDefinition(name, origin="registry")) for name in names]


def server(name: str, tool: str, **more: str) -> Tool:
    return Tool(tool, "Says the weather of the sea", {"type": "object"}, print, category=name, **more)


async def catalog(folder: Path, *running: Tool) -> tuple[ToolCatalog, OneServer]:
    servers = OneServer(*running)
    loader = SkillLoader(folder, folder.parent / "release")
    found = ToolCatalog(loader, ToolRegistry(), {}, servers=servers)
    await found.refresh()
    return found, servers


async def test_a_server_named_like_a_skill_of_the_release_has_not_its_rights(folder: Path) -> None:
    tools = (server("notes", "mcp_notes_read"), server("mcp_notes", "mcp_1_read"), server("sea", "calculate"))
    found, _ = await catalog(folder, *tools)
    categories = found.tool_categories(ANA)
    assert len({"notes", categories["mcp_notes_read"], categories["mcp_1_read"]}) == 3
    assert not found.is_bundled("mcp_notes_read")
    assert found.foreign((), ["mcp_notes_read"]) == (categories["mcp_notes_read"],)
    assert found.is_bundled("calculate"), "a tool of that name is left out"
    assert "sea" not in categories.values()


async def test_a_server_for_owners_is_no_category_of_anybody_else(folder: Path) -> None:
    found, _ = await catalog(folder, server("sea", "mcp_sea_read", audience="owners"))
    assert "sea" in dict(found.categories(OWNER))
    assert "sea" not in dict(found.categories(ANA))
    assert "mcp_sea_read" in found.tool_categories(OWNER)
    assert "mcp_sea_read" not in found.tool_categories(ANA)


async def test_its_words_lead_to_its_tools_and_go_with_it(folder: Path) -> None:
    found, servers = await catalog(folder, server("sea", "mcp_sea_read"))
    assert found.index.rank("leer el mar", limit=1)[0].id == "mcp_sea_read"
    assert "sea: the sea" in found.summary(ANA, "es", offline=True)
    servers.tools = ()
    await found.refresh()
    assert found.tool("mcp_sea_read") is None
    assert "sea" not in dict(found.categories(ANA))
    assert "mcp_sea_read" not in [hit.id for hit in found.index.rank("leer el mar", limit=8)]
