"""Words about MCP servers, as owners write them, followed by the built-in model."""

import asyncio
import json
from typing import ClassVar

import pytest

from app.llm.results import results_text
from app.mcp.definitions import ServerState
from app.routing.tool_catalog import ToolCatalog
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import Tool, ToolRegistry
from tests.llm.catalogue import calls


async def test_of_a_picture_a_person_reads_only_what_was_said_with_it() -> None:
    one = {"type": "image", "mime": "image/png", "bytes": 4033, "attachment": 0}
    lost = {"type": "image", "problem": "it is no base64"}
    for data, told in (
        ({"text": "The logo.", "content": [one]}, "The logo."),
        ({"content": [one]}, "Done."),
    ):
        assert results_text([json.dumps({"ok": True, "data": data})], "en") == told
    result = {"ok": True, "data": {"text": "The logo.", "content": [one, lost]}}
    assert "it is no base64" in results_text([json.dumps(result)], "en")


CLOCK = Tool(
    "mcp_time_get_current_time",
    "Get current time in a specific timezone",
    {
        "type": "object",
        "properties": {"timezone": {"type": "string", "description": "IANA timezone name"}},
        "required": ["timezone"],
    },
    print,
    category="time",
)
SEA = Tool("mcp_sea_tides", "Tides of a port", {"type": "object", "properties": {}}, print, category="sea")


class Running:
    """Stands for `McpServers` with two that run."""

    tools = (CLOCK, SEA)
    descriptions: ClassVar = {"time": "clocks", "sea": "tides"}

    async def refresh(self) -> None:
        """Nothing is read here."""

    async def first_starts(self) -> bool:
        return False

    def states(self) -> list[ServerState]:
        return []


@pytest.fixture(scope="module")
def served() -> ToolCatalog:
    found = ToolCatalog(SkillLoader(RELEASE_SKILLS), ToolRegistry(), {}, servers=Running())
    asyncio.run(found.refresh())
    return found


async def test_a_note_about_a_server_is_a_note(served: ToolCatalog) -> None:
    found = await calls(served, "es", "anota: hablar con el server de la oficina", role="owner")
    assert found == [("save_note", {"text": "hablar con el server de la oficina"})]
