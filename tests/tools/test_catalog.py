"""The static catalogue's choice of functions, and its cache."""

import json
from pathlib import Path

import pytest

from app.tools import build_catalog, get_catalog_cached
from app.tools.catalog import CACHE_FILE, find_tools

PLAIN = """
def shown(a): "Documented."
def bare(a): ...
def _hidden(): "Private."
class Holder:
    def method(self): "A method."
"""


def test_plain_file_gives_public_documented_functions() -> None:
    tools, left_out = find_tools(PLAIN)
    assert [tool.name for tool in tools] == ["shown"]
    assert [(one.function, one.reason) for one in left_out] == [("bare", "it has no docstring")]


@pytest.mark.parametrize("source", ["def (", "\0", "(" * 5000, "-" * 100_000 + "1"])
def test_what_is_not_python_is_a_syntax_error(source: str) -> None:
    with pytest.raises(SyntaxError):
        find_tools(source)


def test_folder_leaves_out_the_broken_file(tmp_path: Path) -> None:
    for name, text in {"a": PLAIN, "b": "def ("}.items():
        (tmp_path / name / "scripts").mkdir(parents=True)
        (tmp_path / name / "scripts" / "tools.py").write_text(text)
    assert [one["name"] for one in build_catalog(tmp_path)["functionSchema"]] == ["shown"]


def test_cache_follows_the_source_and_survives_damage(tmp_path: Path) -> None:
    file, cache = tmp_path / "tools.py", tmp_path / "cache"
    file.write_text(PLAIN)
    first = get_catalog_cached(file, cache)
    assert first == build_catalog(file)
    kept = json.loads((cache / CACHE_FILE).read_text())
    kept[str(file)]["catalog"]["promptList"] = "from the cache"
    (cache / CACHE_FILE).write_text(json.dumps(kept))
    assert get_catalog_cached(file, cache)["promptList"] == "from the cache"
    kept[str(file)]["key"] = "made by other code"
    (cache / CACHE_FILE).write_text(json.dumps(kept))
    assert get_catalog_cached(file, cache) == first
    (cache / CACHE_FILE).write_text('{"broken')
    assert get_catalog_cached(file, cache) == first
    file.write_text(PLAIN + '\ndef more(): "More."\n')
    changed = get_catalog_cached(file, cache)
    assert changed["count"] == 2
    assert changed["hash"] != first["hash"]
    assert [path.name for path in cache.iterdir()] == [CACHE_FILE]
