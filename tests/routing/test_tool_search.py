"""The search among all tools that a person may use."""

from pathlib import Path

from app.people import Person
from app.routing.tool_catalog import ToolCatalog
from app.routing.tool_search import ToolSearch
from app.skills import SkillLoader
from app.tools import Tool, ToolRegistry

OWNER = Person("p", "whatsapp", role="owner")
SAID = {
    **{f"play_song_{number}": "Plays a song of a list." for number in range(8)},
    **{f"measure_{number}": f"Measures number {number}." for number in range(60)},
    "save_note": "Saves a note.",
}


class Full(SkillLoader):
    """Eight tools that play songs, many others, and one that keeps notes."""

    def tools(self) -> tuple[Tool, ...]:
        def run(title: str) -> str:
            """Does it."""
            return title

        tool = Tool.from_function(run)
        return tuple(
            tool.replace(name=name, description=text, category=name[:4]) for name, text in SAID.items()
        )


async def test_words_about_two_tasks_find_a_tool_for_each(tmp_path: Path) -> None:
    abilities = ToolCatalog(Full(tmp_path), ToolRegistry(), {})
    await abilities.refresh()
    found = ToolSearch(abilities).search("play the next song of the list, then save", OWNER)
    assert len(found) == 5
    assert {one["category"] for one in found} == {"play", "save"}
