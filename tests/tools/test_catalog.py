"""The static catalogue's choice of functions and files, and its cache."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.tools import Tool, build_catalog, get_catalog_cached
from app.tools.source import CACHE_FILE, find_tools

PLAIN = '''
import functools
def shown(a): "Documented."
def bare(a): ...
def blank(a): """   """
def _hidden(): "Private."
def gather(a):
    "Makes a list of what an inner function yields."
    def parts():
        yield a
    return list(parts())
def listed(function):
    return functools.wraps(function)(lambda: list(function()))
@listed
def letters():
    "A list after all."
    yield "a"
class Holder:
    def method(self): "A method."
'''


def test_the_text_of_a_file_gives_the_tools_that_the_running_file_gives() -> None:
    live: dict[str, Any] = {}
    exec(PLAIN, live)
    tools, left_out = find_tools(PLAIN)
    assert [tool.name for tool in tools] == ["shown", "gather", "letters"]
    assert left_out == [
        "bare has no docstring, so it is not a tool; say in one what it does",
        "blank has no docstring, so it is not a tool; say in one what it does",
        "listed has no docstring, so it is not a tool; say in one what it does",
    ]
    for tool in tools:
        assert tool.schema == Tool.from_function(live[tool.function]).input_schema


def test_what_is_not_python_is_a_syntax_error() -> None:
    for source in ["def (", "\0", "-" * 100_000 + "1", "#" * 1_100_000]:
        with pytest.raises(SyntaxError):
            find_tools(source)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tools.py")
    for name in ("tools.py", "none.py"):
        with pytest.raises(OSError, match=name):
            build_catalog(tmp_path / name)


def test_cache_follows_the_source_and_survives_damage(tmp_path: Path) -> None:
    file, cache = tmp_path / "tools.py", tmp_path / "cache"
    file.write_text(PLAIN)
    first = get_catalog_cached(file, cache)
    assert first == build_catalog(file)
    kept = json.loads((cache / CACHE_FILE).read_text())
    kept[str(file)]["catalog"]["promptList"] = "from the cache"
    (cache / CACHE_FILE).write_text(json.dumps(kept))
    assert get_catalog_cached(file, cache)["promptList"] == "from the cache"
    for damage in ('{"broken', "[]"):
        (cache / CACHE_FILE).write_text(damage)
        assert get_catalog_cached(file, cache) == first
    file.write_text(PLAIN + '\ndef more(): "More."\n')
    changed = get_catalog_cached(file, cache)
    assert changed["count"] == first["count"] + 1
    assert changed["hash"] != first["hash"]
    assert [path.name for path in cache.iterdir()] == [CACHE_FILE]


def test_an_adapter_is_read_without_being_run_whatever_way_it_registers_its_tools(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(
        'from typing import Optional\nraise SystemExit("this file must not run")\n'
        "@server.tool\ndef bare(a: Optional[int] = None): ...\n"
        '@app.server.tool("positional")\ndef first(): "First."\n'
        '@server.tool(description="In the decorator")\nasync def second(): "In the docstring."\n'
        '@other.decorator\n@server.tool(name=NAME)\ndef third(ctx: "Context[Any] | None"): "Third."\n'
        '@server.tool(name="renamed")\n'
        "async def search(query: str, *, most: int = 10, ctx: Context = None):\n"
        '    """Search.\n\n    Args:\n        query: What\n\n    Example: busca la receta\n    """\n'
        '@server.prompt()\ndef prompt(): "No tool."\n@server.resource("x://y")\ndef resource(): "Nor this."\n'
        '@tool\ndef plain(): "Not registered anywhere."\ndef helper(): "Nor this."\n'
        'class Holder:\n    @server.tool()\n    def method(self): "Never."\n'
    )
    catalog = build_catalog(file)
    assert catalog["promptList"].splitlines() == [
        *("- bare: bare", "- positional: First", "- second: In the decorator", "- third: Third"),
        *("- renamed: Search", "  e.g. busca la receta"),
    ]
    found = catalog["functionSchema"]
    assert found[0]["parameters"]["properties"] == {"a": {"type": "integer"}}
    assert found[0]["parameters"]["required"] == []
    query, most = {"type": "string", "description": "What"}, {"type": "integer", "default": 10}
    parameters = {"type": "object", "properties": {"query": query, "most": most}, "required": ["query"]}
    words = {"name": "renamed", "description": "Search\nExample: busca la receta"}
    assert found[-1] == {**words, "parameters": parameters}
    assert catalog["count"] == len(found) == 5
    assert (catalog["version"], len(catalog["hash"])) == (catalog["hash"][:12], 40)
