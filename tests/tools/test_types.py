"""Types that hold types: dictionaries, dataclasses and models in one another, from text and alive."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Annotated, Any, NotRequired, Optional, Required

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from app.tools import Tool
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
