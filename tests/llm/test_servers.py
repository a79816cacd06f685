"""Words about MCP servers, as owners write them, followed by the built-in model."""

import asyncio
import json
from typing import Any

import pytest

from app.llm.offline.replies import results_text
from app.routing.snapshot import ServerTools
from app.routing.tool_catalog import ToolCatalog
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import Tool, ToolRegistry
from tests.llm.catalogue import calls

IDS = ("io.github.github/github-mcp-server", "io.github.ana/github-issues")


@pytest.mark.parametrize(
    ("language", "said", "tool", "arguments"),
    [
        ("es", "instalá el server de la hora", "install_mcp_server", {"name": "la hora"}),
        ("es", "instala el servidor de github", "install_mcp_server", {"name": "github"}),
        ("es", "qué servers tengo", "list_mcp_servers", {}),
        ("es", "sacá el server de github", "remove_mcp_server", {"name": "github"}),
        ("es", "deshacé la instalación", "remove_mcp_server", {}),
        ("es", "apagá el server time", "disable_mcp_server", {"name": "time"}),
        ("es", "prendé el server time", "enable_mcp_server", {"name": "time"}),
        ("es", "buscá un server de clima", "search_mcp_registry", {"words": "clima"}),
        ("es", "aprobá las herramientas de time", "approve_mcp_tools", {"name": "time"}),
        ("pt", "instala o servidor de tempo", "install_mcp_server", {"name": "tempo"}),
        ("pt", "quais servidores eu tenho", "list_mcp_servers", {}),
        ("pt", "desfaz a instalação", "remove_mcp_server", {}),
        ("en", "install the time server", "install_mcp_server", {"name": "time"}),
        ("en", f"install the server {IDS[0]}", "install_mcp_server", {"name": IDS[0]}),
        ("en", "remove the time server", "remove_mcp_server", {"name": "time"}),
        ("en", "undo the install", "remove_mcp_server", {}),
        ("es", "quiero el server postcode-lookup", "install_mcp_server", {"name": "postcode-lookup"}),
        ("es", "ya no quiero el server time", "remove_mcp_server", {"name": "time"}),
        ("es", "poné el mcp de la hora", "install_mcp_server", {"name": "la hora"}),
        ("es", "hay algun server para el clima?", "search_mcp_registry", {"words": "el clima"}),
        ("es", "que server hay de sqlite", "search_mcp_registry", {"words": "sqlite"}),
        ("pt", "bota o servidor mcp do tempo pra mim", "install_mcp_server", {"name": "tempo pra mim"}),
        ("pt", "tem algum servidor pra github?", "search_mcp_registry", {"words": "github"}),
        ("en", "set up the github mcp", "install_mcp_server", {"name": "github"}),
        ("en", "is there a server for weather?", "search_mcp_registry", {"words": "weather"}),
        ("es", "deshacer", "undo_note", {}),
        ("es", "quita la nota 3", "delete_note", {"note": "3"}),
    ],
)
async def test_words_about_servers_lead_to_their_tools(
    language: str, said: str, tool: str, arguments: dict[str, Any], abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, said, role="owner") == [(tool, arguments)]


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
    """Fulfils `Servers` with two that run."""

    async def refresh(self) -> None:
        """Nothing is read here."""

    async def first_starts(self) -> bool:
        return False

    def offered(self) -> list[ServerTools]:
        return SERVED


SERVED = [
    ServerTools("time", "clocks", tools=(CLOCK,)),
    ServerTools("sea", "tides", tools=(SEA,)),
]


@pytest.fixture(scope="module")
def served() -> ToolCatalog:
    found = ToolCatalog(SkillLoader(RELEASE_SKILLS), ToolRegistry(), {}, servers=Running())
    asyncio.run(found.refresh())
    return found


async def test_a_note_about_a_server_is_a_note(served: ToolCatalog) -> None:
    found = await calls(served, "es", "anota: hablar con el server de la oficina", role="owner")
    assert found == [("save_note", {"text": "hablar con el server de la oficina"})]
