"""Files in the chat, with the built-in model and the words that people write."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.people import Person
from app.tools import ToolContext
from app.tools.context import Services
from app.tools.files import Files
from tests.mailer import asked, press, questions, told
from tests.skills.tools import finished, functions
from tests.tools import papers
from tests.world import Graph, Server, wait_for, world

TOOLS = functions("files")


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph]]:
    folder = tmp_path_factory.mktemp("files")
    for server, graph in world(folder, crowd=8, ALLOW_DELETE="true"):
        yield server.start(), graph


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph]]:
    """A server that describes what it would do, and may delete nothing."""
    folder = tmp_path_factory.mktemp("rehearsal")
    for server, graph in world(folder, DRY_RUN="true"):
        yield server.start(), graph


def home(server: Server, person: str) -> Path:
    """The folder of a member, made where it is not there yet."""
    phone = f"1212555{int(person[1:]):04}"
    (row,) = wait_for(
        lambda: server.rows("SELECT person_id FROM aliases WHERE value LIKE ?", f"%{phone}"), "the person"
    )
    folder = server.folder / "workspace" / "people" / row["person_id"]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


SPOKEN = {
    "p1": (
        *("guardá esto en compras.txt: leche y pan", "Sí", "✓ Guardado en compras.txt"),
        *("agregá huevos a compras.txt", "dale", "✓ Agregado a compras.txt"),
        *("qué dice compras.txt?", "leche y pan\nhuevos\n"),
    ),
    "p2": (
        *("salva isso em compras.txt: leite e pão", "Sim", "✓ Salvo em compras.txt"),
        *("adiciona ovos em compras.txt", "sim", "✓ Adicionado a compras.txt"),
        *("o que diz compras.txt?", "leite e pão\novos\n"),
    ),
}


@pytest.mark.parametrize("person", SPOKEN)
def test_a_file_is_written_after_a_yes_and_read_again(chat, person: str) -> None:
    server, graph = chat
    save, button, saved, add, yes, added, read, content = SPOKEN[person]
    graph.say(person, save)
    question = asked(graph, person)
    assert "“compras.txt”" in question["text"]
    assert not (home(server, person) / "compras.txt").exists()
    press(graph, person, question, button)
    told(graph, person, saved)
    graph.say(person, add)
    asked(graph, person, 2)
    graph.say(person, yes)
    told(graph, person, added)
    assert (home(server, person) / "compras.txt").read_text() == content
    graph.say(person, read)
    assert content.strip() in told(graph, person, "📄")
    assert len(questions(graph, person)) == 2


def test_what_is_overwritten_is_kept_beside_it(chat) -> None:
    server, graph = chat
    for text in ("uno", "dos"):
        count = len(questions(graph, "p6"))
        graph.say("p6", f"guardá esto en lista.txt: {text}")
        press(graph, "p6", asked(graph, "p6", count + 1), "Sí")
        told(graph, "p6", "lista.txt")
    told(graph, "p6", "✓ lista.txt reemplazado. Lo de antes quedó en lista.txt.bak")
    assert (home(server, "p6") / "lista.txt").read_text() == "dos\n"
    assert (home(server, "p6") / "lista.txt.bak").read_text() == "uno\n"


def test_after_a_no_nothing_is_written(chat) -> None:
    server, graph = chat
    graph.say("p4", "guardá esto en secreto.txt: uno")
    asked(graph, "p4")
    graph.say("p4", "no")
    wait_for(lambda: len(graph.texts("p4")) >= 2, "an answer to the no")
    assert list(home(server, "p4").iterdir()) == []


def test_documents_are_read_and_nobody_reads_those_of_another(chat) -> None:
    server, graph = chat
    graph.say("p5", "hola")
    wait_for(lambda: graph.texts("p5"), "a greeting")
    (home(server, "p5") / "contrato.pdf").write_bytes(papers.pdf("El alquiler es de 500 pesos"))
    (home(server, "p5") / "gastos.xlsx").write_bytes(papers.excel(Mayo=[["pan", 12.5]]))
    (home(server, "p5") / "bomba.docx").write_bytes(papers.HOSTILE["unpacks.docx"]())
    graph.say("p5", "qué dice contrato.pdf")
    told(graph, "p5", "El alquiler es de 500 pesos")
    graph.say("p5", "lee el archivo gastos.xlsx")
    told(graph, "p5", "12.5")
    graph.say("p5", "lee el archivo bomba.docx")
    told(graph, "p5", "No puedo leer «bomba.docx»")
    graph.say("p5", "qué archivos tengo?")
    assert "contrato.pdf" in told(graph, "p5", "Tus archivos")
    graph.say("p6", "qué dice contrato.pdf")
    told(graph, "p6", "No encuentro el archivo «contrato.pdf»")
    graph.say("p6", f"lee el archivo ../{home(server, 'p5').name}/contrato.pdf")
    told(graph, "p6", "no está entre tus archivos")


def test_a_file_is_deleted_after_a_yes(chat) -> None:
    server, graph = chat
    graph.say("p7", "hola")
    wait_for(lambda: graph.texts("p7"), "a greeting")
    old = home(server, "p7") / "viejo.txt"
    old.write_text("x")
    graph.say("p7", "borra el archivo viejo.txt")
    question = asked(graph, "p7")
    assert old.exists()
    press(graph, "p7", question, "Sí")
    told(graph, "p7", "✓ Archivo borrado: viejo.txt")
    assert not old.exists()


def test_a_dry_run_writes_nothing_and_still_refuses_other_places(rehearsal) -> None:
    server, graph = rehearsal
    graph.say("p1", "guarda en compras.txt: leche")
    told(graph, "p1", "[DRY-RUN] write_file")
    graph.say("p1", "guarda en ../compras.txt: leche")
    told(graph, "p1", "no está entre tus archivos")
    graph.say("p1", "borra el archivo compras.txt")
    told(graph, "p1", "no se pueden borrar")
    assert not questions(graph, "p1")
    assert not (server.folder / "workspace").exists()


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    person = Person("p1", "simulator", "Ana", language="es")
    files = Files(tmp_path / "workspace", page=100, lines=True)
    (tmp_path / "workspace" / "people" / "p1").mkdir(parents=True)
    return ToolContext(person=person, services=Services(files=files))


def put(context: ToolContext, **files: str) -> None:
    service: Any = context.services.files
    for name, text in files.items():
        assert service.write_file(path=name.replace("_", "."), content=text, context=context).ok


def test_a_name_is_found_without_its_ending_folder_or_accents(context: ToolContext) -> None:
    put(context, **{"recetas/Pan de maíz_md": "harina", "uno_txt": "1", "otro/uno_md": "2"})
    assert "harina" in TOOLS["read_file"]("pan de maiz", context=context)["summary"]
    error = TOOLS["read_file"]("uno", context=context)["error"]
    assert error["code"] == "NOT_FOUND"
    assert "uno.txt" in error["hint"]
    assert "otro/uno.md" in error["hint"]
    assert "uno.txt" in TOOLS["read_file"]("uni.txt", context=context)["error"]["hint"]


def test_names_of_files_that_a_failure_lists_count_as_text_of_others(context: ToolContext) -> None:
    context.services.files.allow_delete = True
    put(context, uno_txt="1")
    assert TOOLS["delete_file"]("uni.txt", context=context)["meta"] == {"outside": True}
    assert "meta" not in TOOLS["delete_file"]("nothing alike", context=context)


def test_a_long_text_says_that_it_goes_on(context: ToolContext) -> None:
    put(context, largo_txt="\n".join(["renglón"] * 40), vacio_txt="")
    first = TOOLS["read_file"]("largo.txt", context=context)
    assert first["summary"].startswith("📄 largo.txt (página 1 de")
    assert "Sigue en la página 2." in first["summary"]
    last = TOOLS["read_file"]("largo.txt", page=first["pages"], context=context)
    assert "Sigue" not in last["summary"]
    assert TOOLS["read_file"]("largo.txt", page=99, context=context)["error"]["code"] == "NO_SUCH_PAGE"
    assert TOOLS["read_file"]("vacio.txt", context=context)["summary"] == "vacio.txt está vacío."


@pytest.mark.parametrize(
    ("tool", "args", "code"),
    [
        ("read_file", {"path": "../x"}, "BAD_REQUEST"),
        ("read_file", {"path": "a\0b"}, "BAD_REQUEST"),
        ("read_file", {"path": "."}, "NOT_A_FILE"),
        ("list_files", {"path": "uno.txt"}, "NOT_A_FOLDER"),
        ("write_file", {"path": "x.txt", "content": "x" * 2_000_000}, "TOO_LARGE"),
        ("delete_file", {"path": "uno.txt"}, "DELETE_NOT_ALLOWED"),
    ],
)
def test_what_cannot_be_done_is_told_in_the_persons_language(
    context: ToolContext, tool: str, args: dict[str, Any], code: str
) -> None:
    put(context, uno_txt="1")
    error = finished(TOOLS[tool](**args, context=context))["error"]
    assert error["code"] == code
    assert error["message"].endswith(".")
    assert not error["message"].isascii() or " se " in error["message"] or " es " in error["message"]


def test_without_the_service_it_says_so() -> None:
    for tool, args in (("read_file", {"path": "x"}), ("list_files", {}), ("delete_file", {"path": "x"})):
        assert finished(TOOLS[tool](**args))["error"]["code"] == "NO_SERVICE"
    nobody = SimpleNamespace(person=None, services={})
    assert TOOLS["write_file"]("x", "y", context=nobody)["error"]["code"] == "NO_SERVICE"
