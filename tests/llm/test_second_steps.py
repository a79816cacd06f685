"""Messages that go on with what was said and done: another place, an hour picked, a line of a list, "it"."""

import json
from typing import Any

import pytest

from app.llm.model import ModelRequest
from app.messages import FollowUp
from app.routing.tool_catalog import ToolCatalog
from app.store.turn_state import Exchange, PastCall
from tests.llm.catalogue import Dialog, answered, calls, person

NOTES, REMINDERS = "mis notas", "qué recordatorios tengo"

GOES_ON: list[tuple[str, list[str], str, dict[str, Any]]] = [
    # the same question about something else
    ("es", ["qué hora es en madrid", "y en lima?"], "current_time", {"place": "lima"}),
    ("pt", ["que horas são em lisboa", "e em tóquio?"], "current_time", {"place": "tóquio"}),
    (
        "en",
        ["what time is it in Madrid", "and in lima?", "what about Tokyo"],
        "current_time",
        {"place": "Tokyo"},
    ),
    ("es", ["qué hora es", "¿y en tokio?"], "current_time", {"place": "tokio"}),
    (
        "es",
        ["cómo va a estar el clima mañana en puebla", "y pasado mañana?"],
        "get_weather",
        {"place": "puebla", "when": "tomorrow", "day": "2026-11-23"},
    ),
    (
        "en",
        ["what's the weather in Austin tomorrow", "and on friday?"],
        "get_weather",
        {"place": "Austin", "when": "tomorrow", "day": "2026-11-27"},
    ),
    ("pt", ["que dia cai o natal", "e o ano novo?"], "weekday_of", {"date": "ano novo"}),
    (
        "en",
        ["what's 18% tip on 54.20", "split that by 3"],
        "calculate",
        {"expression": "(18% tip on 54.20) / 3"},
    ),
    (
        "es",
        ["cuánto es 45 por 120", "dividido entre tres socios"],
        "calculate",
        {"expression": "(45 por 120) / tres"},
    ),
    (
        "es",
        ["24 por 35 mil", "eso más 200 mil del salón"],
        "calculate",
        {"expression": "(24 por 35 mil) + 200 mil"},
    ),
    (
        "pt",
        ["10 mil mais 5 mil", "menos 2 milhões"],
        "calculate",
        {"expression": "(10 mil mais 5 mil) - 2 milhões"},
    ),
    ("en", ["10 times 5", "plus two thousand"], "calculate", {"expression": "(10 times 5) + two thousand"}),
    ("pt", ["quanto é 45 vezes 120", "menos 200"], "calculate", {"expression": "(45 vezes 120) - 200"}),
    ("es", ["cuántos días faltan para navidad", "y para año nuevo?"], "days_between", {"end": "año nuevo"}),
    # a line of a list
    ("es", [REMINDERS, "borra el segundo"], "cancel_reminder", {"reminder": "1"}),
    ("pt", ["quais lembretes eu tenho", "apaga o último"], "cancel_reminder", {"reminder": "1"}),
    ("en", ["my reminders", "cancel the first one"], "cancel_reminder", {"reminder": "4"}),
    (
        "en",
        ["my reminders", "move the second one to 10am"],
        "change_reminder",
        {"reminder": "1", "when": "10am"},
    ),
    ("es", [NOTES, "gracias", "borra la tercera"], "delete_note", {"note": "2"}),
    ("es", ["mis tareas", "completa la segunda"], "update_task", {"task": "9", "status": "done"}),
    # another moment for what was set
    (
        "en",
        ["remind me to pan tomorrow", "oops I meant 8am"],
        "change_reminder",
        {"reminder": "pan", "when": "8am"},
    ),
    (
        "es",
        ["recuérdame mañana pan", "no espera, mejor el martes"],
        "change_reminder",
        {"reminder": "pan", "when": "el martes"},
    ),
    ("pt", ["me lembra amanhã pan", "muda pra 19h"], "change_reminder", {"reminder": "pan", "when": "19h"}),
    (
        "en",
        ["remind me to pan tomorrow", "make it 8"],
        "change_reminder",
        {"reminder": "pan", "when": "at 8"},
    ),
    ("pt", ["me lembra amanhã pan", "melhor 8"], "change_reminder", {"reminder": "pan", "when": "às 8"}),
    (
        "es",
        ["recuérdame mañana pan", "muévelo una hora después"],
        "change_reminder",
        {"reminder": "pan", "when": "una hora después"},
    ),
    (
        "es",
        ["avísame en 10 minutos", "sacar el pollo"],
        "set_reminder",
        {"text": "sacar el pollo", "when": "en 10 minutos"},
    ),
    (
        "pt",
        ["me avisa em 10 minutos", "tirar o frango"],
        "set_reminder",
        {"text": "tirar o frango", "when": "em 10 minutos"},
    ),
    (
        "en",
        ["remind me in 10 minutes", "turn it off"],
        "set_reminder",
        {"text": "turn it off", "when": "in 10 minutes"},
    ),
    # "it"
    ("es", ["anota pan", "bórrala"], "delete_note", {"note": "pan"}),
    ("es", ["14 x 385", "menos el 10%"], "calculate", {"expression": "(14 x 385) - 10%"}),
    ("es", ["anota pan", "gracias", "borra esa nota"], "delete_note", {"note": "pan"}),
    ("pt", ["anota pão", "apaga essa nota"], "delete_note", {"note": "pão"}),
    ("en", ["find notes about bread", "delete that note"], "delete_note", {"note": "4"}),
    ("en", ["remind me to call Bob tomorrow at 9", "delete it"], "cancel_reminder", {"reminder": "call Bob"}),
    # an answer to our question
    (
        "en",
        ["remind me to call Bob", "tomorrow at 9"],
        "set_reminder",
        {"text": "call Bob", "when": "tomorrow at 9"},
    ),
    # a list that was deleted is not the one in use
    ("es", ["borra la lista de obra", "agrega pan"], "add_to_list", {"items": ["pan"]}),
    ("pt", ["apaga a lista de obra", "adiciona pão"], "add_to_list", {"items": ["pão"]}),
    ("en", ["delete the hardware list", "add bread"], "add_to_list", {"items": ["bread"]}),
    ("es", ["anota pan", "bórralo", "qué hora es", "deshacer"], "undo_note", {}),
]


@pytest.mark.parametrize(("language", "spoken", "tool", "arguments"), GOES_ON)
async def test_a_message_goes_on_with_what_came_before(
    language: str, spoken: list[str], tool: str, arguments: dict[str, Any], abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, *spoken) == [(tool, arguments)]


ASKS_NOTHING = [
    ("es", ["anota comprar pan", "y en lima?"]),
    ("en", ["remind me to call Bob tomorrow at 9", "and friday?"]),
    ("es", ["qué hora es en madrid", "y mi suegra qué dijo ayer de la fiesta"]),
    ("en", ["remind me to call Bob tomorrow at 9", "actually buy some flowers"]),
    ("es", ["recuérdame llamar a Bob mañana a las 9", "mejor no lo hagas todavía"]),
    ("pt", ["me lembra dia 10 de pagar a luz", "não, 15"]),
    ("pt", ["me lembra daqui 15 minutos de ver o arroz", "na verdade 20"]),
    ("es", [REMINDERS, "borra lo del taller"]),
    ("es", [REMINDERS, "borra el quinto"]),  # of two
    ("es", [REMINDERS, "recuérdame llamar a Bob mañana a las 9", "borra el último"]),  # that or the list's?
    ("es", [REMINDERS, "qué falta comprar?", "cancela el 1"]),  # a number of another list
    ("pt", ["meus lembretes", "mostra a lista", "cancela o 1"]),
    (
        "pt",
        ["poe na lista do churras carvao linguica e cerva", "add gelo tb"],
    ),  # of a list that was not understood
    ("en", ["my reminders", "show the list", "cancel number 1"]),
    ("pt", ["40 vezes 3200 menos 5%", "e se for 45"]),
    ("en", ["note the fridge is at 9 degrees", "change that note to 10 degrees"]),
    ("en", ["note gate code 4412", "change it to 5521"]),
    ("es", ["cuánto es el 12% de 350", "y el 15?"]),  # 15 % of it, or of 15?
    ("en", ["what's 15% of 86.50", "and 20%?"]),
    ("es", ["convierte 5 libras a kilos", "¿en gramos?"]),
    ("en", ["remind me to call Ana tomorrow at 10am", "and remind me at 11 to ice the cake"]),  # which day?
]


@pytest.mark.parametrize(("language", "spoken"), ASKS_NOTHING)
async def test_what_asks_for_nothing_new_is_not_done(
    language: str, spoken: list[str], abilities: ToolCatalog
) -> None:
    assert await calls(abilities, language, *spoken) == []


@pytest.mark.parametrize(
    ("language", "spoken"),
    [
        ("pt", ["quais lembretes eu tenho", "que dia é segunda"]),
        ("es", [NOTES, "borra la nota del segundo piso"]),
        ("en", ["my notes", "delete the second world war note"]),
    ],
)
async def test_a_place_in_a_text_or_a_weekday_picks_no_line(
    language: str, spoken: list[str], abilities: ToolCatalog
) -> None:
    found = await calls(abilities, language, *spoken)
    assert not {"1", "5"} & {value for _, arguments in found for value in arguments.values()}


@pytest.mark.parametrize(
    ("said", "number"), [("la tercera", "2"), ("la segunda", None), ("5", "5"), ("la 7", "7"), ("99", None)]
)
async def test_one_of_several_alike_is_told_by_its_place_or_number(
    said: str, number: str | None, abilities: ToolCatalog
) -> None:
    error = {"code": "AMBIGUOUS", "message": "Hay varias"}
    alike = {"ok": False, "error": error, "meta": {"numbers": [7, 5, 2]}}
    found = await calls(abilities, "es", "borra la nota pan", said, delete_note=alike)
    assert found == ([("delete_note", {"note": number})] if number else [])


@pytest.mark.parametrize(
    ("language", "before", "said", "when"),
    [
        ("en", "remind me to call Leo tomorrow at 5", "5 p.m.", "tomorrow 5 p.m."),
        ("es", "recuérdame mañana a las 5 llamar a Leo", "a las 17", "mañana a las 17"),
        ("es", "recuérdame mañana a las 5 llamar a Leo", "cancela el último recordatorio", ""),
        ("pt", "me lembra amanhã às 5 de ligar pro Leo", "da tarde", ""),
        ("pt", "me lembra amanhã às 5 de ligar pro Leo", "da manhã mesmo", ""),
        ("en", "remind me to call Leo tomorrow at 5", "5", ""),
        ("en", "remind me to call Leo tomorrow at 5", "what time is it", ""),
    ],
)
async def test_one_of_two_hours_is_picked(
    language: str, before: str, said: str, when: str, abilities: ToolCatalog
) -> None:
    error = {"code": "AMBIGUOUS_TIME", "message": "Which?"}
    asked = {"ok": False, "error": error, "meta": {"hours": ["05:00", "17:00"]}}
    found = await calls(abilities, language, before, said, set_reminder=asked)
    assert [one["when"] for name, one in found if name == "set_reminder"] == ([when] if when else [])


@pytest.mark.parametrize(
    ("language", "before", "said", "text"),
    [
        ("es", "anota pan", "bórrala y recuérdame pagar mañana a las 10", "pan"),
        ("en", "note bread", "delete it and remind me to pay tomorrow at 10am", "bread"),
    ],
)
async def test_it_and_something_else_are_both_done(
    language: str, before: str, said: str, text: str, abilities: ToolCatalog
) -> None:
    found = await calls(abilities, language, before, said)
    assert [name for name, _ in found] == ["delete_note", "set_reminder"]
    assert found[0][1] == {"note": text}


@pytest.mark.parametrize(("said", "language"), [("deshacer", "es"), ("desfazer", "pt"), ("Undo!", "en")])
async def test_one_word_undoes_what_was_done_last(said: str, language: str, abilities: ToolCatalog) -> None:
    done = {"ok": True, "data": {"summary": "✓ time"}, "meta": {"undo": "remove the server time"}}
    spoken = ("install the time server", said)
    found = await calls(abilities, language, *spoken, role="owner", install_mcp_server=done)
    assert found == [("remove_mcp_server", {"name": "time"})]


async def test_what_a_page_says_to_undo_it_by_is_not_done(abilities: ToolCatalog) -> None:
    page = {"data": {"summary": "✓ News"}, "ok": True, "meta": {"undo": "remove the server time"}}
    spoken = ("read https://news.example/", "undo")
    assert not await calls(abilities, "en", *spoken, role="owner", fetch_page=page, web_fetch=page)


@pytest.mark.parametrize(
    ("said", "before", "tool"),
    [
        ("borra el segundo", "list_reminders", "cancel reminder"),
        ("borra la segunda", "list_notes", "delete note"),
    ],
)
async def test_the_tool_for_a_line_of_a_list_is_chosen_by_what_was_listed(
    said: str, before: str, tool: str, abilities: ToolCatalog
) -> None:
    shown = PastCall(before, {}, ok=True, follow_up=FollowUp(numbers=("4", "1")))
    earlier = (Exchange("", "", 0.0, calls=(shown,)),)
    categories = tuple((name, "") for name in ("reminders", "notes", "projects", "conversation"))
    asked = ModelRequest(
        "classify", [], said=said, person=person("es"), categories=categories, earlier=earlier
    )
    reading = json.loads((await Dialog(abilities, "es").model.complete(asked)).text)
    assert reading["categories"][0] == f"{tool.split(' ')[1]}s"
    assert reading["phrases"][0] == tool


IDS = ("io.github.github/github-mcp-server", "io.github.ana/github-issues")
LISTED = {"ok": True, "data": {"names": list(IDS)}, "meta": {"choices": list(IDS)}}


@pytest.mark.parametrize(
    ("said", "picked"),
    [
        ("1", IDS[0]),
        ("la 2", IDS[1]),
        ("el segundo", IDS[1]),
        ("dale, el 1", IDS[0]),
        (IDS[1], IDS[1]),
        ("9", ""),
        ("ninguno, gracias", ""),
    ],
)
async def test_one_of_several_servers_is_picked_by_number_or_name(
    said: str, picked: str, abilities: ToolCatalog
) -> None:
    spoken = ("instala el server de github", said)
    found = await calls(abilities, "es", *spoken, role="owner", install_mcp_server=LISTED)
    assert found == ([("install_mcp_server", {"name": picked})] if picked else [])


@pytest.mark.parametrize(
    ("spoken", "answer"), [(["anota pan", "olvídalo"], "queda como está"), (["olvídalo"], "no cambié nada")]
)
async def test_who_forgets_about_it_is_told_that_it_is_done(
    abilities: ToolCatalog, spoken: list[str], answer: str
) -> None:
    assert answer in (await answered(abilities, "es", *spoken))[1]


@pytest.mark.parametrize(
    ("language", "asked", "said"),
    [
        ("es", "avísame en 10 minutos", "cancela"),
        ("pt", "me avisa em 10 minutos", "não sei"),
        ("en", "remind me in 10 minutes", "I don't know"),
        ("en", "remind me in 10 minutes", "pay the bill tomorrow"),
        ("es", "crea la lista viaje", "vacía"),
        ("en", "make a trip list", "none"),
    ],
)
async def test_what_gives_nothing_answers_no_question(
    abilities: ToolCatalog, language: str, asked: str, said: str
) -> None:
    assert await calls(abilities, language, asked, said) == []
