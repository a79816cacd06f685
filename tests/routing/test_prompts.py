"""What a model is sent: little, however many tools there are, and the same again wherever it can be."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.standins.model import calls, is_classifier, last_user_text
from tests.test_cli import House
from tests.world import Graph, Server

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
        "anota comprar pan",
        "y leche",
        "qué notas tengo?",
        "borra la del pan",
        "cambia leche por leche deslactosada",
        "busca leche en mis notas",
        "deshaz eso",
        "muéstrame todas mis notas",
    ),
    "weather": (
        "va a llover mañana en Lima?",
        "y el sábado?",
        "qué temperatura hace ahora",
        "y en Cusco?",
        "hace viento?",
        "gracias!",
        "y el domingo llueve?",
    ),
    "reminders": (
        "recuérdame llamar a mamá a las 8",
        "y también a las 10",
        "qué recordatorios tengo",
        "cancela el de las 8",
        "pospón el otro una hora",
        "ok",
        "cada lunes recuérdame el gimnasio",
        "muéstrame los recordatorios",
    ),
    "invoice-7": (
        "create an invoice for Ana due on Friday",
        "share the invoice with ana@example.com",
        "find the invoices of May",
        "export them",
        "thanks",
        "change the date of Ana's invoice",
        "create another invoice",
    ),
}
ABOUT = {said: category for category, texts in TALK.items() for said in texts}


def with_a_thousand_tools(folder: Path) -> Path:
    """A folder with two hundred skills of five tools each."""
    for number in range(200):
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
    """A model that knows what each message is about, and saves a note where it should."""
    if is_classifier(body):
        category = ABOUT.get(said(body))
        return json.dumps({"categories": [category] if category else [], "phrases": []})
    if said(body) == "anota comprar pan" and body["messages"][-1]["role"] == "user":
        return calls(("save_note", {"text": "comprar pan"}))
    return "Aquí está. " * 20


def size(body: dict[str, Any]) -> int:
    """Bytes of the prompt: messages and tools."""
    parts = [body["messages"], body.get("tools", [])]
    return len(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_prompt_is_small_with_a_thousand_tools(make_world: Any, model: Any, tmp_path: Path) -> None:
    model_server = model(play)
    _, graph = make_world(model=model_server, SKILLS_DIR=str(with_a_thousand_tools(tmp_path / "skills")))
    graph.say("p0", "hola")
    graph.reply("p0")
    assert len(model_server.requests) == 2
    assert sum(map(size, model_server.requests)) <= 6 * KILOBYTE
    model_server.requests.clear()
    graph.say("p1", "anota comprar pan")
    graph.reply("p1")
    asked, first, second = map(size, model_server.requests)
    assert asked + first <= 12 * KILOBYTE
    assert second <= 8 * KILOBYTE


def test_a_prompt_begins_as_the_one_before_but_where_the_topic_changes(
    make_world: Any, model: Any, tmp_path: Path
) -> None:
    model_server = model(play)
    _, graph = make_world(model=model_server, SKILLS_DIR=str(with_a_thousand_tools(tmp_path / "skills")))
    for number, text in enumerate(ABOUT):
        graph.say("p0", text)
        graph.reply("p0", number + 1)
    changed = [
        said(after) for before, after in pairwise(model_server.main_calls) if not begins(after, before)
    ]
    assert len(ABOUT) == 30
    assert changed == [texts[0] for texts in TALK.values()][1:]
    asked = [body for body in model_server.requests if is_classifier(body)]
    assert {body["messages"][0]["content"] for body in asked} == {asked[0]["messages"][0]["content"]}
    assert {"y leche", "y en Cusco?", "gracias!", "ok", "thanks"}.isdisjoint(map(said, asked))


def begins(after: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether a prompt begins as another up to the message that was new then."""
    newest = max(place for place, one in enumerate(before["messages"]) if one["role"] == "user")
    return bool(
        after["tools"] == before["tools"] and after["messages"][:newest] == before["messages"][:newest]
    )


def test_a_trace_tells_why_each_tool_was_chosen(make_world: Any, model: Any) -> None:
    made: tuple[Server, Graph] = make_world(model=model(play))
    server, graph = made
    graph.say("p0", "anota comprar pan")
    graph.reply("p0")
    graph.say("p0", "va a llover mañana en Lima?")
    graph.reply("p0", 2)
    (_, row) = server.rows("SELECT turn_id, payload FROM journal WHERE key = 'route' ORDER BY at")
    route = json.loads(row["payload"])
    assert [one["name"] for one in route["reasons"]] == route["tools"]
    why = {one["name"]: one for one in route["reasons"]}
    assert (why["get_weather"]["why"], why["get_weather"]["boost"]) == ("category", 1.25)
    assert (why["delete_note"]["why"], why["delete_note"]["kept"]) == ("kept", True)
    shown = House(server.folder, server.env).run("trace", row["turn_id"]).stdout
    (line,) = (line for line in shown.splitlines() if line.lstrip().startswith("get_weather "))
    assert line.endswith("best of a chosen category  the message")
    assert f"{why['get_weather']['score']:.2f}" in line
