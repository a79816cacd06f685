"""docs/architecture.md names the code that there is."""

import re

import pytest

from tests.world import ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = {path.parent.name for path in (ROOT / "app").glob("*/*.py")}
TABLE, _, MODULES = PAGE.partition("## Modules")
LISTS = dict(re.findall(r"^- \*\*(\w+)/\*\*(.*?)(?=^- |^$)", MODULES, re.MULTILINE | re.DOTALL))


def test_every_room_and_every_module_beside_the_rooms_is_in_the_table() -> None:
    alone = {path.name for path in (ROOT / "app").glob("*.py")} - {"__init__.py"}
    named = set(re.findall(r"`(\w+(?:/|\.py))`", TABLE)) - {"app/"}
    assert {f"{room}/" for room in ROOMS} | alone == named


@pytest.mark.parametrize(
    "room",
    [
        *("turns", "routing", "llm", "mcp", "skills", "schedule", "tools", "search", "store"),
        *("observe", "transport", "calendar", "console"),
    ],
)
def test_the_list_of_a_room_names_its_modules_and_no_others(room: str) -> None:
    there = {path.name for path in (ROOT / "app" / room).rglob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"`(\w+\.py)`", LISTS[room])) == there
