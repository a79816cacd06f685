from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.skills.tools import age_set_aside, code, functions

TOOLS = functions("projects")
create, projects, show, update, erase, add, tasks, change, note = (
    TOOLS[name]
    for name in (
        *("create_project", "list_projects", "show_project", "update_project", "delete_project"),
        *("add_task", "list_tasks", "update_task", "add_project_note"),
    )
)


@pytest.fixture
def house(ana):
    """Ana with the projects Casa (tasks 1 and 2) and Viaje (task 3)."""
    create("Casa", context=ana)
    create("Viaje a Perú", context=ana)
    add("comprar pintura", "casa", context=ana)
    add("pintar el baño", "casa", context=ana)
    add("comprar pasajes", "viaje", context=ana)
    return ana


def open_tasks(here, project: str = "") -> list[str]:
    return [task["task"] for task in tasks(project, context=here)["tasks"]]


def test_a_project_is_created_and_listed_with_its_progress(house) -> None:
    assert change("1", status="done", context=house)["done"] is True
    assert projects(context=house)["summary"] == (
        "Tus proyectos:\n2. Viaje a Perú: 0 de 1 · 0 %\n1. Casa: 1 de 2 · 50 %"
    )


def test_a_project_is_shown_with_all_that_belongs_to_it(house) -> None:
    change("pintura", status="done", context=house)
    note("el pintor se llama Luis", "casa", context=house)
    shown = show("casa", context=house)
    assert (shown["done"], shown["tasks"], shown["notes"]) == (1, 2, ["el pintor se llama Luis"])
    head, _, activity = shown["summary"].partition("\n\nLo último:\n")
    assert head == (
        "*Casa* · 1 de 2 · 50 %\n\nPendientes:\n2. pintar el baño\n\nHechas:\n✓ 1. comprar pintura\n\n"
        "Notas:\n• el pintor se llama Luis"
    )
    happened = [line.partition(": ")[2] for line in activity.splitlines()]
    assert happened == [
        "nota: el pintor se llama Luis",
        "hecha: comprar pintura",
        "tarea nueva: pintar el baño",
        "tarea nueva: comprar pintura",
        "proyecto creado",
    ]


def test_a_task_is_completed_and_reopened(house) -> None:
    done = change("pintar", status="done", context=house)
    assert done["summary"] == "✓ Hecha: 2. pintar el baño\nCasa: 1 de 2 · 50 %"
    assert open_tasks(house, "casa") == ["comprar pintura"]
    assert [one["task"] for one in tasks("casa", "done", context=house)["tasks"]] == ["pintar el baño"]
    assert "Casa: 0 de 2 · 0 %" in change("2", status="open", context=house)["summary"]
    assert open_tasks(house, "casa") == ["comprar pintura", "pintar el baño"]
    assert change("2", status="open", context=house)["error"]["code"] == "NOTHING_TO_CHANGE"


def test_due_dates_are_read_from_words_and_sort_the_list(house) -> None:
    today = datetime.now(ZoneInfo("America/Mexico_City")).date()
    assert add("lijar", "casa", "mañana", context=house)["due"] == (today + timedelta(days=1)).isoformat()
    assert change("2", due="hoy", context=house)["due"] == today.isoformat()
    assert open_tasks(house) == ["pintar el baño", "lijar", "comprar pintura", "comprar pasajes"]
    assert "(para el " in tasks(context=house)["summary"]
    assert change("2", due="sin fecha", context=house)["due"] == ""
    assert code(add("x", "casa", "cuando llueva", context=house)) == "INVALID_DATE"


def test_an_archived_project_is_laid_aside_and_comes_back(house) -> None:
    archived = "✓ Proyecto archivado: Casa\nSiguen pendientes en él: 2"
    assert update("casa", status="archived", context=house)["summary"] == archived
    assert [one["name"] for one in projects(context=house)["projects"]] == ["Viaje a Perú"]
    assert [one["name"] for one in projects("archived", context=house)["projects"]] == ["Casa"]
    assert open_tasks(house) == ["comprar pasajes"]
    update("viaje", status="archived", context=house)
    assert len(open_tasks(house)) == 3  # with none in work, those laid aside are shown
    assert change("pasajes", status="done", context=house)["done"]
    change("pasajes", status="open", context=house)
    update("viaje", status="active", context=house)
    assert update("casa", status="active", context=house)["summary"] == "✓ Proyecto activo otra vez: Casa"
    assert len(open_tasks(house)) == 3


def test_a_deleted_project_leaves_nothing_after_a_week(house) -> None:
    note("el pintor se llama Luis", "casa", context=house)
    assert erase("casa", context=house)["project"] == 1
    assert open_tasks(house) == ["comprar pasajes"]
    age_set_aside(house)
    create("Otra", context=house)
    add("barrer", "Otra", context=house)
    note("nada", "Otra", context=house)
    assert not any(word in str(house.store.rows) for word in ("Casa", "pint", "Luis"))
    assert code(erase("", context=house)) == "PROJECT_NOT_FOUND"


def test_there_are_quotas(ana) -> None:
    ana.store.rows = {f"project:{n:020d}:x": {"text": f"p {n}", "created": n} for n in range(100)}
    assert code(create("uno más", context=ana)) == "TOO_MANY"
    assert create("p 7", context=ana)["project"] == 8
    first = next(iter(ana.store.rows))
    ana.store.rows |= {
        f"task:{n:020d}:x": {"text": str(n), "project": first, "created": n} for n in range(2000)
    }
    assert code(add("una más", "p 0", context=ana)) == "TOO_MANY"
    assert len(str(tasks("p 0", context=ana))) < 32 * 1024
    assert len(str(show("p 0", context=ana))) < 32 * 1024
