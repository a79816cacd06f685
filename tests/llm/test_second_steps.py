"""Messages that go on with what was said: another place, an hour picked, a line of a list, "it"."""

import json
import re
from typing import Any

import pytest

from app.i18n import say
from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.llm.offline.parameters import read_offer
from app.llm.offline.replies import example_of
from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import NOW, calls, person


@pytest.mark.parametrize(
    ("language", "spoken", "tool", "arguments"),
    [
        ("es", ["qué hora es en madrid", "Son las 9.", "y en lima?"], "current_time", {"place": "lima"}),
        ("pt", ["que horas são em lisboa", "São 9.", "e em tóquio?"], "current_time", {"place": "tóquio"}),
        ("en", ["what time is it in Madrid", "9", "and in lima?"], "current_time", {"place": "lima"}),
        (
            "en",
            ["what time is it in Madrid", "9", "and in lima?", "8", "what about Tokyo"],
            "current_time",
            {"place": "Tokyo"},
        ),
        ("es", ["qué hora es", "Las 9.", "¿y en tokio?"], "current_time", {"place": "tokio"}),
        (
            "es",
            ["cómo va a estar el clima mañana en puebla", "Sol.", "y pasado mañana?"],
            "get_weather",
            {"place": "puebla", "when": "tomorrow", "day": "2026-11-23"},
        ),
        (
            "pt",
            ["vai chover amanhã em recife?", "Não.", "e depois de amanhã?"],
            "get_weather",
            {"place": "recife", "when": "tomorrow", "day": "2026-11-23"},
        ),
        (
            "en",
            ["what's the weather in Austin tomorrow", "Sun.", "and on friday?"],
            "get_weather",
            {"place": "Austin", "when": "tomorrow", "day": "2026-11-27"},
        ),
        (
            "es",
            ["cuánto es el 16% de 2500", "400", "y de tres mil?"],
            "calculate",
            {"expression": "16% de tres mil"},
        ),
        (
            "es",
            ["cuánto es el 16% de dos mil quinientos", "400", "y el 8%?"],
            "calculate",
            {"expression": "8% de dos mil quinientos"},
        ),
        (
            "es",
            ["cuánto es el 16% de dos mil quinientos", "400", "y de tres mil?"],
            "calculate",
            {"expression": "16% de tres mil"},
        ),
        (
            "en",
            ["what's 15% of 86.50", "12.975", "and 20%?", "17.3", "plus 5"],
            "calculate",
            {"expression": "(20% of 86.50) + 5"},
        ),
        ("pt", ["que dia cai o natal", "Sexta.", "e o ano novo?"], "weekday_of", {"date": "ano novo"}),
        (
            "en",
            ["what's 18% tip on 54.20", "9.756", "split by 3"],
            "calculate",
            {"expression": "(18% tip on 54.20) / 3"},
        ),
        (
            "en",
            ["what's 18% of 54.20", "9.756", "split that by 3"],
            "calculate",
            {"expression": "(18% of 54.20) / 3"},
        ),
        (
            "es",
            ["convierte 5 libras a kilos", "2,27 kg", "¿en gramos?"],
            "convert_units",
            {"quantity": "5 libras", "to_unit": "gramos"},
        ),
        ("pt", ["quanto é 20% de 150", "30", "e 30%?"], "calculate", {"expression": "30% de 150"}),
        (
            "en",
            ["split 640 between 4 people", "160", "and 5?"],
            "calculate",
            {"expression": "split 640 between 5 people"},
        ),
        (
            "es",
            ["cuánto es 45 por 120", "5400", "dividido entre tres socios"],
            "calculate",
            {"expression": "(45 por 120) / tres"},
        ),
        (
            "pt",
            ["quanto é 45 vezes 120", "5400", "menos 200"],
            "calculate",
            {"expression": "(45 vezes 120) - 200"},
        ),
        (
            "en",
            ["10 km in miles", "6.2", "and 20 km?"],
            "convert_units",
            {"quantity": "20 km", "to_unit": "miles"},
        ),
        (
            "pt",
            ["10 km em milhas", "6,2", "e 20?"],
            "convert_units",
            {"quantity": "20 km", "to_unit": "milhas"},
        ),
        (
            "es",
            ["cuántos días faltan para navidad", "33", "y para año nuevo?"],
            "days_between",
            {"end": "año nuevo"},
        ),
    ],
)
async def test_a_question_that_leaves_out_what_was_asked_is_asked_again(
    language: str, spoken: list[str], tool: str, arguments: dict[str, Any], abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, *spoken) == [(tool, arguments)]


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("es", ["anota comprar pan", "✓ Nota guardada: comprar pan", "y en lima?"]),
        ("en", ["remind me to call Bob tomorrow at 9", "✓ Reminder tomorrow 09:00: call Bob", "and friday?"]),
        ("es", ["qué hora es en madrid", "Son las 9.", "y mi suegra qué dijo ayer de la fiesta"]),
        ("pt", ["que horas são em lisboa", "São 9.", "e obrigado"]),
    ],
)
async def test_what_was_written_down_or_asks_something_else_is_not_asked_again(
    language: str, spoken: list[str], abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, *spoken) == []


REMINDERS = "Reminders (2 of 2):\n#4 · today 21:10: rice\n#1 · tomorrow 09:00: call Bob"
NOTES = "Tus notas (3 de 3):\n7. pan\n5. leche\n2. clave"
TASKS = "Tareas:\n3. pintar\n9. barrer"


@pytest.mark.parametrize(
    ("language", "spoken", "tool", "arguments"),
    [
        (
            "es",
            ["qué recordatorios tengo", REMINDERS, "borra el segundo"],
            "cancel_reminder",
            {"reminder": "1"},
        ),
        (
            "pt",
            ["quais lembretes eu tenho", REMINDERS, "apaga o último"],
            "cancel_reminder",
            {"reminder": "1"},
        ),
        ("en", ["my reminders", REMINDERS, "cancel the first one"], "cancel_reminder", {"reminder": "4"}),
        (
            "en",
            ["my reminders", REMINDERS, "move the second one to 10am"],
            "change_reminder",
            {"reminder": "1", "when": "10am"},
        ),
        ("es", ["mis notas", NOTES, "borra la tercera"], "delete_note", {"note": "2"}),
        (
            "es",
            ["mis notas", NOTES, "gracias", "De nada", "elimina la primera"],
            "delete_note",
            {"note": "7"},
        ),
        ("pt", ["minhas notas", NOTES, "apaga a segunda"], "delete_note", {"note": "5"}),
        ("en", ["my notes", NOTES, "delete the last one"], "delete_note", {"note": "2"}),
        ("es", ["mis tareas", TASKS, "completa la segunda"], "update_task", {"task": "9", "status": "done"}),
        (
            "es",
            ["borra la nota pan", f"{NOTES}\n¿Cuál? Di su número.", "la segunda"],
            "delete_note",
            {"note": "5"},
        ),
        (
            "en",
            ["delete the note milk", f"{NOTES}\nWhich one? Say its number.", "5"],
            "delete_note",
            {"note": "5"},
        ),
    ],
)
async def test_a_line_of_a_list_is_meant_by_its_place(
    language: str, spoken: list[str], tool: str, arguments: dict[str, Any], abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, *spoken) == [(tool, arguments)]


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("pt", ["quais lembretes eu tenho", REMINDERS, "que dia é segunda"]),
        ("es", ["mis notas", NOTES, "borra la nota del segundo piso"]),
        ("en", ["my notes", NOTES, "delete the second world war note"]),
    ],
)
async def test_a_place_in_a_text_or_a_weekday_picks_no_line(
    language: str, spoken: list[str], abilities: ToolCatalog
) -> None:
    found = await calls(abilities, language, *spoken)
    assert not {"1", "5"} & {value for _, arguments in found for value in arguments.values()}


def _which(language: str, first: str, second: str) -> str:
    return say(language, "Do you mean {first} or {second}? I set nothing yet.", first=first, second=second)


@pytest.mark.parametrize(
    ("language", "before", "said", "when"),
    [
        ("en", "remind me to call Leo tomorrow at 5", "pm", "tomorrow 17:00"),
        ("en", "remind me to call Leo tomorrow at 5", "the first one", "tomorrow 05:00"),
        ("en", "remind me to call Leo tomorrow at 5", "5 p.m.", "tomorrow 17:00"),
        ("es", "recuérdame mañana a las 5 llamar a Leo", "de la tarde", "mañana 17:00"),
        ("es", "recuérdame mañana a las 5 llamar a Leo", "a las 17", "mañana 17:00"),
        ("pt", "me lembra amanhã às 5 de ligar pro Leo", "da tarde", "amanhã 17:00"),
        ("pt", "me lembra amanhã às 5 de ligar pro Leo", "da manhã mesmo", ""),
        ("en", "remind me to call Leo tomorrow at 5", "5", ""),
        ("en", "remind me to call Leo tomorrow at 5", "what time is it", ""),
    ],
)
async def test_one_of_two_hours_is_picked(
    language: str, before: str, said: str, when: str, abilities: ToolCatalog
) -> None:
    asked = _which(language, "tomorrow 05:00", "tomorrow 17:00")
    found = await calls(abilities, language, before, asked, said)
    assert [one["when"] for name, one in found if name == "set_reminder"] == ([when] if when else [])


@pytest.mark.parametrize(
    ("language", "receipt", "said", "tool", "arguments"),
    [
        ("en", "✓ Reminder tomorrow 09:00: pan", "oops I meant 8am", "change_reminder", {"when": "8am"}),
        ("es", "✓ Recordatorio mañana 09:00: pan", "a las 8 mejor", "change_reminder", {"when": "a las 8"}),
        (
            "pt",
            "✓ Lembrete toda semana: terça-feira e quinta-feira 18:00 (o próximo: ter. 24 nov. 18:00): pan",
            "muda pra 19h",
            "change_reminder",
            {"when": "19h"},
        ),
        (
            "es",
            "✓ Recordatorio mañana 09:00: pan",
            "no espera, mejor el martes",
            "change_reminder",
            {"when": "el martes"},
        ),
        ("pt", "✓ Lembrete amanhã 09:00: pan", "melhor às 8", "change_reminder", {"when": "às 8"}),
        ("en", "✓ Reminder tomorrow 09:00: pan", "8am instead", "change_reminder", {"when": "8am"}),
        (
            "pt",
            "✓ Lembrete amanhã 09:00: “pan” (pode conter palavras de outros)",
            "muda pra 19h",
            "change_reminder",
            {"when": "19h"},
        ),
    ],
)
async def test_another_hour_is_for_what_the_receipt_names(
    language: str, receipt: str, said: str, tool: str, arguments: dict[str, Any], abilities: ToolCatalog
) -> None:
    before = {
        "es": "recuérdame mañana pan",
        "pt": "me lembra amanhã de pan",
        "en": "remind me to pan tomorrow",
    }
    found = await calls(abilities, language, before[language], receipt, said)
    assert found == [(tool, {"reminder": "pan", **arguments})]


@pytest.mark.parametrize(
    ("language", "before", "said"),
    [
        ("en", "remind me to call Bob tomorrow at 9", "actually buy some flowers"),
        ("es", "recuérdame llamar a Bob mañana a las 9", "mejor no lo hagas todavía"),
        ("pt", "me lembra de ligar pro Bob amanhã às 9", "na verdade comprei flores"),
    ],
)
async def test_a_change_of_mind_without_a_time_changes_no_reminder(
    language: str, before: str, said: str, abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, before, "✓ Reminder tomorrow 09:00: call Bob", said) == []


@pytest.mark.parametrize(
    ("language", "before", "receipt", "said", "tool", "arguments"),
    [
        ("es", "anota pan", "✓ Nota guardada: pan", "bórrala", "delete_note", {"note": "pan"}),
        (
            "en",
            "note gate code 4412",
            "✓ Note saved: gate code 4412",
            "change it to 5521",
            "edit_note",
            {"note": "gate code 4412", "text": "5521"},
        ),
        ("es", "anota pan", "✓ Nota guardada: pan", "borra esa nota", "delete_note", {"note": "pan"}),
        ("pt", "anota pão", "✓ Nota salva: pão", "apaga essa nota", "delete_note", {"note": "pão"}),
        ("en", "note bread", "✓ Note saved: bread", "delete that note", "delete_note", {"note": "bread"}),
        ("en", "note bread", "✓ Note saved: bread", "delete it", "delete_note", {"note": "bread"}),
        (
            "en",
            "find notes about bread",
            'I found 1 with "bread":\n4. buy bread',
            "delete that note",
            "delete_note",
            {"note": "4"},
        ),
        (
            "en",
            "remind me to call Bob tomorrow at 9",
            "✓ Reminder tomorrow 09:00: call Bob",
            "delete it",
            "cancel_reminder",
            {"reminder": "call Bob"},
        ),
    ],
)
async def test_it_is_of_the_kind_that_was_talked_about(
    language: str,
    before: str,
    receipt: str,
    said: str,
    tool: str,
    arguments: dict[str, Any],
    abilities: ToolCatalog,
) -> None:
    assert await calls(abilities, language, before, receipt, said) == [(tool, arguments)]


@pytest.mark.parametrize(
    ("language", "before", "receipt", "said", "first"),
    [
        ("es", "anota pan", "✓ Nota guardada: pan", "bórrala y recuérdame pagar mañana a las 10", "pan"),
        ("pt", "anota pão", "✓ Nota salva: pão", "apaga ela e me lembra de pagar amanhã às 10", "pão"),
        (
            "en",
            "note bread",
            "✓ Note saved: bread",
            "delete it and remind me to pay tomorrow at 10am",
            "bread",
        ),
    ],
)
async def test_it_and_something_else_are_both_done(
    language: str, before: str, receipt: str, said: str, first: str, abilities: ToolCatalog
) -> None:
    found = await calls(abilities, language, before, receipt, said)
    assert [name for name, _ in found] == ["delete_note", "set_reminder"]
    assert found[0][1] == {"note": first}


@pytest.mark.parametrize(
    ("said", "before", "tool"),
    [
        ("borra el segundo", "q recordatorios tengo", "cancel reminder"),
        ("apaga o último", "quais lembretes eu tenho?", "cancel reminder"),
        ("delete the last one", "my reminders", "cancel reminder"),
        ("borra la segunda", "mis notas", "delete note"),
        ("bórralo", "q recordatorios tengo", "cancel reminder"),
        ("apaga isso", "minhas notas", "delete note"),
        ("delete it", "my reminders", "cancel reminder"),
    ],
)
async def test_the_tool_for_a_line_of_a_list_is_chosen_by_what_was_listed(
    said: str, before: str, tool: str, abilities: ToolCatalog
) -> None:
    model = OfflineModel(abilities, now=lambda: NOW)
    categories = tuple((name, "") for name in ("reminders", "notes", "projects", "conversation"))
    asked = ModelRequest("classify", [], [], said, person("es"), categories, recent=(before,))
    reading = json.loads((await model.complete(asked)).text)
    assert reading["categories"][0] == f"{tool.split(' ')[1]}s"
    assert reading["phrases"][0] == tool


@pytest.mark.parametrize("language", ["es", "pt", "en"])
async def test_nobody_is_shown_by_example_how_to_delete_everything(
    language: str, abilities: ToolCatalog
) -> None:
    listed = [
        example_of(offer, abilities.phrases()[offer.name], language)
        for schema in abilities.offer(sorted(abilities.tool_categories(person())), person()).schemas
        if (offer := read_offer(schema)) is not None
    ]
    assert any(listed)
    assert not re.search(
        r"\b(?:borra|cancela|olvida|apaga|esquece|delete|cancel|forget|nada)", " ".join(listed).lower()
    )


async def all_calls(abilities: ToolCatalog, language: str, said: str) -> list[tuple[str, Any]]:
    """What is called over all rounds."""
    model = OfflineModel(abilities, now=lambda: NOW)
    who = person(language)
    tools = abilities.offer(sorted(abilities.tool_categories(who)), who).schemas
    messages: list[dict[str, Any]] = [{"role": "user", "content": said}]
    found: list[tuple[str, Any]] = []
    while (answer := await model.complete(ModelRequest("answer", messages, tools, said, who))).calls:
        messages.append({"role": "assistant", "content": None, "tool_calls": [{} for _ in answer.calls]})
        messages += [
            {"role": "tool", "content": '{"ok": true, "data": {"summary": "✓"}}'} for _ in answer.calls
        ]
        found += [(call.name, call.arguments) for call in answer.calls]
    return found
