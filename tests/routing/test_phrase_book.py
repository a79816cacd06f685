"""What a model writes for installed tools: read strictly, bounded, kept for exactly what was described."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.routing.phrase_book import MOST_TOOLS, read_answer
from app.routing.tool_catalog import ToolCatalog
from app.skills import SkillLoader
from app.store.database import Database
from app.tools import Tool, ToolRegistry
from tests.routing.test_tool_catalog import OneServer
from tests.world import until


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ('```json\n{"a": {"es": ["uno", "uno", 3]}}\n```', {"a": {"es": ("uno",)}}),
        (
            '{as asked}: {"a": {"fr": ["un"], "en": ["one\\ntwo"]}, "b": {"en": ["two"]}}',
            {"a": {"en": ("one two",)}},
        ),
        ('{"a": {"en": ["do {x}", "' + "x" * 200 + '", "\\ud800", "hid\\u202eden"]}}', {}),
        ('{"a": {"en": ["1","2","3","4","5","6","7"]}}', {"a": {"en": tuple("12345")}}),
        ("nothing", {}),
        ('{"a": ' * 5000, {}),
    ],
)
def test_of_what_the_model_wrote_only_short_visible_phrases_are_kept(answer: str, kept: Any) -> None:
    assert read_answer(answer, ["a"]) == kept


class Writer:
    """Fulfils `Model`; keeps what it was asked about, by call."""

    failure = ""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[Mapping[str, str]] = []
        self.fails = fails

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        shown = json.loads(request.messages[1]["content"])
        self.asked.append({one["tool"]: one["description"] for one in shown})
        if self.fails:
            raise ModelError("no model")
        said = {one["tool"]: {"en": [f"swell {one['description']}"]} for one in shown}
        return ModelAnswer(json.dumps(said))

    async def close(self) -> None: ...


class People:
    """Fulfils what is asked of the store: who writes here writes English."""

    def __init__(self, *, lead: bool) -> None:
        self.is_leader = lead

    async def all(self, sql: str) -> list[dict[str, str]]:
        return [{"language": "en"}]


def tool(name: str, description: str) -> Tool:
    return Tool(name, description, {"type": "object"}, print, category="sea")


async def catalog(
    data_dir: Path, writer: Writer, *tools: Tool, leads: bool = True
) -> tuple[ToolCatalog, OneServer]:
    """A catalogue of an installed server's tools, in the process that `leads` or in another."""
    home = data_dir / "mcp" / "sea"
    home.mkdir(parents=True, exist_ok=True)
    (home / "installed.json").touch()
    servers = OneServer(*tools)
    loader = SkillLoader(data_dir, bundled=data_dir)
    found = ToolCatalog(loader, ToolRegistry(), {}, servers=servers, data_dir=data_dir)
    found.phrase_book.start(writer, cast(Database, People(lead=leads)))
    await found.refresh()
    return found, servers


async def test_the_first_tools_of_a_server_get_phrases_beside_those_made_of_their_texts(
    tmp_path: Path,
) -> None:
    writer = Writer()
    tools = [tool(f"mcp_sea_read_{number}", f"Reads sea {number}") for number in range(25)]
    other, _ = await catalog(tmp_path, Writer(fails=True), *tools, leads=False)
    found, _ = await catalog(tmp_path, writer, *tools)
    await until(lambda: sum(map(len, writer.asked)) == MOST_TOOLS and found.phrase_book.has_news, "the model")
    await found.refresh()
    document = found.index.document("mcp_sea_read_3")
    assert document is not None
    assert "swell Reads sea 3" in document.examples
    assert any("leer" in example for example in document.examples)  # Spanish, which nobody wrote
    assert "mcp_sea_read_3" not in found.phrases()
    await found.close()
    await other.refresh_for_message()
    beside = other.index.document("mcp_sea_read_3")
    assert beside is not None
    assert beside.examples == document.examples
    assert not other.phrase_book.has_news
    await other.close()
    again = Writer()
    found, _ = await catalog(tmp_path, again, *tools)
    await found.close()
    assert not again.asked
