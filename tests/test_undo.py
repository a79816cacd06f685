"""What destroys can be undone by the words that its receipt names."""

import pytest

from tests.world import Graph, Server, world

FORGET, PROJECT, REMINDERS = "forget everything", "a project", "all reminders"
WORDS = {
    ("es", FORGET): (
        ["recuerda que soy alérgico al maní", "recuerda que mi hija se llama Ana"],
        "olvida todo lo que sabes de mí",
        "¿qué sabes de mí?",
        ["maní", "Ana"],
    ),
    ("pt", FORGET): (
        ["lembra que sou vegetariano", "lembra que minha filha se chama Rosa"],
        "esquece tudo sobre mim",
        "o que você sabe de mim?",
        ["vegetariano", "Rosa"],
    ),
    ("es", PROJECT): (
        ["crea el proyecto Cocina", "agrega comprar pintura al proyecto Cocina"],
        "borra el proyecto Cocina",
        "¿cómo va el proyecto Cocina?",
        ["comprar pintura"],
    ),
    ("pt", REMINDERS): (
        ["me lembra amanhã às 9 de pagar a luz", "me lembra toda segunda às 8 de levar o lixo"],
        "cancela todos os meus lembretes",
        "meus lembretes",
        ["pagar a luz", "levar o lixo"],
    ),
    ("en", REMINDERS): (
        ["remind me tomorrow at 9 to pay the bill", "remind me every monday at 8 to take the trash out"],
        "cancel all my reminders",
        "my reminders",
        ["pay the bill", "take the trash out"],
    ),
}


class Talk:
    """One person's chat with the built-in model, which is asked about nothing."""

    def __init__(self, graph: Graph, person: str) -> None:
        self.graph, self.person = graph, person

    def says(self, text: str) -> str:
        before = len(self.graph.texts(self.person))
        self.graph.say(self.person, text)
        return self.graph.reply(self.person, before + 1)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    server: Server
    for server, graph in world(tmp_path_factory.mktemp("undo"), crowd=20, CONFIRMATION_MODE="yolo"):
        server.start()
        yield graph


@pytest.mark.parametrize(("language", "what"), WORDS)
def test_the_receipt_names_words_that_bring_it_back(graph: Graph, language: str, what: str) -> None:
    talk = Talk(graph, f"p{1 + list(WORDS).index((language, what))}")
    made, destroys, shows, found = WORDS[language, what]
    for text in made:
        assert "✓" in talk.says(text), text
    receipt = talk.says(destroys)
    assert "✓" in receipt
    assert not any(words in talk.says(shows) for words in found)
    undo = receipt.rpartition("“")[2].partition("”")[0]
    talk.says(undo)
    shown = talk.says(shows)
    for words in found:
        assert words in shown
