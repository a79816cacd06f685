"""The built-in model with the skills of the release and their own phrases."""

import re
import time
from dataclasses import replace
from typing import Any

import pytest

from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.llm.offline.templates import read_template
from app.routing.tool_catalog import ToolCatalog
from app.search.words import without_given
from tests.llm.catalogue import NOW, person

MESSAGES: list[tuple[str, str, list[tuple[str, dict[str, Any]]]]] = [
    ("es", "hola! q hora es en tokio?", [("current_time", {"place": "tokio"})]),
    ("en", "split 640 between 4 people", [("calculate", {"expression": "split 640 between 4 people"})]),
    ("pt", "rachar 240 reais pra 5", [("calculate", {"expression": "rachar 240 reais pra 5"})]),
    ("pt", "qnt é 20% de 150", [("calculate", {"expression": "20% de 150"})]),
    ("es", "reparte 900 entre tres", [("calculate", {"expression": "reparte 900 entre tres"})]),
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
    ("es", "anota comprar: leche\npan\nhuevos", [("save_note", {"text": "comprar: leche\npan\nhuevos"})]),
    ("en", "note: shopping\nrice\nbeans", [("save_note", {"text": "shopping\nrice\nbeans"})]),
    (
        "es",
        "anota el wifi es abc123? preguntar a Luis",
        [("save_note", {"text": "el wifi es abc123? preguntar a Luis"})],
    ),
    ("pt", "anota aí:\nfeijao\narroz", [("save_note", {"text": "feijao\narroz"})]),
    ("es", "anota comprar pan\ncomprar leche", [("save_note", {"text": "comprar pan\ncomprar leche"})]),
    ("es", "anota comprar pan\ngracias", [("save_note", {"text": "comprar pan"})]),
    (
        "es",
        "guarda el telefono del taller: 664 555",
        [("save_note", {"text": "el telefono del taller: 664 555"})],
    ),
    ("pt", "salva o telefone do Beto: 11 98765", [("save_note", {"text": "o telefone do Beto: 11 98765"})]),
    ("es", "guarda eso", []),
    ("es", "que te pedi que me recordaras", [("list_reminders", {})]),
    ("en", "what did i ask you to remind me", [("list_reminders", {})]),
    ("en", "add another one: buy ink", [("add_task", {"task": "buy ink"})]),
    ("pt", "mais uma tarefa: limpar a vitrine", [("add_task", {"task": "limpar a vitrine"})]),
    ("es", "anota uno", [("save_note", {"text": "uno"})]),
    ("en", "add a note that says pay rent", [("save_note", {"text": "pay rent"})]),
    ("en", "note to self: renew passport", [("save_note", {"text": "renew passport"})]),
    ("es", "elimina todas mis notas", [("delete_note", {})]),
    ("es", "borra todas mis notas", [("delete_note", {})]),
    ("en", "delete all my notes", [("delete_note", {})]),
    ("pt", "deleta tudo", [("delete_note", {})]),
    ("es", "divide 90 por 4", [("calculate", {"expression": "divide 90 por 4"})]),
    ("en", "divide 90 by 4", [("calculate", {"expression": "divide 90 by 4"})]),
    ("pt", "soma 10, 20 e 30", [("calculate", {"expression": "soma 10, 20 e 30"})]),
    ("en", "my time zone is America/Los_Angeles", [("set_time_zone", {"place": "America/Los_Angeles"})]),
    ("en", "set my timezone to Europe/Madrid", [("set_time_zone", {"place": "Europe/Madrid"})]),
    ("en", "my timezone is UTC-8", [("set_time_zone", {"place": "UTC-8"})]),
    (
        "es",
        "estoy en Madrid ahora, cambia mi zona horaria",
        [("set_time_zone", {"place": "Madrid"})],
    ),
    ("pt", "meu fuso é o de Manaus", [("set_time_zone", {"place": "Manaus"})]),
    ("pt", "meu fuso horário é GMT-3", [("set_time_zone", {"place": "GMT-3"})]),
    ("es", "huso horario de Madrid", [("current_time", {"place": "Madrid"})]),
    ("pt", "fuso horário de Lisboa", [("current_time", {"place": "Lisboa"})]),
    ("en", "what's the time zone of Madrid?", [("current_time", {"place": "Madrid"})]),
    ("en", "use my number's time zone again", [("set_time_zone", {"place": "my number"})]),
    ("es", "olvida mi zona horaria", [("set_time_zone", {"place": "mi número"})]),
    *(
        (language, said, [(tool, {"place": place}) for tool in ("set_time_zone", "set_usual_place")])
        for language, said, place in (
            ("en", "I live in Los Angeles", "Los Angeles"),
            ("es", "vivo en Tijuana", "Tijuana"),
            ("pt", "moro em Manaus", "Manaus"),
            ("pt", "agora moro no Acre", "Acre"),
        )
    ),
    ("en", "remember that I live in Los Angeles", [("remember", {"fact": "I live in Los Angeles"})]),
    ("es", "recuerda que vivo en Tijuana", [("remember", {"fact": "vivo en Tijuana"})]),
    ("pt", "lembra que moro em Manaus", [("remember", {"fact": "moro em Manaus"})]),
    (
        "es",
        "mi zona horaria es la de Madrid y recuérdame mañana a las 9 llamar a Ana",
        [
            ("set_time_zone", {"place": "Madrid"}),
            ("set_reminder", {"when": "mañana a las 9", "text": "llamar a Ana"}),
        ],
    ),
    ("es", "100/3", [("calculate", {"expression": "100/3"})]),
    ("es", "10/2", [("calculate", {"expression": "10/2"})]),
    ("es", "5!", [("calculate", {"expression": "5!"})]),
    ("pt", "R$ 50 + R$ 30", [("calculate", {"expression": "R$ 50 + R$ 30"})]),
    ("en", "15% off 80", [("calculate", {"expression": "15% off 80"})]),
    ("en", "20% tip on 84.50", [("calculate", {"expression": "20% tip on 84.50"})]),
    ("pt", "desconto de 10% em 350 reais", [("calculate", {"expression": "desconto de 10% em 350 reais"})]),
    ("es", "5 km en millas", [("convert_units", {"quantity": "5 km", "to_unit": "millas"})]),
    ("pt", "quantas milhas são 10 km", [("convert_units", {"quantity": "10 km", "to_unit": "milhas"})]),
    ("en", "5 ft 11 in in cm", [("convert_units", {"quantity": "5 ft 11 in", "to_unit": "cm"})]),
    ("es", "100 dólares a 18,50", [("convert_money", {"quantity": "100 dólares", "rate": "18,50"})]),
    ("es", "qué fecha es el viernes que viene?", [("weekday_of", {"date": "viernes que viene"})]),
    ("pt", "que data é na próxima sexta?", [("weekday_of", {"date": "na próxima sexta"})]),
    ("es", "cuándo es el próximo feriado?", [("holidays", {})]),
    ("es", "mañana es feriado?", [("holidays", {"when": "mañana"})]),
    ("pt", "quantos dias úteis faltam para o natal?", [("business_days_between", {"end": "o natal"})]),
    ("en", "what date is 10 business days from now", [("add_business_days", {"days": 10})]),
    ("es", "qué dice contrato.pdf", [("read_file", {"path": "contrato.pdf"})]),
    ("pt", "o que diz contrato.pdf?", [("read_file", {"path": "contrato.pdf"})]),
    ("es", "qué dice la biblia sobre el amor", []),
    (
        "es",
        "guardá esto en compras.txt: leche, pan y huevos",
        [("write_file", {"path": "compras.txt", "content": "leche, pan y huevos"})],
    ),
    (
        "en",
        "add eggs to shopping.txt",
        [("write_file", {"path": "shopping.txt", "content": "eggs", "mode": "append"})],
    ),
    (
        "es",
        "ya no soy vegetariano, ahora vegano",
        [("remember", {"replaces": "vegetariano,", "fact": "vegano"})],
    ),
    (
        "en",
        "im no longer a nurse, now a teacher",
        [("remember", {"replaces": "a nurse,", "fact": "a teacher"})],
    ),
    ("en", "what did I tell you about the car", [("search_history", {"query": "the car"})]),
    ("es", "10 minutos más", [("snooze_reminder", {"when": "10 minutos"})]),
    ("pt", "mais 10 minutos", [("snooze_reminder", {"when": "10 minutos"})]),
    ("en", "10 more minutes", [("snooze_reminder", {"when": "10 minutes"})]),
    ("es", "cuándo es carnaval", [("weekday_of", {"date": "carnaval"})]),
    (
        "es",
        "qué fecha es 5 días hábiles después del 3/3/2026",
        [("add_business_days", {"days": 5, "start": "3/3/2026"})],
    ),
    ("en", "whats in list.txt", [("read_file", {"path": "list.txt"})]),
    ("pt", "oq eu tenho anotado", [("list_notes", {})]),
    ("pt", "hj é feriado?", [("holidays", {"when": "hj"})]),
    ("en", "remove milk", []),
    ("en", "remove list.txt", [("delete_file", {"path": "list.txt"})]),
    ("es", "cancela todos mis recordatorios", [("cancel_all_reminders", {})]),
    ("pt", "cancela todos os lembretes", [("cancel_all_reminders", {})]),
    ("en", "cancel all my reminders", [("cancel_all_reminders", {})]),
    ("en", "cancel 3", [("cancel_reminder", {"reminder": "3"})]),
    ("en", "I'm not sure", []),
    ("es", "la nota de matemáticas fue mala", []),
    ("es", "tengo hambre", []),
    ("pt", "que dia lindo", []),
    ("en", "have a nice day", []),
    ("en", "what is the meaning of life", [("search_notes", {"query": "meaning life"})]),
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
}


async def _calls(abilities: ToolCatalog, language: str, said: str) -> list[tuple[str, Any]]:
    model = OfflineModel(abilities, now=lambda: NOW)
    owner = replace(person(language), role="owner")
    tools = abilities.offer(sorted(abilities.tool_categories(owner)), owner).schemas
    answer = await model.complete(ModelRequest("answer", [], tools, said, owner))
    return [(call.name, call.arguments) for call in answer.calls]


@pytest.mark.parametrize(("language", "said", "calls"), MESSAGES, ids=[said for _, said, _ in MESSAGES])
async def test_serves_the_bundled_skills(
    abilities: ToolCatalog, language: str, said: str, calls: list[tuple[str, Any]]
) -> None:
    assert await _calls(abilities, language, said) == calls


@pytest.mark.parametrize("each", [50, pytest.param(5, marks=pytest.mark.slow)])
async def test_nearly_every_phrase_of_a_skill_leads_to_its_tool(abilities: ToolCatalog, each: int) -> None:
    astray = []
    everything = [(tool, phrase) for tool, listed in abilities.phrases().items() for phrase in listed]
    standing = [(tool, phrase) for tool, phrase in everything if not read_template(tool, phrase).points]
    phrases = [phrase for _, phrase in standing[::each]]
    for phrase in phrases:
        said = re.sub(r"\{(\w+)\}", lambda slot: VALUES.get(slot[1], slot[1]), without_given(phrase))
        called = await _calls(abilities, "es", said)
        alike = {name for name, same in everything if same == phrase}  # two may share it
        if {name for name, _ in called} != alike:
            astray.append((said, called))
    print(f"{len(phrases) - len(astray)} of {len(phrases)} phrases", *astray[:40], sep="\n")
    assert len(astray) <= len(phrases) * 0.03


THREE = [
    ("es", "anota uno\nanota dos\nanota tres", ["uno", "dos", "tres"]),
    ("pt", "anota um\nanota dois\nanota três", ["um", "dois", "três"]),
    ("en", "note one\nnote two\nnote three", ["one", "two", "three"]),
]


@pytest.mark.parametrize(("language", "said", "texts"), THREE)
async def test_calls_of_one_category_are_made_one_after_the_other(
    abilities: ToolCatalog, language: str, said: str, texts: list[str]
) -> None:
    model = OfflineModel(abilities, now=lambda: NOW)
    tools = abilities.offer(sorted(abilities.tool_categories(person(language))), person(language)).schemas
    messages: list[dict[str, Any]] = [{"role": "user", "content": said}]
    saved = []
    for _ in range(5):
        answer = await model.complete(ModelRequest("answer", messages, tools, said, person(language)))
        if not answer.calls:
            break
        assert len(answer.calls) == 1
        saved.append(answer.calls[0].arguments)
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": answer.calls[0].id}]})
        messages.append({"role": "tool", "content": '{"ok": true, "data": "saved"}'})
    assert saved == [{"text": text} for text in texts]


@pytest.mark.parametrize("said", ["nota: a. ", "a. ", "a\n", "anota a y ", "qué hora es y "])
async def test_a_hostile_message_takes_little_time(abilities: ToolCatalog, said: str) -> None:
    await _calls(abilities, "es", "hola")
    began = time.process_time()
    await _calls(abilities, "es", (said * 8_000)[:8_000])
    assert time.process_time() - began < 3  # what grew with the square of its length would take minutes


async def test_a_long_note_is_saved_whole(abilities: ToolCatalog) -> None:
    text = " ".join(f"palabra{n}." for n in range(600))
    assert await _calls(abilities, "es", f"anota {text}") == [("save_note", {"text": text})]


async def test_it_names_what_it_did_nothing_about(abilities: ToolCatalog) -> None:
    said = "qué hora es en Tokio\nasdkjh qwe zxcv"
    model = OfflineModel(abilities, now=lambda: NOW)
    tools = abilities.offer(sorted(abilities.tool_categories(person("es"))), person("es")).schemas
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1"}]},
        {"role": "tool", "content": '{"ok": true, "data": "9:00"}'},
    ]
    answer = await model.complete(ModelRequest("answer", messages, tools, said, person("es")))
    assert answer.text.startswith("9:00")
    assert "asdkjh qwe zxcv" in answer.text
