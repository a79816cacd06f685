"""Every tool that is_bundled with us is asked about in words of its own, and no value is left out of them."""

import json
from itertools import count
from typing import Any

import pytest

from app.i18n import LANGUAGES
from app.skills import RELEASE_SKILLS, SkillLoader
from app.tools import Tool
from app.turns.cards import call_title, shipped_card, sources_said
from app.turns.shipped_calls import said_of_call

OWN_CARDS = frozenset(
    ("install_skill_from_url", "remove_skill", "install_mcp_server", "remove_mcp_server", "approve_mcp_tools")
)
CHOSEN = frozenset(("overwrite", "append", "active", "archived", "open", "done", "deleted", True, False))
"""What a sentence may say in other words."""
USUAL: dict[str, dict[str, Any]] = {
    "write_file": {"mode": "overwrite"},
    "list_files": {"recursive": False},
    "edit_note": {"append": False},
}
"""What is meant without being said."""


@pytest.fixture(scope="module")
def tools() -> list[Tool]:
    loader = SkillLoader(RELEASE_SKILLS)
    loader.refresh()
    return [tool for tool in loader.tools() if not (tool.harmless or tool.name in OWN_CARDS)]


def written(value: Any) -> str:
    if isinstance(value, list):
        return "”, “".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def every_call(tool: Tool) -> list[dict[str, Any]]:
    """With what must be given alone, and with all, once for each of the values that are to choose from."""
    numbers = count(7001)
    whole: dict[str, Any] = {}
    choices: list[tuple[str, Any]] = []
    for name, schema in tool.input_schema["properties"].items():
        named = [schema, *schema.get("anyOf", ())]
        listed = [value for one in named for value in one.get("enum", ())]
        kinds = [one.get("type") for one in named]
        listed += [True, False] if "boolean" in kinds else []
        number = next(numbers)
        text = f"{number}-11-22" if any(one.get("format") == "date" for one in named) else f"v{number}"
        plain = number if "integer" in kinds else [text, "two"] if "array" in kinds else text
        whole[name] = listed[0] if listed else plain
        choices += [(name, value) for value in listed]
    needed = {name: whole[name] for name in tool.input_schema.get("required", ())}
    return [needed, whole, *({**whole, name: value} for name, value in choices)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_call_of_a_shipped_tool_is_said_in_a_sentence_with_all_its_values(
    tools: list[Tool], language: str
) -> None:
    assert len(tools) > 50
    for tool in tools:
        told: dict[str, dict[str, Any]] = {}
        for arguments in every_call(tool):
            assert tool.validate_args(arguments) == arguments
            text, title = shipped_card(language, tool.name, arguments, (), lambda _: True)
            sentence, *rest = text.split("\n")
            assert "?" in sentence, tool.name
            assert "_" not in text, tool.name
            assert title.startswith(sentence[:90])
            left_out = [value for value in arguments.values() if f"“{written(value)}”" not in text]
            assert CHOSEN.issuperset(left_out), (tool.name, text)
            names = [line.removeprefix("• ").partition(": ")[0] for line in rest]
            assert len(set(names)) == len(names), (tool.name, text)
            meant = {**USUAL.get(tool.name, {}), **arguments}
            assert told.setdefault(text, meant) == meant, "two calls read the same"


@pytest.mark.parametrize(
    ("tool", "one", "other"),
    [
        ("write_file", {"path": "a", "content": "b", "mode": "overwrite"}, {"path": "a", "content": "b"}),
        ("edit_note", {"note": "a", "text": "b", "append": False}, {"note": "a", "text": "b"}),
    ],
)
def test_what_is_meant_without_being_said_reads_the_same(tool: str, one: Any, other: Any) -> None:
    assert said_of_call("en", tool, one, str) == said_of_call("en", tool, other, str)


def test_a_name_that_we_have_no_words_for_is_shown_as_it_is() -> None:
    text, title = shipped_card("es", "write_files", {"path": "a"}, (), lambda _: True)
    assert text == "¿Puedo hacer esto?\n\nwrite_files\n• path: “a”"
    assert title == call_title("write_files", {"path": "a"})
    odd = said_of_call("es", "write_file", {"path": "a", "content": "b", "mode": "prepend"}, str)
    assert odd is None


def test_results_of_ours_are_told_in_words_and_those_of_others_by_name() -> None:
    sources = ("tool:fetch_page", "tool:read_file", "tool:recent_logs", "tool:list_notes")
    again = (*sources[2:], "tool:recall")
    ours = {"fetch_page", "recent_logs", "list_notes", "recall"}
    text, _ = shipped_card("pt", "delete_file", {"path": "{path}”?"}, sources, ours.__contains__)
    assert text.startswith("Posso apagar o arquivo “{path}\\u201d?”?\n\n")
    told = text.partition(": ")[2]
    assert told.startswith("uma página da web, o resultado de read_file, o resultado de recent_logs, algo ")
    assert sources_said("pt", again, ours.__contains__).count("algo ") == 1
