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


def shown(name: str = "") -> tuple[str, dict[str, Any]]:
    return "show_list", {"list_name": name} if name else {}


def deleted(name: str) -> tuple[str, dict[str, Any]]:
    return "delete_list", {"list_name": name}


@pytest.mark.parametrize(
    ("language", "said", "made"),
    [
        ("es", "pon leche y huevos en la lista del súper", [put("leche", "huevos", list_name="súper")]),
        ("es", "agrégale tortillas y quita el jamón", [put("tortillas"), off("el jamón")]),
        ("es", "agregá yerba y fideos a la lista", [put("yerba", "fideos")]),
        ("es", "poné 1,5 kg de carne en la lista", [put("1,5 kg de carne")]),
        ("es", "sacá los fideos de la lista", [off("los fideos")]),
        ("es", "qué falta comprar?", [shown("shopping")]),
        ("es", "¿qué me falta?", [shown()]),
        ("es", "ya compré la leche", [bought("la leche")]),
        ("es", "ya compré todo", [bought("all")]),
        ("es", "borra la lista del súper", [deleted("súper")]),
        ("es", "hay que comprar jabón y champú", [put("jabón", "champú", list_name="shopping")]),
        ("es", "agrega a la lista de compras\npan, jamón", [put("pan", "jamón", list_name="shopping")]),
        ("es", "lista del súper: pan\nqueso, 2 kg de papas", [put("pan", "queso", "2 kg de papas")]),
        ("es", "lista del súper:\npan\n- queso", [put("pan", "queso")]),
        ("es", "mis listas", [shown("all")]),
        (
            "es",
            "quita leche de la lista del súper y agrega pan",
            [off("leche", list_name="súper"), put("pan")],
        ),
        ("pt", "adiciona arroz na lista de compras", [put("arroz", list_name="compras")]),
        ("pt", "o que tem na lista?", [shown()]),
        ("pt", "já comprei o leite", [bought("o leite")]),
        ("pt", "tira o presunto da lista", [off("o presunto")]),
        ("pt", "quais listas eu tenho?", [shown("all")]),
        ("en", "add milk and eggs to the shopping list", [put("milk", "eggs", list_name="shopping")]),
        ("en", "what's on my packing list?", [shown("packing")]),
        ("en", "took the bread off", [bought("the bread")]),
        ("en", "we're out of coffee", [put("coffee", list_name="shopping")]),
        (
            "en",
            "add tomatoes, onions and 2 kg of potatoes to the list",
            [put("tomatoes", "onions", "2 kg of potatoes")],
        ),
        ("en", "clear the shopping list", [deleted("shopping")]),
        ("en", "add to my shopping list:\nmilk\n2 eggs", [put("milk", "2 eggs", list_name="shopping")]),
    ],
)
async def test_words_lead_to_calls(abilities: ToolCatalog, language: str, said: str, made: Any) -> None:
    called = await calls(abilities, language, said)
    assert [name for name, _ in called] == [name for name, _ in made]
    for (_, arguments), (_, wanted) in zip(called, made, strict=True):
        assert wanted.items() <= {**arguments, "items": _bare(arguments.get("items"))}.items()


def _bare(items: Any) -> Any:
    return [one.lstrip("- ") for one in items] if items else items


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
        ("es", [PUT, "y también pan"], [put("pan", list_name="viaje")]),
        ("es", [PUT, "también 2 kg de papas"], [put("2 kg de papas", list_name="viaje")]),
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
        (
            "es",
            ["haz una lista de viaje", "pilas y gorra"],
            [put("pilas", "gorra", list_name="viaje")],
        ),
        ("es", [TASKS, "agrega barrer"], [("add_task", {"task": "barrer"})]),
        ("es", ["busca leche en mis notas", "bórrala"], [("delete_note", {"note": "4"})]),
        ("pt", ["coloca leite na lista", "e pão também"], [put("pão")]),
        ("pt", ["coloca leite na lista", "tira ele"], [off("leite")]),
        ("en", ["add milk to the list", "and eggs too"], [put("eggs")]),
        ("en", ["add milk to the list", "remove bread"], [off("bread")]),
    ],
)
async def test_what_goes_on_with_a_list(
    abilities: ToolCatalog, language: str, spoken: list[str], made: Any
) -> None:
    assert await calls(abilities, language, *spoken) == made
