"""Tools of folders that are not shipped: each in a worker process of its own, whatever its code does."""

import os
from pathlib import Path

import pytest

from app.people import Person
from app.skills import load_skill
from app.tools import ToolContext
from tests.skills.folders import House, alive, write
from tests.skills.tools import Rows
from tests.tools.engines import engine_of

ANA = Person("p1", "simulator", "Ana", language="es", timezone="America/Mexico_City", country="MX")


TYPED = '''
from __future__ import annotations
import datetime
import os
from typing import Literal

import beside

asked = 0

Size = Literal["small", "large"]

def plan(day: datetime.date, size: Size = "small", tags: list[str] | None = None) -> dict:
    """Plans a day.

    Args:
        day: which one.
    """
    return {"weekday": day.isoweekday(), "size": size, "tags": tags, "said": beside.SAID}

async def count() -> dict:
    """Counts its calls."""
    global asked
    asked += 1
    return {"asked": asked, "pid": os.getpid()}

def surroundings() -> dict:
    """Where it runs."""
    return {"cwd": os.getcwd(), "names": sorted(os.environ), "home": os.listdir(os.environ["HOME"])}
'''


async def test_a_dropped_folders_tools_run_with_their_types_in_a_process_that_knows_nothing_of_the_servers(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_SERVER", "x")
    folder = house.drop("planner", TYPED, beside="SAID = 'hello'\n")
    result = await house.call("plan", day="2026-11-21", tags=["a"])
    assert result.data == {"weekday": 6, "size": "small", "tags": ["a"], "said": "hello"}
    wrong = await house.call("plan", day="yesterday")
    assert wrong.code == "BAD_REQUEST"
    assert "day" in wrong.error.message
    first, second = (await house.call("count")).data, (await house.call("count")).data
    assert (first["asked"], second["asked"]) == (1, 2), "the worker was not kept warm"
    assert first["pid"] == second["pid"] != os.getpid()
    found = (await house.call("surroundings")).data
    assert found["cwd"] == str(folder)
    assert set(found["names"]) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "HOME", "TMPDIR"}
    assert found["home"] == []


CONTEXT = '''
def note(text: str, context=None) -> dict:
    """Notes a text."""
    before = context.store.get("last", "nothing")
    context.store.put("last", text)
    context.store.put("gone", None)
    return {"before": before, "after": context.store.get("last"), "null": context.store.get("gone", "x"),
            "list": context.store.list("l"),
            "deleted": [context.store.delete("last"), context.store.delete("z")],
            "person": context.person.name, "zone": context.person.timezone, "city": context.settings["CITY"],
            "key": context.idempotency_key, "channel": context.channel, "where": context.conversation}

async def anote(text: str, context=None) -> dict:
    """Notes a text, later."""
    await context.store.put("last", text)
    return {"after": await context.store.get("last"), "list": await context.store.list(),
            "deleted": await context.store.delete("last"), "none": await context.store.get("none", 5)}

'''


async def test_the_context_of_a_call_travels(house: House) -> None:
    house.drop("noter", CONTEXT)
    rows, settings = Rows(), {"CITY": "Lima"}
    more = {"idempotency_key": "k", "channel": "w", "conversation": "c1"}
    context = ToolContext(person=ANA, store=rows, settings=settings, **more)
    assert (await house.call("note", context, text="milk")).data == {
        **{"before": "nothing", "after": "milk", "null": None, "list": {"last": "milk"}},
        **{"deleted": [True, False], "person": "Ana", "zone": "America/Mexico_City", "city": "Lima"},
        **{"key": "k", "channel": "w", "where": "c1"},
    }
    later = (await house.call("anote", context, text="bread")).data
    assert later == {"after": "bread", "list": {"gone": None, "last": "bread"}, "deleted": True, "none": 5}
    assert rows.rows == {"gone": None}


async def test_without_workers_each_call_has_a_process_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    code = 'import os\n\ndef pid() -> int:\n    """Its process."""\n    return os.getpid()\n'
    engine = engine_of(*load_skill(write(tmp_path / "alone", code)).tools)
    found = [(await engine.execute_tool_call("pid", {})).data for _ in range(2)]
    assert len({os.getpid(), *found}) == 3
    assert not any(map(alive, found))


DECORATED = '''
import functools

def _bare(function):
    return lambda *args, **kwargs: function(*args, **kwargs)

class _Kept:
    def __init__(self, function):
        self.fn = function

@functools.lru_cache
def remembered(n: int) -> int:
    """Remembers."""
    return n + 1

@_bare
def wrapped(n: int) -> int:
    """Wraps."""
    return n + 1

@_Kept
def kept(n: int) -> int:
    """Keeps."""
    return n + 1
'''

REGISTERED = '''
class _Server:
    def tool(self, name=""):
        return lambda function: function

class Context:
    pass

mcp = _Server()

@mcp.tool()
def undocumented(n: int) -> int:
    return n + 1

@mcp.tool()
def _private(n: int) -> int:
    """Adds."""
    return n + 1

@mcp.tool(name="renamed")
async def add(n: int, ctx: Context) -> int:
    """Adds."""
    return n + 1
'''


@pytest.mark.parametrize(
    ("code", "names"),
    [(DECORATED, ["remembered", "wrapped", "kept"]), (REGISTERED, ["undocumented", "_private", "renamed"])],
)
async def test_what_the_text_says_is_a_tool_can_be_called_whatever_its_decorator_made_of_it(
    house: House, code: str, names: list[str]
) -> None:
    house.drop("adder", code)
    assert [tool.name for tool in house.loader.tools] == names
    assert [(await house.call(name, n=1)).data for name in names] == [2] * len(names)
    assert [(await house.call(name, n=1, m=1)).code for name in names] == ["BAD_REQUEST"] * len(names)
