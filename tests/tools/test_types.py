"""Types that hold types: dictionaries, dataclasses and models in one another, from text and alive."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Required

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from app.tools import Tool, ToolContext
from app.tools.schema import PERMISSIVE
from app.tools.source import find_tools

STRING, INTEGER, ANYTHING = {"type": "string"}, {"type": "integer"}, {"type": list(PERMISSIVE)}


class Place(TypedDict):
    """Where it is."""

    x: int
    name: NotRequired[str]


class Loose(TypedDict, total=False):
    x: Required[int]
    note: Annotated[str, Field(description="A word")]


@dataclass
class Visit:
    place: Place
    others: list[Place] = field(default_factory=list)
    loose: Loose | None = None


class Pair(NamedTuple):
    place: Place
    count: int


class Kind(Enum):
    ONE = auto()
    TWO = enum.auto()


class Name(StrEnum):
    RED = auto()
    SKY = "sky blue"


@dataclass
class Node:
    """A node."""

    value: int
    next: Node | None = None


class Tree(BaseModel):
    children: list[Tree] = []


PLACE = {
    "type": "object",
    "description": "Where it is.",
    "properties": {"x": INTEGER, "name": STRING},
    "required": ["x"],
}
LOOSE = {
    "type": "object",
    "properties": {"x": INTEGER, "note": {"type": "string", "description": "A word"}},
    "required": ["x"],
}
VISIT = {
    "type": "object",
    "properties": {
        "place": PLACE,
        "others": {"type": "array", "items": PLACE},
        "loose": LOOSE,
    },
    "required": ["place"],
}
FORMS = {
    "place": PLACE,
    "loose": LOOSE,
    "visit": VISIT,
    "kind": {"type": "integer", "enum": [1, 2]},
    "node": {"$ref": "#/$defs/Node"},
    "tree": {"$ref": "#/$defs/Tree"},
    "maybe": {"type": "array", "items": PLACE},
    "name": {"type": "string", "enum": ["red", "sky blue"], "default": "red"},
}
DEFINITIONS = {
    "Node": {
        "type": "object",
        "description": "A node.",
        "properties": {"value": INTEGER, "next": {"$ref": "#/$defs/Node"}},
        "required": ["value"],
    },
    "Tree": {
        "type": "object",
        "properties": {
            "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []},
        },
    },
}


def every_nesting(
    place: Place,
    loose: Loose,
    visit: Visit,
    kind: Kind,
    node: Node,
    tree: Tree,
    maybe: Optional[list[Place]] = None,  # noqa: UP045
    name: Name = Name.RED,
) -> None:
    """Show types in types."""


def test_types_in_types_have_one_schema_alive_and_from_text() -> None:
    live = Tool.from_function(every_nesting)
    assert live.input_schema == {
        "type": "object",
        "properties": FORMS,
        "required": list(FORMS)[:6],
        "$defs": DEFINITIONS,
    }
    assert live.warnings == ()
    source = inspect.getsource(inspect.getmodule(every_nesting))  # type: ignore[arg-type]
    found = {tool.name: tool for tool in find_tools(source)[0]}["every_nesting"]
    assert found.schema == live.input_schema
    assert found.warnings == ()


BARE = """
from typing import Dict, List, Literal, Optional
from pydantic import Field
UNITS = ("m", "ft")

def odd({parameter}):
    \"\"\"Show.\"\"\"
"""


def test_types_that_say_little_leave_the_tool_what_it_is() -> None:
    for parameter, schema in [
        ("x: Dict", {"type": "object"}),
        ("x: Optional[Dict] = None", {"type": "object"}),
        ("x: List[Dict]", {"type": "array", "items": {"type": "object"}}),
        ("x: dict[str]", ANYTHING),
        ("x: Optional = Field(1)", {**ANYTHING, "default": 1}),
        ("x: Literal[UNITS]", {"type": "string", "enum": ["m", "ft"]}),
        ('x: Literal[UNITS] = "m"', {"type": "string", "enum": ["m", "ft"], "default": "m"}),
    ]:
        source = BARE.format(parameter=parameter)
        (found,), _ = find_tools(source)
        assert found.schema["properties"] == {"x": schema}
        names: dict[str, Any] = {}
        exec(source, names)
        assert Tool.from_function(names["odd"]).input_schema == found.schema


def test_values_of_nested_types_reach_the_function() -> None:
    def show(visit: Visit, pair: Pair, kind: Kind) -> Any:
        """Show."""
        return [visit, pair, kind]

    args = {
        "visit": {"place": {"x": 1}, "loose": {"x": 2, "note": "n"}},
        "pair": [{"x": 4}, 5],
        "kind": 2,
    }
    tool = Tool.from_function(show)
    assert tool.bind(tool.validate_args(args), ToolContext())() == [
        Visit(Place(x=1), [], Loose(x=2, note="n")),
        Pair(Place(x=4), 5),
        Kind.TWO,
    ]
    with pytest.raises(ValueError, match=r"visit\.place\.x: required and missing"):
        tool.validate_args({**args, "visit": {"place": {}}})


def later() -> Callable[..., object]:
    class Gone(BaseModel):
        x: int

    def use(it: Gone) -> None:
        """Use it."""

    return use


def test_classes_that_cannot_be_found_any_more_take_anything() -> None:
    tool = Tool.from_function(later())
    assert tool.input_schema["properties"] == {"it": ANYTHING}
    assert tool.warnings == ("it: an unknown annotation, so any JSON value is accepted",)


def listing(limit: int = 3) -> Iterator[int]:
    """List them."""
    yield from range(limit)


async def streaming() -> Any:
    """Stream them."""
    yield 1


class Lister:
    def __call__(self) -> Iterator[int]:
        """List them."""
        yield 1


def test_a_generator_is_no_tool() -> None:
    for function in [listing, streaming, Lister()]:
        with pytest.raises(ValueError, match="is a generator, so it is not a tool; return a list"):
            Tool.from_function(function)


@pytest.mark.parametrize("text", ["null", "5", "[1]"])
def test_text_stays_text(text: str) -> None:
    def note(text: str, maybe: str | None = None, which: Literal["null", "all"] = "all") -> None:
        """Note it."""

    tool = Tool.from_function(note)
    assert tool.validate_args({"text": text, "maybe": text}) == {"text": text, "maybe": text}
    assert tool.validate_args({"text": "", "which": "null"}) == {"text": "", "which": "null"}


def test_what_no_encoder_takes_is_brought_into_a_form_that_it_takes() -> None:
    def odd(big: int = 2**70, half: Literal["\ud800", "a"] = "a") -> None:
        """Replaced below: Python 3.13 compiles no such docstring."""

    odd.__doc__ = "Say \ud800 it."
    tool = Tool.from_function(odd)
    assert tool.get_schema()["function"]["description"] == "Say ? it"
    assert tool.input_schema["properties"]["big"] == {"type": "integer", "default": float(2**70)}
    assert tool.input_schema["properties"]["half"] == {**ANYTHING, "default": "a"}
    assert len(tool.definition_hash) == 64


def test_a_partial_is_the_tool_of_its_function() -> None:
    def save(place: str, text: str) -> str:
        """Save a text.

        Args:
            text: What to save
        """
        return f"{place}: {text}"

    tool = Tool.from_function(partial(save, "notes"))
    assert (tool.name, tool.description) == ("save", "Save a text")
    assert tool.input_schema["properties"] == {"text": {"type": "string", "description": "What to save"}}


def test_a_default_that_json_cannot_say_is_not_told() -> None:
    def wait(seconds: float = float("inf"), steps: tuple[float, ...] = (float("nan"),)) -> None:
        """Wait"""

    schema = Tool.from_function(wait).input_schema
    assert [list(one) for one in schema["properties"].values()] == [["type"], ["items", "type"]]
    assert schema["required"] == []
