"""The register of tools."""

import pytest

from app.tools import DuplicateToolError, Tool, ToolNotFoundError, ToolRegistry


def made(name: str, answer: str = "") -> Tool:
    return Tool(name, f"Does {name}", {"type": "object", "properties": {}}, lambda: answer)


def test_registry_keeps_tools_by_name() -> None:
    registry = ToolRegistry()
    for name in ("beta", "alpha"):
        registry.register(made(name))
    assert [tool.name for tool in registry.list_all()] == ["alpha", "beta"]
    assert [schema["function"]["name"] for schema in registry.get_schemas()] == ["alpha", "beta"]
    assert registry.get_schemas([]) == []
    assert [tool.name for tool in registry.filter_by_names(["beta"])] == ["beta"]
    assert registry.has_tool("alpha")
    assert registry.count() == 2
    registry.clear()
    assert registry.count() == 0


def test_names_that_are_taken_or_unknown() -> None:
    registry = ToolRegistry([made("search_notes")])
    with pytest.raises(DuplicateToolError, match="search_notes"):
        registry.register(made("search_notes"))
    again = made("search_notes")
    registry.register(again, allow_override=True)
    assert registry.get("search_notes") is again
    for look in (registry.get, lambda name: registry.get_schemas([name])):
        with pytest.raises(ToolNotFoundError) as caught:
            look("search_note")
        assert str(caught.value) == "no tool is named 'search_note'"
