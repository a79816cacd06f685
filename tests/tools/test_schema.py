"""The schemas that models read, from live functions and from source text alike."""

import inspect
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Optional, Union

import pytest
from pydantic import BaseModel, Field

from app.tools import Tool, ToolContext, parse_docstring
from app.tools.schema import PERMISSIVE
from app.tools.source import find_tools
from app.tools.tool import LONGEST_ABOUT_A_PARAMETER, LONGEST_DESCRIPTION, brief


@dataclass
class Address:
    """Where somebody lives."""

    street: str
    number: int | None = None


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    item: str = Field(description="What")
    to: Address
    amount: int = 1


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
ADDRESS = {
    "type": "object",
    "description": "Where somebody lives.",
    "properties": {"street": STRING, "number": INTEGER},
    "required": ["street"],
}


def every_form(
    plain: float,
    maybe: str | None,
    either: Union[int, str],  # noqa: UP007
    bounded: Annotated[int, Field(ge=1, description="How many")],
    pair: tuple[int, str],
    counts: dict[str, int],
    when: datetime,
    home: Address,
    order: Order,
    color: Color,
    later: "list[Address]",
    anything,  # type: ignore[no-untyped-def]
    unknown: "Nowhere",  # type: ignore[name-defined] # noqa: F821
    old: Optional[int] = 3,  # noqa: UP045
    *rest: int,
    only: bool = False,
    shade: Color = Color.RED,
    context: ToolContext | None = None,
    **more: int,
) -> None:
    """Show every form."""


EVERY_FORM = {
    "plain": {"type": "number"},
    "maybe": {"anyOf": [STRING, {"type": "null"}]},
    "either": {"anyOf": [INTEGER, STRING]},
    "bounded": {"type": "integer", "minimum": 1, "description": "How many"},
    "pair": {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2},
    "counts": {"type": "object", "additionalProperties": INTEGER},
    "when": {"type": "string", "format": "date-time"},
    "home": ADDRESS,
    "order": {
        "type": "object",
        "properties": {
            "item": {"type": "string", "description": "What"},
            "to": ADDRESS,
            "amount": {"type": "integer", "default": 1},
        },
        "required": ["item", "to"],
    },
    "color": {"type": "string", "enum": ["red", "blue"]},
    "later": {"type": "array", "items": ADDRESS},
    "anything": {"type": list(PERMISSIVE)},
    "unknown": {"type": list(PERMISSIVE)},
    "old": {"type": "integer", "default": 3},
    "only": {"type": "boolean", "default": False},
    "shade": {"type": "string", "enum": ["red", "blue"], "default": "red"},
}


def test_every_form_of_annotation() -> None:
    tool = Tool.from_function(every_form)
    assert tool.input_schema["properties"] == EVERY_FORM
    assert tool.input_schema["required"] == list(EVERY_FORM)[:13]
    assert [warning.split(":")[0] for warning in tool.warnings] == ["anything", "unknown"]


def test_source_text_gives_the_schema_of_the_live_function() -> None:
    source = inspect.getsource(inspect.getmodule(every_form))  # type: ignore[arg-type]
    found = {tool.name: tool for tool in find_tools(source)[0]}
    live = Tool.from_function(every_form)
    assert found["every_form"].schema == live.input_schema
    assert found["every_form"].warnings == live.warnings


def test_typed_values_reach_the_function() -> None:
    def book(when: datetime, color: Color, home: Address, limit: int = Field(5, ge=1)) -> Any:
        """Book."""
        return [type(when), color, home.street, limit]

    tool = Tool.from_function(book)
    args = {"when": "2026-05-01T10:00:00", "color": "blue", "home": {"street": "Mayor"}}
    checked = tool.validate_args(args)
    assert checked == args
    assert tool.bind(checked, ToolContext())() == [datetime, Color.BLUE, "Mayor", 5]
    with pytest.raises(ValueError, match="when: "):
        tool.validate_args({**args, "when": "tomorrow-ish"})


def test_docstrings() -> None:
    for text, description, params, examples in [
        ("", "", {}, ()),
        ("One line.", "One line", {}, ()),
        ("Two\nlines.\n\nMore text.", "Two lines", {}, ()),
        (
            "Do.\nArgs:\n    a: First\n        goes on\n    *b (int): Second",
            "Do",
            {"a": "First goes on", "b": "Second"},
            (),
        ),
        ("Do.\n\nExamples:\n    - uno\n    - dos\n    - tres", "Do", {}, ("uno", "dos")),
        ("Do.\n\nExamples\n--------\n>>> do()\n1", "Do", {}, ()),
        ("Do.\r\n\r\nArgs:\r\n    a: First\r\n", "Do", {"a": "First"}, ()),
        (
            "Do.\n\nArgs:\n    a : First\n    b (int) : Second\n    `c`: Third\nKeyword Args:\n    d: Fourth",
            "Do",
            {"a": "First", "b": "Second", "c": "Third", "d": "Fourth"},
            (),
        ),
        ("Do.\n\nArgs:\n    a: First\n    b: Second\n\n:return: it", "Do", {"a": "First", "b": "Second"}, ()),
        ("Do.\n\n:param str a: First\n:type a: str\n:param b: Two", "Do", {"a": "First", "b": "Two"}, ()),
        ("Do.\n\nParameters\n----------\na : int\n    First\n\n:returns: it", "Do", {"a": "First"}, ()),
        ("Do.\n\n:param a: First\n  goes on\n\nReturns:\n    it", "Do", {"a": "First goes on"}, ()),
    ]:
        parsed = parse_docstring(text)
        assert (parsed.description, parsed.params, parsed.examples) == (description, params, examples)


def offered(description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return brief(Tool("find", description, schema or {"type": "object", "properties": {}}, print))["function"]


def test_long_words_about_a_tool_are_cut() -> None:
    said = offered("word " * 1000)["description"]
    assert (said[-1], len(said)) == ("…", LONGEST_DESCRIPTION)


def test_no_argument_of_a_tool_is_lost_when_it_is_offered_and_none_means_anything_else() -> None:
    long = "What it is about. " * 50
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": [],
        "properties": {
            "description": {"type": "string", "description": long, "default": ""},
            "required": {"type": "array", "items": {"enum": ["a", "b"], "description": long}},
            "any": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/part"}], "description": ""},
            "free": {"type": "object", "additionalProperties": False},
            "flag": {"type": "boolean", "default": False},
        },
        "$defs": {"part": {"type": "object", "properties": {"x": {"type": "number", "minimum": 1}}}},
    }
    parameters = offered("Finds", schema)["parameters"]
    listed = parameters["properties"]
    about = listed["description"].pop("description")
    assert about == listed["required"]["items"].pop("description")
    assert about.endswith("…")
    assert len(about) <= LONGEST_ABOUT_A_PARAMETER
    assert parameters == {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "required": {"type": "array", "items": {"enum": ["a", "b"]}},
            "any": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/part"}]},
            "free": {"type": "object", "additionalProperties": False},
            "flag": {"type": "boolean", "default": False},
        },
        "$defs": {"part": {"type": "object", "properties": {"x": {"type": "number", "minimum": 1}}}},
    }
