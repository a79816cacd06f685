"""The built-in model with the skills of the release; `said.txt` has a row for each message."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from app.i18n import say
from app.routing.tool_catalog import ToolCatalog
from app.search.phrases import read_template, without_given
from tests.llm.catalogue import Dialog, answered, calls

ROWS = [
    line.split(" | ")
    for line in Path(__file__).with_name("said.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
VALUES = {
    "expression": "12 * 7",
    "place": "Tokio",
    "from_place": "Madrid",
    "to_place": "Lima",
    "time": "15:30",
    "date": "24/12/2026",
    "start": "3/3/2026",
    "end": "24/12/2026",
    "limit": "5",
    "note": "3",
    "text": "comprar manzanas",
    "query": "manzanas",
    "fact": "mi hija se llama Ana",
    "replaces": "en Rosario",
    "about": "mi hija",
    "what": "mi dirección",
    "task": "comprar pintura",
    "project": "Casa",
    "due": "el viernes",
    "day": "24/12/2026",
    "url": "https://example.org/tides.zip",
    "name": "tides",
    "reminder": "3",
    "path": "compras.txt",
    "content": "leche y pan",
    "page": "2",
    "days": "5",
    "when": "25 de diciembre",
    "quantity": "100 dólares",
    "to_unit": "euros",
    "rate": "18,50",
    "to_currency": "pesos",
    "list_name": "viaje",
    "items": "leche y pan",
    "lines": "5",
    "folder": "app",
}


def written(made: list[tuple[str, Any]]) -> str:
    return (
        "; ".join(f"{tool} {json.dumps(given, ensure_ascii=False, sort_keys=True)}" for tool, given in made)
        or "-"
    )


@pytest.mark.parametrize(("language", "said", "wanted"), ROWS, ids=[said for _, said, _ in ROWS])
async def test_words_lead_to_calls(abilities: ToolCatalog, language: str, said: str, wanted: str) -> None:
    made = await calls(abilities, language, said.replace("\\n", "\n"), role="owner")
    assert written(made) == wanted


@pytest.mark.slow
async def test_nearly_every_phrase_of_a_skill_leads_to_its_tool(abilities: ToolCatalog) -> None:
    astray = []
    everything = [(tool, phrase) for tool, listed in abilities.phrases().items() for phrase in listed]
    functions = [one["function"] for one in Dialog(abilities, "es", "owner").tools]
    required = {one["name"]: set(one["parameters"].get("required", ())) for one in functions}
    standing = [
        (tool, phrase)
        for tool, phrase in everything
        if not read_template(tool, phrase).points
        and required.get(tool, {"not offered"}) <= set(re.findall(r"\{(\w+)", phrase))
    ]
    phrases = [phrase for _, phrase in standing[::50]]
    for phrase in phrases:
        said = re.sub(r"\{(\w+)\}", lambda slot: VALUES.get(slot[1], slot[1]), without_given(phrase))
        called = await calls(abilities, "es", said, role="owner")
        alike = {name for name, same in everything if same == phrase}  # two may share it
        if {name for name, _ in called} != alike:
            astray.append((said, called))
    print(f"{len(phrases) - len(astray)} of {len(phrases)} phrases", *astray[:40], sep="\n")
    assert len(astray) <= len(phrases) * 0.03


@pytest.mark.parametrize("said", ["a. ", "anota a y "])
async def test_a_hostile_message_takes_little_time(abilities: ToolCatalog, said: str) -> None:
    await calls(abilities, "es", "hola")
    began = time.process_time()
    await calls(abilities, "es", (said * 8_000)[:8_000])
    assert time.process_time() - began < 3  # what grew with the square of its length would take minutes


async def test_a_message_that_is_too_long_changes_nothing(abilities: ToolCatalog) -> None:
    text = " ".join(f"palabra{n}." for n in range(600))
    called, told = await answered(abilities, "es", f"anota {text}")
    assert (called, told) == (
        [],
        say("es", "I changed nothing. If you want something done, tell me in one short sentence."),
    )


async def test_it_names_what_it_did_nothing_about(abilities: ToolCatalog) -> None:
    _, text = await answered(abilities, "es", "qué hora es en Tokio\nasdkjh qwe zxcv")
    assert text.startswith("It is so.")
    assert "asdkjh qwe zxcv" in text


@pytest.mark.parametrize("said", ["22h30 na vdd", "9h tô saindo de casa", "7 da manhã eu já tô no hospital"])
async def test_no_conversion_was_asked_for_where_there_is_no_such_unit(
    abilities: ToolCatalog, said: str
) -> None:
    failed = {"ok": False, "error": {"code": "UNKNOWN_UNIT", "message": "Não conheço a unidade."}}
    _, text = await answered(abilities, "pt", said, convert_units=failed)
    assert text.startswith("Não entendi")
