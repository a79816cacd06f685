"""The index: what it finds, how it changes, how well and how fast it does on public sets."""

import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from app.search.index import Document, ToolIndex

WEATHER = Document("w", "getWeather", "Weather forecast of a city", "weather", {"place": "City"})
NOTES = Document("n", "save_note", "Keeps a note", "notes", {"text": "What to keep"}, ("anota {text}",))
CLOCK = Document("c", "current_time", "Tells the time", "clock", examples=("qué hora es en {place}",))


def ids(index: ToolIndex, query: str, **more: Any) -> list[str]:
    return [hit.id for hit in index.rank(query, **more)]


def test_finds_by_name_description_category_parameters_and_examples() -> None:
    index = ToolIndex([WEATHER, NOTES, CLOCK])
    assert ids(index, "weather")[0] == "w"
    assert ids(index, "¿QUE HORA ES?")[0] == "c"
    assert ids(index, "anotá comprar pan")[0] == "n"
    assert ids(index, "wether forecst")[0] == "w"
    assert ids(index, "zzz") == []


def test_documents_come_go_and_are_replaced() -> None:
    index = ToolIndex([WEATHER, NOTES])
    index.add([Document("w", "rain", "Millimetres of rain")])
    index.remove(["n", "unknown"])
    assert len(index) == 1
    assert ids(index, "note") == []
    assert ids(index, "rain") == ["w"]
    assert "w" in index
    assert "n" not in index


LIGHT = Document("on", "turn_on", "Turns on a light or another device", "home")
INVOICE = Document("i", "create_invoice", "Creates an invoice for a customer", "billing")


def test_a_message_finds_tools_that_are_described_in_english() -> None:
    for said, found in [
        ("encendé la luz del living", "on"),
        ("prendela", "on"),
        ("liga a lâmpada", "on"),
        ("haceme la factura de Pérez", "i"),
        ("emite a fatura do cliente", "i"),
        ("va a llover?", "w"),
        ("previsao do tempo", "w"),
        ("apuntalo", "n"),
    ]:
        index = ToolIndex([WEATHER, NOTES, CLOCK, LIGHT, INVOICE])
        assert ids(index, said)[0] == found
        assert index.rank(said)[0].coverage > 0


def _rows(folder: str, name: str) -> list[dict[str, Any]]:
    samples = os.environ.get("RECADO_SAMPLES")
    if not samples:
        pytest.skip("RECADO_SAMPLES is not set")
    return [json.loads(line) for line in (Path(samples) / "routing" / folder / name).open(encoding="utf-8")]


@pytest.mark.parametrize(("folder", "wanted", "every"), [("metatool", 60, 9), ("bfcl_pooled", 70, 48)])
def test_complete_at_8_on_public_sets(folder: str, wanted: float, every: int) -> None:
    started = time.perf_counter()
    index = ToolIndex(
        Document(row["tool_id"], row["name"], row["description"], row["server"], row["parameters"])
        for row in _rows(folder, "catalog.jsonl")
    )
    built = time.perf_counter() - started
    queries = _rows(folder, "queries.jsonl")[::every]
    complete = 0
    seconds = []
    for row in queries:
        started = time.perf_counter()
        found = ids(index, row["query"], limit=8)
        seconds.append(time.perf_counter() - started)
        complete += set(row["relevant"]) <= set(found)
    share = 100 * complete / len(queries)
    print(
        f"{folder}: C@8 {share:.1f} %, p50 {statistics.median(seconds) * 1000:.2f} ms, built in {built:.2f} s"
    )
    assert share >= wanted
