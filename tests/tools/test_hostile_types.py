"""Types of a stranger's source text that would take for ever, or a machine's memory, to read."""

import json
import resource
import subprocess
import sys
from typing import Any

import pytest

from app.tools.source import find_tools

pytestmark = pytest.mark.slow

_READER = """
import json, sys
from app.tools.source import find_tools
for source in json.load(sys.stdin):
    tools, left_out = find_tools(source)
    print(json.dumps([
        {tool.name: [tool.schema["properties"], tool.warnings] for tool in tools},
        dict(one.split(" ", 1) for one in left_out),
    ]), flush=True)
"""
_BEFORE = """
import datetime
import enum
from dataclasses import dataclass
from typing import Annotated, Literal
from pydantic import BaseModel, Field
"""
_PLAIN = '\ndef plain(word: str) -> str:\n    "Say it"\n'
TOO_LARGE = "is not a tool: its types are too large"
ANYTHING = "x: an unknown annotation, so any JSON value is accepted"


def read(*sources: str) -> list[tuple[dict[str, Any], dict[str, str]]]:
    """The tools and what was left out of each, found by one process that has 20 seconds and 1.5 GB."""
    done = subprocess.run(
        [sys.executable, "-c", _READER],
        input=json.dumps([_BEFORE + source + _PLAIN for source in sources]),
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 * 2**29, 3 * 2**29)),
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


_DOUBLED = "@dataclass\nclass A0:\n    x: int\n" + "".join(
    f"@dataclass\nclass A{n}:\n    a: A{n - 1}\n    b: A{n - 1}\n" for n in range(1, 25)
)
_FIELDS = "".join(f"    a{n}: int\n" for n in range(900))
_USES = "".join(f'def f{n}(x: list[A]):\n    "Do"\n' for n in range(2000))
_ALIASES = "X0 = int\n" + "".join(f"X{n} = dict[X{n - 1}, X{n - 1}]\n" for n in range(1, 19))
HOSTILE = {
    "classes that hold the one before twice": _DOUBLED + 'def f(x: A24):\n    "Do"\n',
    "aliases": _ALIASES + 'def f(x: X18):\n    "Do"\n',
    "a long literal": f'def f(x: Literal[{"1," * 20_000}]):\n    "Do"\n',
    "a long enumeration": "class E(enum.Enum):\n"
    + "".join(f"    A{n} = {n}\n" for n in range(5000))
    + 'def f(x: E):\n    "Do"\n',
    "a constant in many places": f"X = [{'1,' * 2000}]\n"
    + f'def f({",".join(f"a{n}=X" for n in range(5000))}):\n    "Do"\n',
    "many parameters": f'def f({",".join(f"a{n}: int" for n in range(2000))}):\n    "Do"\n',
    "a docstring in many places": f'@dataclass\nclass A:\n    "{"a" * 3000}"\n    x: int\n'
    + "@dataclass\nclass B:\n"
    + "".join(f"    a{n}: A\n" for n in range(6))
    + 'def f(x: B):\n    "Do"\n',
}


def test_a_tool_of_too_large_types_is_left_out_alone() -> None:
    for name, (tools, left_out) in zip(HOSTILE, read(*HOSTILE.values()), strict=True):
        assert left_out["f"] == TOO_LARGE, name
        assert tools["plain"][1] == [], name


def test_a_pattern_that_is_costly_to_match_is_left_out_of_the_schema() -> None:
    ((tools, _),) = read('def f(x: Annotated[str, Field(pattern=r"((a?){200}){200}")]):\n    "Do"\n')
    assert tools["f"] == [{"x": {"type": "string"}}, []]


def test_many_tools_of_one_large_class_end_at_the_budget_of_the_file() -> None:
    ((tools, left_out),) = read(f"@dataclass\nclass A:\n{_FIELDS}{_USES}".replace("def f(", "def g("))
    assert set(left_out.values()) == {TOO_LARGE}
    assert len(left_out) + len(tools) == 2001


def test_values_of_an_enumeration_are_not_computed() -> None:
    enumerations = [
        "class E(bytes, enum.Enum):\n    A = 50_000_000\n",
        "class E(datetime.date, enum.Enum):\n    A = 1\n",
        f"class E(enum.Flag):\n    A = 0x{'f' * 100_000}\n",
    ]
    found = read(*(members + 'def f(x: E):\n    "Do"\n' for members in enumerations))
    for members, (tools, _) in zip(enumerations, found, strict=True):
        assert tools["f"][1] == [ANYTHING], members[:40]


def test_a_class_that_holds_itself_is_described_once() -> None:
    tree = '@dataclass\nclass Tree:\n    leaf: int\n    below: "list[Tree]"\n'
    ((tools, left_out),) = read(f'{tree}def f(x: Tree):\n    "Do"\n')
    assert left_out == {}
    below = {"type": "array", "items": {"type": "object"}}
    part = {"type": "object", "properties": {"leaf": {"type": "integer"}, "below": below}}
    assert tools["f"] == [{"x": {**part, "required": ["leaf", "below"]}}, []]


def test_long_words_are_cut_and_their_author_is_told() -> None:
    words = f"Do {'a' * 5000}.\n\n    Example: {'b' * 5000}\n\n    Args:\n        x: {'c' * 5000}\n"
    (tool,), _ = find_tools(f'def f(x: int):\n    """{words}    """\n')
    described = tool.schema["properties"]["x"]["description"]
    assert [len(tool.description), len(tool.examples[0]), len(described)] == [2000, 500, 500]
    assert described.endswith("c…")
    assert tool.warnings == (
        "its description is cut to 2000 characters",
        "x: its description is cut to 500 characters",
    )


def test_a_file_has_at_most_200_tools() -> None:
    tools, left_out = find_tools("".join(f'def f{n}():\n    "Do"\n' for n in range(203)))
    assert [len(tools), tools[-1].name] == [200, "f199"]
    assert [one.split()[0] for one in left_out] == ["f200", "f201", "f202"]
    assert left_out[0].startswith("f200 comes after 200 others")
