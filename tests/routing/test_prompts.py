"""What a model is sent: little, however many tools there are, and the same again wherever it can be."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.standins.model import ModelServer, calls, is_classifier, last_user_text
from tests.world import Graph, world

KILOBYTE = 1024
THINGS = ("invoice", "recipe", "flight", "hotel", "song", "movie", "lamp", "budget", "parcel", "contract")
DOES = {
    "find": "Finds a {thing} by words and dates",
    "create": "Creates a {thing} with a title and a date",
    "update": "Changes the title or the date of a {thing}",
    "share": "Shares a {thing} with somebody by their e-mail address",
    "export": "Writes a {thing} to a file",
}
TOOL = '''
def {does}_{thing}(title: str, date: str = "", form: str = "pdf") -> dict:
    """{said}.

    Args:
        title: The title of the {thing}, or words of it.
        date: When it is due, as YYYY-MM-DD.
        form: pdf, csv or json.
    """
    return {{"done": title}}
'''
TALK = {
    "notes": (
        *("anota comprar pan", "y leche", "qué notas tengo?", "borra la del pan"),
        *("cambia leche por leche deslactosada", "busca leche en mis notas", "deshaz eso"),
        "muéstrame todas mis notas",
    ),
    "weather": (
        *("va a llover mañana en Lima?", "y el sábado?", "qué temperatura hace ahora", "y en Cusco?"),
        *("hace viento?", "gracias!", "y el domingo llueve?"),
    ),
    "invoice-7": (
        *("create an invoice for Ana due on Friday", "share the invoice with ana@example.com"),
        *("find the invoices of May", "export them", "thanks", "change the date of Ana's invoice"),
        "create another invoice",
    ),
}
ABOUT = {said: category for category, texts in TALK.items() for said in texts}
CALLED: dict[str, tuple[str, dict[str, Any]]] = {
    "anota comprar pan": ("save_note", {"text": "comprar pan"}),
    "create an invoice for Ana due on Friday": ("create_invoice", {"title": "Ana", "date": "2026-11-27"}),
}


def with_hundreds_of_tools(folder: Path) -> Path:
    """Return a folder with sixty skills of five tools each."""
    for number in range(60):
        name = f"{THINGS[number % len(THINGS)]}-{number + 7}"
        thing = name.partition("-")[0] if number < len(THINGS) else name.replace("-", "_")
        scripts = folder / name / "scripts"
        scripts.mkdir(parents=True)
        tools = (
            TOOL.format(does=does, thing=thing, said=said.format(thing=thing)) for does, said in DOES.items()
        )
        (scripts / "tools.py").write_text("".join(tools))
        description = f"Keeps every {thing} of the office - find, create, change, share and export them. " * 3
        (folder / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: {description}\n---\nFor the {thing}."
        )
    return folder


def said(body: dict[str, Any]) -> str:
    return last_user_text(body).rpartition("Message:\n")[2].splitlines()[-1]


def play(body: dict[str, Any]) -> Any:
    """A model that knows what each message is about, and calls a tool where a topic begins."""
    if is_classifier(body):
        category = ABOUT.get(said(body))
        return json.dumps({"categories": [category] if category else [], "phrases": []})
    if said(body) in CALLED and body["messages"][-1]["role"] == "user":
        return calls(CALLED[said(body)])
    return "Aquí está. " * 20


def size(body: dict[str, Any]) -> int:
    """Bytes of the prompt: messages and tools."""
    parts = [body["messages"], body.get("tools", [])]
    return len(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())


@pytest.fixture(scope="module")
def well_stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModelServer, Graph]]:
    """A server with hundreds of tools: reading them takes longer than all talks."""
    model_server = ModelServer(play)
    options = {"OPENAI_BASE_URL": model_server.url, "LLM_MODEL": "stand-in"}
    folder = with_hundreds_of_tools(tmp_path_factory.mktemp("skills"))
    pieces = world(tmp_path_factory.mktemp("world"), crowd=5, SKILLS_DIR=str(folder), **options)
    server, graph = next(pieces)
    server.start()
    try:
        yield model_server, graph
    finally:
        pieces.close()
        model_server.stop()


@pytest.fixture
def talk(well_stocked: tuple[ModelServer, Graph]) -> tuple[ModelServer, Graph]:
    """The same, with nothing asked of its model yet."""
    model_server, graph = well_stocked
    model_server.requests.clear()
    model_server.play = play
    return model_server, graph


def test_a_prompt_is_small_with_hundreds_of_tools(talk: tuple[ModelServer, Graph]) -> None:
    model_server, graph = talk
    graph.say("p0", "hola")
    graph.reply("p0")
    assert len(model_server.requests) == 2
    assert sum(map(size, model_server.requests)) <= 6 * KILOBYTE
    for person, text in zip(("p1", "p2"), CALLED, strict=True):
        model_server.requests.clear()
        graph.say(person, text)
        graph.reply(person)
        assert len(model_server.requests) == 3
        assert sum(map(size, model_server.requests)) <= 12 * KILOBYTE
        assert size(model_server.requests[0]) <= 3 * KILOBYTE


def changes(model_server: ModelServer, graph: Graph, person: str) -> list[str]:
    """The messages of the whole talk whose prompt began otherwise than the one before."""
    for number, text in enumerate(ABOUT):
        graph.say(person, text)
        graph.reply(person, number + 1)
    calls_made = model_server.main_calls
    return [said(after) for before, after in pairwise(calls_made) if not begins(after, before)]


def test_a_prompt_begins_as_the_one_before_but_where_the_topic_changes(
    talk: tuple[ModelServer, Graph],
) -> None:
    model_server, graph = talk
    changed = changes(model_server, graph, "p4")
    assert changed == [texts[0] for texts in TALK.values()][1:]
    assert len(ABOUT) - len(changed) >= 0.9 * len(ABOUT)
    asked = [body for body in model_server.requests if is_classifier(body)]
    assert {body["messages"][0]["content"] for body in asked} == {asked[0]["messages"][0]["content"]}
    assert {"y leche", "y en Cusco?", "gracias!", "thanks"}.isdisjoint(map(said, asked))


def begins(after: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether a prompt begins as another up to the message that was new then."""
    newest = max(place for place, one in enumerate(before["messages"]) if one["role"] == "user")
    return bool(
        after["tools"] == before["tools"] and after["messages"][:newest] == before["messages"][:newest]
    )
