"""Notes, lists, projects and memory told apart by the built-in model, from each other and from reminders."""

from typing import Any

import pytest

from app.llm.model import ModelRequest
from app.llm.offline.model import OfflineModel
from app.routing.tool_catalog import ToolCatalog
from tests.llm.catalogue import NOW, person


async def calls(abilities: ToolCatalog, language: str, said: str) -> list[tuple[str, Any]]:
    model = OfflineModel(abilities, now=lambda: NOW)
    who = person(language)
    tools = abilities.offer(sorted(abilities.tool_categories(who)), who).schemas
    answer = await model.complete(ModelRequest("answer", [], tools, said, who))
    return [(call.name, call.arguments) for call in answer.calls]


SAID: list[tuple[str, str, str, dict[str, Any]]] = [
    ("es", "mi cumpleaños es el 3 de mayo", "remember", {"fact": "mi cumpleaños es el 3 de mayo"}),
    ("es", "me llamo Paco", "remember", {"fact": "me llamo Paco"}),
    (
        "es",
        "mi proveedor de telas se llama ramiro",
        "remember",
        {"fact": "mi proveedor de telas se llama ramiro"},
    ),
    ("pt", "meu nome é Dudu", "remember", {"fact": "meu nome é Dudu"}),
    ("pt", "minha vó se chama Lia", "remember", {"fact": "minha vó se chama Lia"}),
    (
        "en",
        "my daughter's name is Sofía and her birthday is June 4",
        "remember",
        {"fact": "my daughter's name is Sofía and her birthday is June 4"},
    ),
    ("en", "my birthday is May 3", "remember", {"fact": "my birthday is May 3"}),
    ("es", "cuando es mi cumple", "recall", {"about": "cumple"}),
    ("pt", "qual meu nome?", "recall", {"about": "nome"}),
    ("en", "when is Sofía's birthday?", "recall", {"about": "Sofía"}),
    ("es", "cuanto le debo a don chema?", "search_notes", {"query": "don chema"}),
    ("pt", "qto eu devo pro juninho?", "search_notes", {"query": "juninho"}),
    ("en", "what's grandma's wifi password?", "search_notes", {"query": "grandma's wifi"}),
    (
        "es",
        "me puedes recordar cada lunes a las 9 de la mañana abrir la caja",
        "set_reminder",
        {"text": "abrir la caja", "when": "cada lunes a las 9 de la mañana"},
    ),
    (
        "pt",
        "e me lembra tbm daqui 20 min de tirar o arroz",
        "set_reminder",
        {"text": "de tirar o arroz", "when": "daqui 20 min"},
    ),
    ("en", "start a project called Quinceañera", "create_project", {"name": "Quinceañera"}),
    ("es", "empieza un proyecto llamado Boda", "create_project", {"name": "Boda"}),
    ("pt", "começa um projeto chamado TCC", "create_project", {"name": "TCC"}),
    ("pt", "quais as tarefas do tcc?", "list_tasks", {"project": "tcc?"}),
    ("en", "what's left to do on the quinceañera?", "list_tasks", {"project": "the quinceañera?"}),
    ("es", "qué falta por hacer en la boda", "list_tasks", {"project": "la boda"}),
    ("pt", "terminei a introdução", "update_task", {"task": "a introdução", "status": "done"}),
    ("en", "cross off the eggs", "check_off", {"items": ["the eggs"]}),
    ("es", "ya terminé de pintar", "update_task", {"task": "pintar", "status": "done"}),
    ("pt", "falta quanto pro natal", "days_between", {"end": "natal"}),
    ("es", "cuantos años tengo si naci el 3 de mayo de 1980", "days_between", {"start": "3 de mayo de 1980"}),
    ("en", "how old is someone born on March 12 2015", "days_between", {"start": "March 12 2015"}),
    ("es", "recordá que soy vegetariano", "remember", {"fact": "soy vegetariano"}),
    ("es", "Recuerda que mi hija se llama Ana.", "remember", {"fact": "mi hija se llama Ana."}),
    ("es", "acordate q vivo en Rosario", "remember", {"fact": "vivo en Rosario"}),
    ("es", "no te olvides que soy alérgico al maní", "remember", {"fact": "soy alérgico al maní"}),
    ("es", "no olvides mi dirección: Calle 5", "remember", {"fact": "mi dirección: Calle 5"}),
    (
        "es",
        "ya no vivo en Rosario, ahora en Córdoba",
        "remember",
        {"replaces": "en Rosario,", "fact": "en Córdoba"},
    ),
    ("es", "¿qué sabés de mí?", "recall", {}),
    ("es", "que sabes de mi", "recall", {}),
    ("es", "me olvidé de mi dirección", "recall", {"about": "mi dirección"}),
    ("es", "olvida lo de mi dirección", "forget", {"what": "mi dirección"}),
    ("es", "olvidá que soy vegetariano", "forget", {"what": "soy vegetariano"}),
    ("es", "olvidá todo lo que sabés de mí", "forget_everything", {}),
    ("pt", "lembra que minha filha se chama Ana", "remember", {"fact": "minha filha se chama Ana"}),
    ("pt", "não esquece que sou vegetariana", "remember", {"fact": "sou vegetariana"}),
    (
        "pt",
        "não moro mais em Recife, agora em Natal",
        "remember",
        {"replaces": "em Recife,", "fact": "em Natal"},
    ),
    ("pt", "o que vc sabe sobre mim?", "recall", {}),
    ("pt", "esquece meu endereço", "forget", {"what": "meu endereço"}),
    ("en", "remember that I'm vegetarian", "remember", {"fact": "I'm vegetarian"}),
    ("en", "don't forget that my daughter is called Ana", "remember", {"fact": "my daughter is called Ana"}),
    (
        "en",
        "I no longer live in Leeds, now in York",
        "remember",
        {"replaces": "in Leeds,", "fact": "in York"},
    ),
    ("en", "what do you know about me?", "recall", {}),
    ("en", "I forgot my address", "recall", {"about": "my address"}),
    ("en", "forget my address", "forget", {"what": "my address"}),
    ("es", "no te olvides de que vivo en Mitre 5", "remember", {"fact": "vivo en Mitre 5"}),
    ("pt", "não esquece meu endereço", "remember", {"fact": "meu endereço"}),
    ("en", "dont forget my address", "remember", {"fact": "my address"}),
    ("es", "anota comprar pan", "save_note", {"text": "comprar pan"}),
    ("es", "anotá que Ana vive en Lima", "save_note", {"text": "Ana vive en Lima"}),
    (
        "es",
        "cambia la nota 2 por comprar pan integral",
        "edit_note",
        {"note": "2", "text": "comprar pan integral"},
    ),
    ("es", "agregá leche a la nota 3", "edit_note", {"text": "leche", "note": "3", "append": True}),
    ("es", "deshacer", "undo_note", {}),
    ("es", "devolveme la nota que borré", "undo_note", {}),
    ("pt", "desfaz", "undo_note", {}),
    ("pt", "adiciona leite na nota 3", "edit_note", {"text": "leite", "note": "3", "append": True}),
    ("en", "undo", "undo_note", {}),
    ("en", "edit note 2: buy bread", "edit_note", {"note": "2", "text": "buy bread"}),
    ("en", "bring back the note I deleted", "undo_note", {}),
    ("es", "crea el proyecto Casa nueva", "create_project", {"name": "Casa nueva"}),
    ("es", "mis proyectos", "list_projects", {}),
    (
        "es",
        "agrega comprar pintura al proyecto Casa",
        "add_task",
        {"task": "comprar pintura", "project": "Casa"},
    ),
    (
        "es",
        "agregá pintar el baño al proyecto Casa para el viernes",
        "add_task",
        {"task": "pintar el baño", "project": "Casa", "due": "el viernes"},
    ),
    ("es", "agrega la tarea llamar al gasista", "add_task", {"task": "llamar al gasista"}),
    (
        "es",
        "anotá en el proyecto Casa que el pintor es Luis",
        "add_project_note",
        {"project": "Casa", "note": "el pintor es Luis"},
    ),
    ("es", "agrega la tarea pagar la luz para mañana", "add_task", {"task": "pagar la luz", "due": "mañana"}),
    (
        "es",
        "agrega al proyecto Casa: llamar al pintor",
        "add_task",
        {"project": "Casa", "task": "llamar al pintor"},
    ),
    ("pt", "adiciona a tarefa ligar para Ana", "add_task", {"task": "ligar para Ana"}),
    ("es", "completa la tarea 3", "update_task", {"task": "3", "status": "done"}),
    ("es", "marcá comprar pintura como hecha", "update_task", {"task": "comprar pintura", "status": "done"}),
    ("es", "reabre la tarea 3", "update_task", {"task": "3", "status": "open"}),
    ("es", "borra la tarea 3", "update_task", {"task": "3", "status": "deleted"}),
    ("es", "borra la nota 3", "delete_note", {"note": "3"}),
    ("es", "borra el proyecto Casa", "delete_project", {"project": "Casa"}),
    ("es", "¿cómo va el proyecto Casa?", "show_project", {"project": "Casa?"}),
    ("es", "qué tareas tengo", "list_tasks", {}),
    ("es", "archiva el proyecto Casa", "update_project", {"project": "Casa", "status": "archived"}),
    ("es", "renombra el proyecto Casa a Depto", "update_project", {"project": "Casa", "name": "Depto"}),
    ("pt", "cria o projeto Viagem", "create_project", {"name": "Viagem"}),
    (
        "pt",
        "adiciona comprar malas ao projeto Viagem",
        "add_task",
        {"task": "comprar malas", "project": "Viagem"},
    ),
    ("pt", "como está o projeto Viagem?", "show_project", {"project": "Viagem?"}),
    ("pt", "marca comprar malas como feita", "update_task", {"task": "comprar malas", "status": "done"}),
    ("en", "create a project called House", "create_project", {"name": "House"}),
    ("en", "add buy paint to the project House", "add_task", {"task": "buy paint", "project": "House"}),
    ("en", "mark buy paint as done", "update_task", {"task": "buy paint", "status": "done"}),
    ("en", "what are my tasks?", "list_tasks", {}),
    (
        "es",
        "agregá al proyecto tesis leer papers",
        "add_task",
        {"task": "tesis leer papers", "project": "named first"},
    ),
    (
        "pt",
        "adiciona no projeto casa comprar tinta",
        "add_task",
        {"task": "casa comprar tinta", "project": "named first"},
    ),
    (
        "en",
        "add to the project garden buy soil",
        "add_task",
        {"task": "garden buy soil", "project": "named first"},
    ),
    (
        "es",
        "crea una tarea llamar a don pepe para el jueves",
        "add_task",
        {"task": "llamar a don pepe", "due": "el jueves"},
    ),
    (
        "pt",
        "cria uma tarefa pagar o aluguel pro dia 20/12",
        "add_task",
        {"task": "pagar o aluguel", "due": "dia 20/12"},
    ),
    ("en", "add a task buy soil for tomorrow", "add_task", {"task": "buy soil", "due": "tomorrow"}),
    ("en", "add a task buy soil for the garden", "add_task", {"task": "buy soil for the garden"}),
    (
        "es",
        "crea una tarea comprar tierra para las macetas",
        "add_task",
        {"task": "comprar tierra para las macetas"},
    ),
    ("es", "ver la nota 1", "search_notes", {"query": "1"}),
    ("en", "show me note 1", "search_notes", {"query": "1"}),
]


@pytest.mark.parametrize(("language", "said", "tool", "arguments"), SAID, ids=[one[1] for one in SAID])
async def test_words_lead_to_the_right_tool(
    abilities: ToolCatalog, language: str, said: str, tool: str, arguments: dict[str, Any]
) -> None:
    assert await calls(abilities, language, said) == [(tool, arguments)]


TO_DO = [
    ("es", "recordame mañana llamar a Ana"),
    ("es", "recuérdame que mañana tengo dentista"),
    ("es", "acordate de avisarme a las 8 que llame a Ana"),
    ("pt", "me lembra amanhã de ligar para Ana"),
    ("pt", "lembra de comprar leite"),
    ("pt", "me lembre que tenho dentista às 9"),
    ("en", "remind me tomorrow to call Ana"),
    ("en", "remind me that I have the dentist at 9"),
]


@pytest.mark.parametrize(("language", "said"), TO_DO, ids=[one[1] for one in TO_DO])
async def test_what_is_to_be_done_at_a_time_is_no_fact(
    abilities: ToolCatalog, language: str, said: str
) -> None:
    called = await calls(abilities, language, said)
    assert {name for name, _ in called} <= {"set_reminder"}
