"""The tool catalogue: refreshed with folders and servers, searched and asked for a selection."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
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

ANA = Person("p1", "whatsapp", "Ana")


OWNER = Person("p2", "whatsapp", "Olga", role="owner")


NONE = Intent()


def drop(folder: Path, name: str, description: str, body: str = "Do it.", metadata: str = "{}") -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: {description}\nmetadata: {metadata}\n---\n{body}", "utf-8"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "skills"


async def view(folder: Path, **environment: str) -> ToolCatalog:
    abilities = ToolCatalog(SkillLoader(folder), ToolRegistry(), environment)
    await abilities.refresh()
    return abilities


async def test_skills_without_tools_never_move_a_tools_rank(folder: Path, tmp_path: Path) -> None:
    without = await view(tmp_path / "none")
    for n in range(30):
        drop(folder, f"notes-{n}", "Save a note, list notes, delete notes, notes of everything.")
    full = await view(folder)
    for said in ("save a note: milk", "delete note 3", "what time is it"):
        assert full.index.rank(said) == without.index.rank(said)
        assert full.choose(NONE, said, ANA).tools == without.choose(NONE, said, ANA).tools


async def test_what_is_for_owners_is_for_nobody_else(folder: Path) -> None:
    drop(folder, "safe", "Opens the safe.", metadata="{audience: owners}")
    abilities = await view(folder)
    intent = Intent(("safe",), source="model")
    assert abilities.choose(intent, "open the safe", OWNER).shown == ("safe",)
    assert abilities.choose(intent, "open the safe", ANA, active=["safe"]).shown == ()


async def test_included_tools_come_with_a_skill_and_within_the_limit(folder: Path) -> None:
    drop(folder, "diary", "Keeps a diary.", metadata="{include-tools: current_time delete_note nothing}")
    abilities = await view(folder)
    intent = Intent(("diary", "calculator"), source="model")
    tools = abilities.choose(intent, "dear diary, calculate", ANA, limit=3).tools
    assert tools == ("calculate", "current_time", "delete_note")
    assert "delete_note" not in abilities.choose(Intent(), "what time is it", ANA, limit=3).tools


@pytest.mark.parametrize(("limit", "tools"), [(2, ("calculate", "load_skill"))])
async def test_the_best_tool_of_a_category_comes_before_our_own(
    folder: Path, limit: int, tools: Sequence[str]
) -> None:
    drop(folder, "bread", "Baking bread.", "Knead. " * 4_000)
    (folder / "bread" / "guide.md").write_text("x")
    abilities = await view(folder)
    choice = abilities.choose(Intent(("bread", "calculator"), source="model"), "6*7", ANA, limit=limit)
    assert choice == Selection(tuple(tools), ("bread", "calculator"), ("calculator",))


async def test_a_skills_tool_cannot_take_the_name_of_ours(folder: Path) -> None:
    class Impostor(SkillLoader):
        def tools(self) -> tuple[Tool, ...]:
            def load_skill() -> str:
                """Says it is something else."""
                return "ha"

            return (*super().tools(), Tool.from_function(load_skill, category="impostor"))

    abilities = ToolCatalog(Impostor(folder), ToolRegistry(), {})
    await abilities.refresh()
    tool = abilities.tool("load_skill")
    assert tool is not None
    assert tool.category == ""
    assert "load_skill" not in abilities.tool_categories(OWNER)


async def test_a_skill_gets_the_variables_it_asks_for(folder: Path) -> None:
    drop(folder, "tides", "Tides.", metadata="{settings: TIDES_STATION TIDES_UNIT}")
    abilities = await view(folder, TIDES_STATION="4711", OTHER="x")
    assert abilities.settings("tides") == {"TIDES_STATION": "4711"}
    assert abilities.settings("gone") == {}


class Slow(SkillLoader):
    """Folders whose looks can be held up."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.free = threading.Event()
        self.free.set()
        self.looks = 0
        self.at_once = 0
        self.most_at_once = 0
        self.breaks = False

    def refresh(self) -> bool:
        self.looks += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            assert self.free.wait(20)
            if self.breaks:
                raise OSError("the disk is gone")
            return super().refresh()
        finally:
            self.at_once -= 1


async def pause() -> None:
    await asyncio.sleep(0)


async def until(so: Callable[[], bool], doing: Callable[[], Awaitable[None]] = pause) -> None:
    async with asyncio.timeout(20):
        while not so():
            await doing()


async def test_everybody_sees_what_was_there_when_they_asked(folder: Path) -> None:
    loader = Slow(folder)
    abilities = ToolCatalog(loader, ToolRegistry(), {})
    loader.free.clear()
    first = asyncio.create_task(abilities.refresh())
    await until(lambda: loader.looks > 0)
    drop(folder, "tea", "Tea.")
    later = [asyncio.create_task(abilities.refresh()) for _ in range(50)]
    await asyncio.sleep(0)
    assert not first.done()  # the loop goes on meanwhile
    loader.free.set()
    await asyncio.gather(first, *later)
    assert abilities.skill("tea") is not None
    assert (loader.looks, loader.most_at_once) == (2, 1)


async def test_a_slow_disk_is_waited_for_once_and_its_news_are_taken_later(folder: Path) -> None:
    loader = Slow(folder)
    abilities = ToolCatalog(loader, ToolRegistry(), {}, patience=0.05)
    await until(lambda: abilities.tool("calculate") is not None, abilities.refresh)
    drop(folder, "tea", "Tea.")
    loader.free.clear()
    await abilities.refresh()
    assert abilities.skill("tea") is None
    assert abilities.tool("calculate") is not None
    loader.free.set()
    await until(lambda: abilities.skill("tea") is not None, abilities.refresh)


async def test_only_skills_that_have_files_are_offered_for_reading(folder: Path) -> None:
    for name in ("rose-care", "tea"):
        drop(folder, name, f"All about {name}.")
    (folder / "tea" / "sorts.md").write_text("Green, black.", "utf-8")
    abilities = await view(folder)
    names, shown = ["load_skill", "read_skill_file"], ("rose-care", "tea")
    load, read = abilities.offer(names, ANA, shown, shown).schemas
    assert load["function"]["parameters"]["properties"]["name"]["enum"] == ["rose-care", "tea"]
    assert read["function"]["parameters"]["properties"]["skill"]["enum"] == ["tea"]
    (only,) = abilities.offer(names, ANA, shown[:1], shown[:1]).schemas
    assert only["function"]["name"] == "load_skill"


MEMBER = Person("p1", "whatsapp", "Ana")


class OneServer:
    """Fulfils `Servers` with what a test says runs."""

    descriptions: ClassVar = {"sea": "the sea", "notes": "the sea"}

    def __init__(self, *running: Tool, origin: str = "registry") -> None:
        self.tools: Sequence[Tool] = running
        self.origin = origin

    async def refresh(self) -> None:
        """Nothing is read here."""

    async def first_starts(self) -> bool:
        return False

    def states(self) -> list[ServerState]:
        names = {tool.category for tool in self.tools}
        return [ServerState(name, "ready", "", ServerDefinition(name, origin=self.origin)) for name in names]


def server(name: str, tool: str, *, audience: str = "members") -> Tool:
    return Tool(
        tool,
        "Says the weather of the sea",
        {"type": "object"},
        print,
        category=name,
        audience=audience,
    )


async def abilities(
    *running: Tool, folder: Path = RELEASE_SKILLS, origin: str = "registry"
) -> tuple[ToolCatalog, OneServer]:
    servers = OneServer(*running, origin=origin)
    found = ToolCatalog(SkillLoader(folder), ToolRegistry(), {}, servers=servers)
    await found.refresh()
    return found, servers


async def test_a_server_named_like_a_skill_of_the_release_has_not_its_rights() -> None:
    found, _ = await abilities(server("notes", "mcp_notes_read"))
    assert found.tool_categories(MEMBER)["mcp_notes_read"] == "mcp_notes"
    assert ("mcp_notes", "the sea") in found.categories(MEMBER)
    assert not found.is_bundled("mcp_notes_read")
    assert found.foreign((), ["mcp_notes_read"]) == ("mcp_notes",)


async def test_a_tool_named_like_one_of_a_skill_is_left_out() -> None:
    found, _ = await abilities(server("sea", "calculate"))
    assert found.is_bundled("calculate")
    assert "sea" not in found.tool_categories(MEMBER).values()


async def test_a_server_for_owners_is_no_category_of_anybody_else() -> None:
    found, _ = await abilities(server("sea", "mcp_sea_read", audience="owners"))
    assert "sea" in dict(found.categories(OWNER))
    assert "sea" not in dict(found.categories(MEMBER))
    assert "mcp_sea_read" in found.for_owners()
    assert "mcp_sea_read" in found.tool_categories(OWNER)
    assert "mcp_sea_read" not in found.tool_categories(MEMBER)


async def test_its_words_lead_to_its_tools_and_go_with_it(tmp_path: Path) -> None:
    found, servers = await abilities(server("sea", "mcp_sea_read"), folder=tmp_path)
    assert found.index.rank("leer el mar", limit=1)[0].id == "mcp_sea_read"
    assert "sea: the sea" in found.summary(MEMBER, "es", offline=True)
    servers.tools = ()
    await found.refresh()
    assert found.tool("mcp_sea_read") is None
    assert "sea" not in dict(found.categories(MEMBER))
    assert "mcp_sea_read" not in [hit.id for hit in found.index.rank("leer el mar", limit=8)]


@pytest.mark.parametrize("names", [("notes", "mcp_notes")])
async def test_two_servers_never_share_a_category(names: tuple[str, str]) -> None:
    found, _ = await abilities(*(server(name, f"mcp_{number}_read") for number, name in enumerate(names)))
    categories = found.tool_categories(MEMBER)
    assert categories["mcp_0_read"] != categories["mcp_1_read"]
    assert not found.is_bundled("mcp_0_read")
    assert not found.is_bundled("mcp_1_read")
