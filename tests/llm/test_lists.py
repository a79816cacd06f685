"""The built-in model and a person's lists: what leads to which call, and what goes on with it."""

from typing import Any

import pytest

from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import calls

WHAT = "What things? You can name several, with commas between them."
WHICH = "Which one do you mean? Say its name."
PUT = "pon leche en la lista de viaje"
SHOWN = "qué falta comprar?"
TASKS = "qué tareas tengo"


def put(*items: str, **more: str) -> tuple[str, dict[str, Any]]:
    return "add_to_list", {"items": list(items), **more}


def bought(*items: str, **more: str) -> tuple[str, dict[str, Any]]:
    return "check_off", {"items": list(items), **more}


def off(*items: str, **more: str) -> tuple[str, dict[str, Any]]:
    return "take_off_list", {"items": list(items), **more}


def deleted(name: str) -> tuple[str, dict[str, Any]]:
    return "delete_list", {"list_name": name}


@pytest.mark.parametrize(
    ("language", "said", "tool"),
    [
        ("es", "lista de recordatorios", "list_reminders"),
        ("es", "lista de proyectos", "list_projects"),
        ("es", "muéstrame la lista de tareas", "list_tasks"),
        ("es", "agrega pintar a la lista de tareas", "add_task"),
        ("es", "anota comprar pan", "save_note"),
        ("es", "anota comprar pan\ncomprar leche", "save_note"),
        ("es", "recuérdame comprar leche mañana a las 9", "set_reminder"),
        ("es", "me gusta la leche, recuérdalo", "remember"),
        ("pt", "lista de lembretes", "list_reminders"),
        ("pt", "lista de notas", "list_notes"),
        ("en", "list my notes", "list_notes"),
        ("en", "what's on my to-do list", "list_tasks"),
        ("en", "add call mom to my to-do list", "add_task"),
        ("en", "remove list.txt", "delete_file"),
        ("en", "remove milk", None),
    ],
)
async def test_other_lists_stay_with_their_own_tools(
    abilities: ToolCatalog, language: str, said: str, tool: str | None
) -> None:
    assert {name for name, _ in await calls(abilities, language, said)} <= {tool}


@pytest.mark.parametrize(
    ("language", "spoken", "made"),
    [
        ("es", [PUT, "y también pan"], []),
        ("en", ["add milk to the list", "oh and happy birthday"], []),
        (
            "es",
            [PUT, "ponle queso y quita el jamón"],
            [put("queso", list_name="viaje"), off("el jamón", list_name="viaje")],
        ),
        ("es", [PUT, "gracias", "tacha la leche"], [bought("la leche")]),
        ("es", [PUT, "táchala"], [bought("leche")]),
        ("es", [PUT, "quítala"], [off("leche")]),
        ("es", [PUT, "ya tengo la leche"], [bought("la leche", list_name="viaje")]),
        ("es", [PUT, "borra la lista"], [deleted("viaje")]),
        ("es", [SHOWN, "tacha el segundo"], [bought("4")]),
        ("es", [SHOWN, "tacha la 1 y la 4"], [bought("la 1", "la 4")]),
        ("es", [SHOWN, "quita el primero"], [off("1")]),
        ("es", ["borra la lista", "la del súper"], [deleted("la del súper")]),
        ("es", ["haz una lista de viaje", "pilas y gorra"], [put("pilas", "gorra", list_name="viaje")]),
        ("es", [TASKS, "agrega barrer"], [("add_task", {"task": "barrer"})]),
        ("es", [TASKS, "agrega tres tareas: barrer, lavar, planchar"], []),
        ("es", [PUT, "agrega chimichurri a asado"], []),
        ("es", [PUT, TASKS, "agrega tocino y crema"], []),
        ("es", [TASKS, "agrega a la tarea de cobrar que son 45"], []),
        ("es", [PUT, "agrega una tarea: barrer", "desmarca la 1"], []),
        ("es", ["una lista para la cena con pavo", "agrégale pan"], []),
        ("pt", ["coloca leite na lista", "minhas tarefas", "adiciona pão e ovos"], []),
        ("en", ["add milk to the list", "my tasks", "add bread and eggs"], []),
        ("es", ["busca leche en mis notas", "bórrala"], [("delete_note", {"note": "4"})]),
        ("pt", ["minhas listas", "limpa a lista"], []),
        ("pt", ["lista de compras", "apaga a lista"], [deleted("compras")]),
        ("pt", ["minhas listas", "limpa a lista", "viagem"], [deleted("viagem")]),
        ("pt", ["coloca leite na lista", "tira ele"], [off("leite")]),
        ("en", ["add milk to the list", "it rains", "remove the meat and add chicken"], []),
        ("es", [PUT, "llueve mucho", "quita la carne y agrega pollo"], []),
        ("en", ["add milk to the list", "remove bread"], [off("bread")]),
        ("en", ["add milk to the list", "add bread and eggs"], [put("bread", "eggs")]),
        ("en", ["add milk to the list", "it rains", "add bread"], [put("bread")]),
        ("en", ["add milk to the list", "put the car in the garage"], []),
        ("en", ["add milk to the list", "add 5 minutes"], []),
        ("es", ["anota leche", "agrega huevos"], []),
        ("es", [PUT, "anota leche", "agrega huevos"], [put("huevos")]),
        ("en", ["add milk to the list", "and the kids are coming too"], []),
        ("es", [PUT, "¿y si llueve?"], []),
        ("es", [PUT, "y si hay, queso"], []),
        ("pt", ["coloca leite na lista", "adiciona a Carla"], []),
        ("pt", ["coloca leite na lista", "adiciona mais uma semana"], []),
        ("pt", ["coloca leite na lista", "adiciona gasolina na moto"], []),
        ("pt", ["coloca leite na lista", "põe a mesa pro jantar"], []),
        ("pt", ["coloca leite na lista", "bota fé"], []),
        ("es", [PUT, "ponte feliz"], []),
        ("en", ["add to the list", "milk, 2 eggs and the bread"], [put("milk", "2 eggs", "the bread")]),
        ("en", ["add to the list", "the weather is bad"], []),
        ("en", ["add to the list", "Gail called"], []),
        ("en", ["add to the list", "the kids are coming over, Kay and Joe"], []),
        ("en", ["add to the list", "sorry wrong chat"], []),
        ("en", ["add to the waiting list", "buy milk"], []),
        ("en", ["what reminders do I have", "delete the first note"], []),
        ("en", ["find bread in my notes", "it rains", "delete the last one"], []),
        ("en", ["restore note 5", "restore the note"], []),
        ("en", ["remind me tomorrow at 9 to call Ana", "undo please"], []),
    ],
)
async def test_what_goes_on_with_a_list(
    abilities: ToolCatalog, language: str, spoken: list[str], made: Any
) -> None:
    assert await calls(abilities, language, *spoken) == made


async def test_a_list_that_is_not_there_is_not_the_one_in_use(abilities: ToolCatalog) -> None:
    failed = {
        "ok": False,
        "error": {"code": "LIST_NOT_FOUND", "message": "No tienes ninguna lista «jardín»."},
    }
    spoken = ["borra la lista del jardín", "agrega pan"]
    assert await calls(abilities, "es", *spoken, delete_list=failed) == [put("pan")]
