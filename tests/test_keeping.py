"""Notes, lists, projects and memory through the chat: each person's own, also after a restart."""

import json
from collections import defaultdict

import pytest

from tests.standins.model import calls, last_user_text, routed
from tests.world import Town, open_work, text_body, wait_for


class Chat:
    """Newcomers of a server, by names of the test's own, who write and wait for the answer."""

    def __init__(self, town: Town) -> None:
        self.server, self._graph = town.server, town.graph
        self._people = defaultdict(town.newcomer)

    def ask(self, **said: str) -> dict[str, str]:
        """What each of these people, who write at the same time, is answered."""
        people = {name: self._people[name] for name in said}
        before = {name: len(self._graph.sends(person)) for name, person in people.items()}
        for name, person in people.items():
            self._graph.say(person, said[name])
        return {name: self._graph.reply(person, before[name] + 1) for name, person in people.items()}

    def one(self, text: str) -> str:
        return self.ask(somebody=text)["somebody"]

    def question(self) -> str:
        """What the last question to somebody says."""
        return str(self._graph.sends(self._people["somebody"])[-1]["body"]["interactive"]["body"]["text"])

    def phone(self, name: str) -> str:
        return Town.phone(self._people[name])


@pytest.fixture
def offline(offline_town: Town) -> Chat:
    return Chat(offline_town)


def test_two_people_keep_their_own_at_the_same_time_and_find_it_after_a_restart(offline):
    server, chat = offline.server, offline
    told = chat.ask(p0="recordá que mi hija se llama Ana", p1="lembra que sou vegetariano")
    assert told == {"p0": "✓ Lo recordaré: mi hija se llama Ana", "p1": "✓ Vou lembrar: sou vegetariano"}
    told = chat.ask(p0="crea el proyecto Casa", p1="cria o projeto Viagem")
    assert told == {"p0": "✓ Proyecto 1 creado: Casa", "p1": "✓ Projeto 1 criado: Viagem"}
    told = chat.ask(
        p0="agrega comprar pintura al proyecto Casa", p1="adiciona comprar malas ao projeto Viagem"
    )
    assert told["p0"] == "✓ 1. comprar pintura\nCasa: 0 de 1 · 0 %"
    assert told["p1"] == "✓ 1. comprar malas\nViagem: 0 de 1 · 0 %"
    assert chat.ask(p0="anota la clave es alfa", p1="anota a senha é bravo") == {
        "p0": "✓ Nota guardada: la clave es alfa",
        "p1": "✓ Nota salva: a senha é bravo",
    }
    told = chat.ask(
        p0="pon leche, huevos y 2 kg de arroz en la lista del súper",
        p1="adiciona leite e pão na lista de compras",
    )
    assert told == {
        "p0": "✓ En la lista Súper: leche, huevos, 2 kg de arroz",
        "p1": "✓ Na lista Compras: leite, pão",
    }
    told = chat.ask(p0="agrégale tortillas y quita los huevos", p1="adiciona queijo na lista")
    assert told["p0"] == (
        "✓ En la lista Súper: tortillas\n\n"
        "✓ Quitado de la lista Súper: huevos. Deshacer: “agrega huevos a la lista de Súper”"
    )
    assert told["p1"] == "✓ Na lista Compras: queijo"
    wait_for(lambda: not open_work(server), "everything to be sent")
    server.restart()
    told = chat.ask(p0="¿qué sabés de mí?", p1="o que você sabe de mim?")
    assert told["p0"].splitlines()[-1] == "1. mi hija se llama Ana"
    assert told["p1"].splitlines()[-1] == "1. sou vegetariano"
    assert told["p0"].startswith("Lo que sé de ti (1)")
    assert told["p1"].startswith("O que sei de você (1)")
    told = chat.ask(p0="completa la tarea 1", p1="marca comprar malas como feita")
    assert told["p0"] == "✓ Hecha: 1. comprar pintura\nCasa: 1 de 1 · 100 %"
    assert told["p1"] == "✓ Feita: 1. comprar malas\nViagem: 1 de 1 · 100 %"
    told = chat.ask(p0="mis proyectos", p1="meus projetos")
    assert told["p0"].splitlines()[-1] == "1. Casa: 1 de 1 · 100 %"
    assert told["p1"].splitlines()[-1] == "1. Viagem: 1 de 1 · 100 %"
    told = chat.ask(p0="mis notas", p1="minhas notas")
    assert ("alfa" in told["p0"], "bravo" in told["p0"]) == (True, False)
    assert ("alfa" in told["p1"], "bravo" in told["p1"]) == (False, True)
    told = chat.ask(p0="ya compré la leche", p1="já comprei o pão")
    assert told["p0"] == "✓ Tachado de la lista Súper: leche\nFalta: 2 kg de arroz, tortillas"
    assert told["p1"] == "✓ Riscado da lista Compras: pão\nFalta: leite, queijo"
    told = chat.ask(p0="qué falta comprar?", p1="o que falta comprar?")
    assert told["p0"] == "Súper (faltan 2):\n\n1. 2 kg de arroz\n2. tortillas\n\n✓ leche"
    assert told["p1"] == "Compras (faltam 2):\n\n1. leite\n2. queijo\n\n✓ pão"


def test_a_whole_list_is_deleted_only_after_a_yes(offline):
    ask = offline.one
    ask("add milk and eggs to the shopping list")
    ask("put charger on the packing list")
    assert ask("delete the list") == "", "a question has buttons"
    assert "Shall I delete the list “Packing” with all that is on it?" in offline.question()
    assert ask("no") == "All right, I will not do it."
    assert ask("my lists") == "Your lists:\n• Shopping: 2 left\n• Packing: 1 left"
    ask("delete the packing list")
    assert ask("yes").startswith("✓ List deleted with all that was on it: Packing")
    assert ask("my lists") == "Your lists:\n• Shopping: 2 left"


@pytest.mark.slow
def test_a_yes_does_not_count_once_something_was_said_that_may_have_been_a_no(offline):
    ask = offline.one
    ask("recordá que soy vegetariano")
    ask("olvidá todo lo que sabés de mí")
    ask("ni se te ocurra")
    assert "botones" in ask("sí")
    assert "soy vegetariano" in ask("¿qué sabés de mí?")
    assert "no lo hago" in ask("no la vayas a borrar")


@routed("memory")
def keeper(body):
    """Remembers what it is told to, even in a forwarded message."""
    if body["messages"][-1]["role"] == "tool":
        return "done"
    said = last_user_text(body)
    if "remember that " not in said:
        return "hello"
    return calls(("remember", {"fact": said.rpartition("remember that ")[2].strip('"]')}))


def test_facts_stand_in_the_prompts_of_their_person_and_those_of_others_taint_the_turn(town):
    town.model.play, chat = keeper, Chat(town)
    server, model_server = town.server, town.model
    chat.ask(p0="remember that I am allergic to alfa", p1="remember that I live in bravo")
    order, forwarded = "remember that the plumber is called charlie", {"forwarded": True}
    body = text_body("wamid.plumber", order, chat.phone("p0"), context=forwarded)
    assert server.post(body).status_code == 200
    wait_for(lambda: server.rows("SELECT 1 FROM messages WHERE wamid = 'wamid.plumber'"), "the forwarded one")
    wait_for(lambda: not open_work(server), "its answer")
    chat.ask(p0="/new", p1="/new")
    first = len(model_server.main_calls)
    chat.ask(p0="good morning", p1="good morning")
    shown = [json.dumps(call["messages"]) for call in model_server.main_calls[first:]]
    assert sorted(("alfa" in one, "bravo" in one, "charlie" in one) for one in shown) == [
        (False, True, False),
        (True, False, False),
    ]
    assert all("alfa" not in call["messages"][0]["content"] for call in model_server.main_calls)
    chat.ask(p0="who is the plumber?")
    newest = model_server.main_calls[-1]["messages"][-1]["content"].splitlines()
    assert "[Remembered out of text of others, perhaps not the person's own words: \"the plumber" in newest[2]
    taints = [row["taint"] for row in server.rows("SELECT taint FROM turns ORDER BY created_at, id")]
    assert taints[-3:] == ["", "", "memory"]
