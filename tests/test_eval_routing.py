"""`recado eval routing`: figures that can be checked by hand, rows that are none, a public set."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from app.cli import app

TOOLS = [
    {"tool_id": "rain", "name": "getRain", "server": "weather", "parameters": {"city": "Name of a city"}},
    {"tool_id": "rain2", "name": "rainfall", "description": "Rain of a day", "parameters": None},
    {"tool_id": "note", "name": "save_note", "description": "Keeps a note", "parameters": {"text": None}},
    *({"tool_id": f"t{n}", "name": f"tool{n}", "description": f"Number {n} of many"} for n in range(20)),
]
QUERIES = [
    {"query": "rain in the city", "relevant": ["rain"], "lang": "en"},
    {"query": "keep a note about rain", "relevant": ["note", "rain"], "lang": "en"},
    {"query": "acuñá este chirimbolo", "relevant": ["note"], "lang": "es"},
    {"query": "rainfall", "relevant": ["rain"], "groups": [["rain", "rain2"]], "lang": "es"},
]
EXAMPLES = [
    {"tool_id": "note", "query": "acuña mi chirimbolo", "lang": "es"},
    {"tool_id": "of another catalogue", "query": "enciende la luz", "lang": "es"},
]


def jsonl(path: Path, rows: list[Any]) -> str:
    path.write_text("\n\n".join(json.dumps(row) for row in rows) + "\n", "utf-8")
    return str(path)


def evaluate(*arguments: str) -> Result:
    done = CliRunner().invoke(app, ["eval", "routing", *arguments])
    assert isinstance(done.exception, SystemExit | None)
    return done


def figures(*arguments: str) -> dict[str, Any]:
    done = evaluate(*arguments, "--json")
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    catalog, queries = jsonl(tmp_path / "c.jsonl", TOOLS), jsonl(tmp_path / "q.jsonl", QUERIES)
    return ["--catalog", catalog, "--queries", queries]


def test_shares_are_of_all_queries_and_of_each_language_and_rise_with_examples(files, tmp_path):
    found = figures(*files)
    assert (found["queries"], found["tools"], found["unknown_tools"]) == (4, 23, 0)
    assert (found["complete_at_8"], found["recall_at_8"], found["hit_at_1"]) == (75, 75, 75)
    assert found["ms_p50"] > 0
    assert found["build_s"] >= 0
    english, spanish = found["languages"]["en"], found["languages"]["es"]
    assert (english["queries"], english["complete_at_8"], english["recall_at_8"]) == (2, 100, 100)
    assert (spanish["queries"], spanish["complete_at_8"], spanish["hit_at_1"]) == (2, 50, 50)
    found = figures(*files, "--examples", jsonl(tmp_path / "e.jsonl", EXAMPLES))
    assert found["languages"]["es"]["complete_at_8"] == 100
    for path in tmp_path.glob("*.jsonl"):  # as Windows writes files
        path.write_text(path.read_text("utf-8").replace("\n", "\r\n"), "utf-8-sig")
    windows = figures(*files)
    assert (windows["queries"], windows["recall_at_8"]) == (4, 75)


def test_queries_for_tools_that_are_not_there_count_as_missed_and_are_told(tmp_path: Path) -> None:
    catalog = jsonl(tmp_path / "c.jsonl", TOOLS)
    queries = jsonl(tmp_path / "q.jsonl", [{"query": "rain", "relevant": ["snow"]}])
    arguments = ["--catalog", catalog, "--queries", queries]
    assert figures(*arguments)["complete_at_8"] == 0
    assert "unknown tools: 1" in evaluate(*arguments).stdout


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("catalog", '{"name": "no id"}', "tool_id: Field required"),
        ("catalog", '{"tool_id": "a", "name": "b", "parameters": ["x"]}', "parameters: "),
        ("catalog", "{", "Invalid JSON"),
        ("catalog", "[]", "write one JSON object a line"),
        ("queries", '{"query": "hi", "relevant": []}', "relevant: "),
        ("queries", '{"query": "hi"}', "must name one tool or more"),
        ("queries", '{"query": "hi", "groups": [["a"], []]}', "groups.1: "),
        ("examples", '{"tool_id": "a"}', "query: Field required"),
    ],
)
def test_a_row_that_is_none_is_named_with_its_file_and_line(file, line, said, tmp_path):
    rows = {"catalog": TOOLS, "queries": QUERIES, "examples": EXAMPLES}
    for name, good in rows.items():
        jsonl(tmp_path / name, good[:1])
    with (tmp_path / file).open("a") as faulty:
        faulty.write(line)
    done = evaluate(*(word for name in rows for word in (f"--{name}", str(tmp_path / name))))
    assert done.exit_code == 1
    assert done.stderr.startswith(f"recado: {tmp_path / file}, line 2: ")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_files_that_are_missing_or_empty_are_named(files: list[str], tmp_path: Path) -> None:
    empty = str(tmp_path / "empty")
    Path(empty).touch()
    missing = str(tmp_path / "missing")
    assert f"{missing} cannot be read" in evaluate(*files, "--examples", missing).stderr
    assert f"{empty} holds no tool" in evaluate(*files[2:], "--catalog", empty).stderr
    assert f"{empty} holds no query" in evaluate(*files[:2], "--queries", empty).stderr
    assert evaluate(*files[:2]).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wanted"), [("bfcl_pooled", 90), ("ha_intents", 88)])
def test_public_sets_are_found_as_well_as_before(name: str, wanted: float, samples: Path) -> None:
    folder = samples / "routing" / name
    found = figures("--catalog", str(folder / "catalog.jsonl"), "--queries", str(folder / "queries.jsonl"))
    assert found["complete_at_8"] >= wanted
