"""Files in the chat, with the built-in model and the words that people write."""

from pathlib import Path
from typing import Any

import pytest

from app.people import Person
from app.tools import ToolContext
from app.tools.files import Files
from app.tools.tool import Services
from tests.mailer import asked, press, told
from tests.skills.tools import finished, functions
from tests.tools import papers
from tests.world import Server, Town, wait_for

TOOLS = functions("files")


@pytest.fixture
def person(offline_town: Town) -> str:
    return offline_town.newcomer()


def home(server: Server, person: str) -> Path:
    """The folder of a member, made where it is not there yet."""
    phone = f"1212555{int(person[1:]):04}"
    (row,) = wait_for(
        lambda: server.rows("SELECT person_id FROM aliases WHERE value LIKE ?", f"%{phone}"), "the person"
    )
    folder = server.folder / "workspace" / "people" / row["person_id"]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_file_is_written_after_a_yes_read_again_and_kept_when_it_is_overwritten(
    offline_town: Town, person: str
) -> None:
    server, graph = offline_town.server, offline_town.graph
    graph.say(person, "guardá esto en compras.txt: leche y pan")
    question = asked(graph, person)
    assert "“compras.txt”" in question["text"]
    file = home(server, person) / "compras.txt"
    assert not file.exists()
    press(graph, person, question, "Sí")
    told(graph, person, "✓ Guardado en compras.txt")
    graph.say(person, "agregá huevos a compras.txt")
    asked(graph, person, 2)
    graph.say(person, "dale")
    told(graph, person, "✓ Agregado a compras.txt")
    assert file.read_text() == "leche y pan\nhuevos\n"
    graph.say(person, "qué dice compras.txt?")
    assert "leche y pan\nhuevos" in told(graph, person, "📄")
    graph.say(person, "guardá esto en compras.txt: dos panes")
    press(graph, person, asked(graph, person, 3), "Sí")
    told(graph, person, "✓ compras.txt reemplazado. Lo de antes quedó en compras.txt.bak")
    assert file.with_name("compras.txt.bak").read_text() == "leche y pan\nhuevos\n"


@pytest.mark.slow
def test_documents_are_read_and_nobody_reads_those_of_another(offline_town: Town, person: str) -> None:
    server, graph, other = offline_town.server, offline_town.graph, offline_town.newcomer()
    graph.ask(person, "hola")
    (home(server, person) / "contrato.pdf").write_bytes(papers.pdf("El alquiler es de 500 pesos"))
    (home(server, person) / "gastos.xlsx").write_bytes(papers.excel(Mayo=[["pan", 12.5]]))
    (home(server, person) / "roto.docx").write_bytes(papers.HOSTILE["cut.docx"]())
    graph.say(person, "qué dice contrato.pdf")
    told(graph, person, "El alquiler es de 500 pesos")
    graph.say(person, "lee el archivo gastos.xlsx")
    told(graph, person, "12.5")
    graph.say(person, "lee el archivo roto.docx")
    told(graph, person, "No puedo leer «roto.docx»")
    graph.say(person, "qué archivos tengo?")
    assert "contrato.pdf" in told(graph, person, "Tus archivos")
    graph.say(other, "qué dice contrato.pdf")
    told(graph, other, "No encuentro el archivo «contrato.pdf»")
    graph.say(other, f"lee el archivo ../{home(server, person).name}/contrato.pdf")
    told(graph, other, "no está entre tus archivos")


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    person = Person("p1", "simulator", "Ana", language="es")
    files = Files(tmp_path / "workspace", page=100, in_a_chat=True)
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
    context.services.files.allow_delete = True  # names of files that a failure lists are text of others
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


def test_what_cannot_be_done_is_told_in_the_persons_language(context: ToolContext) -> None:
    put(context, uno_txt="1")
    for tool, args, code in [
        ("read_file", {"path": "../x"}, "BAD_REQUEST"),
        ("read_file", {"path": "a\0b"}, "BAD_REQUEST"),
        ("read_file", {"path": "."}, "NOT_A_FILE"),
        ("list_files", {"path": "uno.txt"}, "NOT_A_FOLDER"),
        ("write_file", {"path": "x.txt", "content": "x" * 2_000_000}, "TOO_LARGE"),
        ("delete_file", {"path": "uno.txt"}, "DELETE_NOT_ALLOWED"),
    ]:
        error = finished(TOOLS[tool](**args, context=context))["error"]
        assert error["code"] == code
        assert error["message"].endswith(".")
        assert not error["message"].isascii() or " se " in error["message"] or " es " in error["message"]
