"""What servers add to the view: categories and tools of their own, never a skill's rights."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.people import Person
from app.routing.snapshot import ServerTools
from app.routing.tool_catalog import ToolCatalog
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import Tool, ToolRegistry

MEMBER = Person("p1", "whatsapp", "Ana")
OWNER = Person("p2", "whatsapp", "Olga", role="owner")


class OneServer:
    """Fulfils `Servers` with what a test says runs."""

    def __init__(self, *running: ServerTools) -> None:
        self.running: Sequence[ServerTools] = running

    async def refresh(self) -> None:
        """Nothing is read here."""

    async def first_starts(self) -> bool:
        return False

    def offered(self) -> Sequence[ServerTools]:
        return self.running


def server(name: str, tool: str, *, audience: str = "everyone", installed: bool = True) -> ServerTools:
    made = Tool(
        tool,
        "Says the weather of the sea",
        {"type": "object"},
        print,
        category=name,
        audience=audience,  # type: ignore[arg-type]
    )
    phrases = {tool: {"es": ("cómo está el mar",)}}
    return ServerTools(name, "the sea", installed, phrases, (made,))


async def abilities(*running: ServerTools, folder: Path = RELEASE_SKILLS) -> tuple[ToolCatalog, OneServer]:
    servers = OneServer(*running)
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


async def test_the_operators_own_server_is_not_installed(tmp_path: Path) -> None:
    found, _ = await abilities(server("sea", "mcp_sea_read", installed=False), folder=tmp_path)
    assert found.foreign((), ["mcp_sea_read"]) == ()


async def test_its_phrases_lead_to_its_tools_and_go_with_it(tmp_path: Path) -> None:
    found, servers = await abilities(server("sea", "mcp_sea_read"), folder=tmp_path)
    assert found.index.rank("como esta el mar", limit=1)[0].id == "mcp_sea_read"
    assert "“cómo está el mar”" in found.summary(MEMBER, "es", offline=True)
    servers.running = ()
    await found.refresh()
    assert found.tool("mcp_sea_read") is None
    assert "sea" not in dict(found.categories(MEMBER))
    assert "mcp_sea_read" not in [hit.id for hit in found.index.rank("como esta el mar", limit=8)]


async def test_a_tool_without_phrases_is_known_by_its_texts_in_three_languages_and_no_example(
    tmp_path: Path,
) -> None:
    silent = dataclasses.replace(server("sea", "mcp_sea_read"), phrases={"mcp_sea_read": {"es": ()}})
    found, _ = await abilities(silent, folder=tmp_path)
    document = found.index.document("mcp_sea_read")
    assert document is not None
    assert document.examples[0] == "sea read"
    assert "leer" in document.examples[1]
    assert "ler" in document.examples[2]
    assert "leer" not in "".join(found.summary(MEMBER, "es", offline=True))
    assert "mcp_sea_read" not in found.phrases() or not found.phrases()["mcp_sea_read"]


@pytest.mark.parametrize("names", [("notes", "mcp_notes"), ("mcp_notes", "notes")])
async def test_two_servers_never_share_a_category(names: tuple[str, str]) -> None:
    found, _ = await abilities(*(server(name, f"mcp_{number}_read") for number, name in enumerate(names)))
    categories = found.tool_categories(MEMBER)
    assert categories["mcp_0_read"] != categories["mcp_1_read"]
    assert not found.is_bundled("mcp_0_read")
    assert not found.is_bundled("mcp_1_read")
