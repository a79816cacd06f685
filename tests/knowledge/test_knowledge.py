"""What a business tells its customers: found by other words, changed at the next message, never made up."""

import json
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.memory.knowledge import Knowledge
from app.search.words import stem, words
from app.tools.documents import Documents
from app.turns.answer_check import unsupported
from tests.knowledge.business import UNKNOWN, asked_prices, questions, write
from tests.world import wait_for

PEOPLE = [
    {"id": "owner", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "ana", "name": "Ana", "phone": "5215550100001", "user_id": "MX.11"},
]
BUSINESS = {"ACCESS": "everyone", "OWNER_PHONE_NUMBERS": "12125550000"}


def test_questions_in_other_words_find_their_passage(tmp_path: Path) -> None:
    write(tmp_path)
    knowledge = Knowledge(tmp_path, Documents())
    for language in ("es", "pt"):
        asked = [one for *_, one in questions(language)]
        shared = [
            len(said & expected) / len(said)
            for said, expected in (
                ({*map(stem, words(one.words))}, {*map(stem, words(one.expected))}) for one in asked
            )
        ]
        assert sum(share > 0.5 for share in shared) <= 1
        asked += asked_prices(language)
        hits = [(one.expected, hit.passage) for one in asked for hit in knowledge.search(one.words, 5)]
        found = {expected for expected, hit in hits if expected == hit.title or expected in hit.text}
        assert len(found) / len({one.expected for one in asked}) >= 0.92
        answered = [any(hit.is_enough for hit in knowledge.search(one.words)) for one in asked]
        assert sum(answered) / len(answered) >= 0.97
    unknown = [question for question in UNKNOWN if any(hit.is_enough for hit in knowledge.search(question))]
    assert len(unknown) <= len(UNKNOWN) * 0.15


@pytest.mark.slow
def test_a_customer_is_told_what_stands_in_the_folder_and_what_an_owner_publishes_from_the_chat(
    make_world: Any,
) -> None:
    server, graph = make_world(crowd=0, graph={"people": PEOPLE}, **BUSINESS)
    graph.ask("owner", "hola")
    assert "No entendí" in graph.ask("ana", "¿cuánto cuesta la limpieza?")
    graph.reply("owner", 2)  # the alert of a first contact
    folder = server.folder / "knowledge"
    folder.mkdir()
    (folder / "precios.csv").write_text("Servicio;Precio\nLimpieza dental;$ 850\nBlanqueamiento;$ 2,400\n")
    assert graph.ask("ana", "¿cuánto cuesta la limpieza?") == "Servicio: Limpieza dental; Precio: $ 850"
    (folder / "precios.csv").write_text("Servicio;Precio\nLimpieza dental;$ 900\n")
    (folder / "horarios.md").write_text("# Horario\n\nAbrimos de lunes a viernes de 9:00 a 18:00.\n")
    assert graph.ask("ana", "¿qué precio tiene la limpieza?").endswith("Precio: $ 900")
    assert graph.ask("ana", "¿a qué hora abren?") == "*Horario*\nAbrimos de lunes a viernes de 9:00 a 18:00."
    assert "no lo sé" in graph.ask("ana", "¿cuánto cuesta una guitarra?")
    (folder / "roto.pdf").write_bytes(b"%PDF-1.4 nothing")
    listed = json.loads(server.recado("knowledge", "list", "--json"))
    passages = {one["name"]: one["passages"] for one in listed}
    assert passages == {"horarios.md": 1, "precios.csv": 1, "roto.pdf": 0}
    assert "roto.pdf" in server.recado("knowledge", "check", fails=True)
    assert "Precio: $ 900" in server.recado("knowledge", "ask", "precio de la limpieza")
    assert "Nothing there answers this" in server.recado("knowledge", "ask", "¿venden pizza?")
    (folder / "precios.csv").unlink()
    prices = server.folder / "workspace" / "precios.csv"
    prices.parent.mkdir(parents=True, exist_ok=True)
    prices.write_text("Producto;Precio\nCepillo;$ 45\n")
    graph.ask("owner", "publica el archivo precios.csv para los clientes")
    assert "✓ precios.csv es ahora parte de lo que digo a los clientes" in graph.ask("owner", "sí")
    assert graph.ask("ana", "¿cuánto cuesta el cepillo?").endswith("Precio: $ 45")
    graph.ask("owner", "retira precios.csv de lo publicado")
    assert "ya no es parte" in graph.ask("owner", "sí")
    wait_for(lambda: not (folder / "precios.csv").exists(), "the file is gone")
    graph.ask("ana", "publica el archivo precios.csv para los clientes")
    assert not (folder / "precios.csv").exists()


def test_what_a_model_makes_up_is_caught_and_what_it_was_given_is_not() -> None:
    examples = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text("utf-8"))
    caught = [bool(unsupported(said, [one["given"]])) for one in examples for said in one["invented"]]
    wrongly = [bool(unsupported(said, [one["given"]])) for one in examples for said in one["faithful"]]
    assert len(caught) + len(wrongly) >= 150
    assert sum(caught) / len(caught) >= 0.95
    assert sum(wrongly) / len(wrongly) <= 0.03
    assert unsupported("Cuesta $ 700.", ["9" * 5000])  # more digits than Python turns into a number


def test_a_guest_is_told_no_price_that_a_model_made_up(make_world: Any, model: Any) -> None:
    said = {"first": "Cuesta $ 700. Abrimos los sábados.", "again": "Eso no lo sé. ¿Aviso a una persona?"}

    def play(body: dict[str, Any]) -> str:
        last = str(body["messages"][-1]["content"])
        if "A check of your answer" in last:
            return said["again"]
        return said["first"]

    played = model(play)
    server, graph = make_world(model=played, crowd=0, graph={"people": PEOPLE}, **BUSINESS)
    assert graph.ask("ana", "¿cuánto cuesta la limpieza?") == "Eso no lo sé. ¿Aviso a una persona?"
    assert "$ 700" in played.main_calls[-1]["messages"][-1]["content"]
    assert "tools" not in played.main_calls[-1]
    said["again"] = "Cuesta $ 650. Abrimos los sábados."
    assert graph.ask("ana", "¿y el blanqueamiento?") == "Abrimos los sábados."
    said["first"] = f"Cuesta $ **{date.today().year}**. Abrimos los sábados."  # a number of our own line
    assert graph.ask("ana", "¿y una corona?") == "Abrimos los sábados."
    said["first"] = "Cuesta $ 700. Abrimos los sábados."
    calls = len(played.main_calls)
    told = graph.ask("ana", "tengo $ 700, ¿alcanza?")  # the person said it
    assert told == "Cuesta $ 700. Abrimos los sábados."
    assert len(played.main_calls) == calls + 1
    # an owner's own assistant is not checked
    assert graph.ask("owner", "¿cuánto cuesta?").startswith("Cuesta $ 700")
    said["first"], said["again"] = "“Abrimos 9 a 18. " * 10_000, "ok"
    graph.say("ana", "¿a qué hora abren?")
    longest, told, until = 0.0, len(graph.sends("ana")), time.monotonic() + 30
    while len(graph.sends("ana")) == told:  # nobody waits while a long answer is checked
        assert time.monotonic() < until, "no answer came"
        began = time.monotonic()
        assert server.healthy()
        longest = max(longest, time.monotonic() - began)
        time.sleep(0.01)
    assert graph.reply("ana", 5) == "ok"
    assert longest < 1
