"""The built-in model with the skills of the release and their own phrases."""

import re
from typing import Any

import pytest

from app.llm.model import ModelRequest
from app.llm.offline import OfflineModel
from app.routing.abilities import Abilities
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import ToolRegistry
from tests.llm.catalogue import NOW, person

MESSAGES: list[tuple[str, str, list[tuple[str, dict[str, Any]]]]] = [
    ("es", "hola! q hora es en tokio?", [("current_time", {"place": "tokio"})]),
    ("es", "¿Cuánto es 12,5% de 3.450?", [("calculate", {"expression": "12,5% de 3.450"})]),
    ("es", "anotá comprar pan y leche", [("save_note", {"text": "comprar pan y leche"})]),
    ("es", "qué tengo anotado?", [("list_notes", {})]),
    ("es", "borra la nota del super", [("delete_note", {"note": "super"})]),
    ("es", "cuántos días faltan para navidad", [("days_between", {"end": "navidad"})]),
    ("es", "que dia es hoy", [("current_time", {})]),
    (
        "pt",
        "que horas são em Lisboa e quanto é 7 vezes 8?",
        [("current_time", {"place": "Lisboa"}), ("calculate", {"expression": "7 vezes 8"})],
    ),
    ("pt", "anota aí: ligar pro banco", [("save_note", {"text": "ligar pro banco"})]),
    ("pt", "minhas notas", [("list_notes", {})]),
    ("pt", "procura banco nas minhas notas", [("search_notes", {"query": "banco"})]),
    ("pt", "que dia cai 12 de outubro", [("weekday_of", {"date": "12 de outubro"})]),
    ("en", "what time is it in New York right now?", [("current_time", {"place": "New York"})]),
    ("en", "what's 7 times 8?", [("calculate", {"expression": "7 times 8"})]),
    ("en", "note buy milk", [("save_note", {"text": "buy milk"})]),
    ("en", "what did I write about milk?", [("search_notes", {"query": "milk"})]),
    (
        "en",
        "if it's 3pm in London what time is it in Tokyo",
        [("convert_time", {"time": "3pm", "from_place": "London", "to_place": "Tokyo"})],
    ),
    ("en", "what day is December 25", [("weekday_of", {"date": "December 25"})]),
    ("es", "la nota de matemáticas fue mala", []),
    ("es", "tengo hambre", []),
    ("pt", "que dia lindo", []),
    ("en", "have a nice day", []),
    ("en", "what is the meaning of life", []),
    ("en", "tell me about yourself", []),
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
}


@pytest.fixture(scope="module")
def abilities() -> Abilities:
    found = Abilities(SkillLoader(RELEASE_SKILLS), ToolRegistry(), {})
    found.refresh()
    return found


async def _calls(abilities: Abilities, language: str, said: str) -> list[tuple[str, Any]]:
    model = OfflineModel(lambda: abilities.index, abilities.phrases, now=lambda: NOW)
    tools = abilities.schemas(sorted(abilities.tool_categories(person(language))))
    answer = await model.complete(ModelRequest("answer", [], tools, said, person(language)))
    return [(call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize(("language", "said", "calls"), MESSAGES, ids=[said for _, said, _ in MESSAGES])
async def test_serves_the_bundled_skills(
    abilities: Abilities, language: str, said: str, calls: list[tuple[str, Any]]
) -> None:
    assert await _calls(abilities, language, said) == calls


async def test_nearly_every_phrase_of_a_skill_leads_to_its_tool(abilities: Abilities) -> None:
    astray = []
    phrases = [(tool, phrase) for tool, listed in abilities.phrases().items() for phrase in listed]
    for tool, phrase in phrases:
        said = re.sub(r"\{(\w+)\}", lambda slot: VALUES.get(slot[1], slot[1]), phrase)
        called = await _calls(abilities, "es", said)
        if [name for name, _ in called] != [tool]:
            astray.append((said, called))
    print(f"{len(phrases) - len(astray)} of {len(phrases)} phrases", *astray[:40], sep="\n")
    assert len(astray) <= len(phrases) * 0.03
