"""What a model is sent: little, however many tools there are."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.skills.folders import write
from tests.standins.model import ModelServer, Play, calls, is_classifier, last_user_text
from tests.world import Graph, Server

pytestmark = pytest.mark.slow

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
CALLED: dict[str, tuple[str, dict[str, Any]]] = {
    "anota comprar pan": ("save_note", {"text": "comprar pan"}),
    "create an invoice for Ana due on Friday": ("create_invoice", {"title": "Ana", "date": "2026-11-27"}),
}


def with_hundreds_of_tools(folder: Path) -> Path:
    """Return a folder with sixty skills of five tools each."""
    for number in range(60):
        name = f"{THINGS[number % len(THINGS)]}-{number + 7}"
        thing = name.partition("-")[0] if number < len(THINGS) else name.replace("-", "_")
        code = [
            TOOL.format(does=does, thing=thing, said=said.format(thing=thing)) for does, said in DOES.items()
        ]
        about = f"Keeps every {thing} of the office - find, create, change, share and export them. " * 3
        write(folder / name, "".join(code), about=about, body=f"For the {thing}.")
    return folder


def said(body: dict[str, Any]) -> str:
    return last_user_text(body).rpartition("Message:\n")[2].splitlines()[-1]


def play(body: dict[str, Any]) -> Any:
    """A model that knows what each message is about, and calls a tool where a topic begins."""
    if is_classifier(body):
        category = "notes" if "anota" in said(body) else "invoice-7"
        return json.dumps({"categories": [category] if said(body) in CALLED else [], "phrases": []})
    if said(body) in CALLED and body["messages"][-1]["role"] == "user":
        return calls(CALLED[said(body)])
    return "Aquí está. " * 20


def size(body: dict[str, Any]) -> int:
    """Bytes of the prompt: messages and tools."""
    parts = [body["messages"], body.get("tools", [])]
    return len(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_prompt_is_small_with_hundreds_of_tools(
    make_world: Callable[..., tuple[Server, Graph]], model: Callable[[Play], ModelServer], tmp_path: Path
) -> None:
    model_server = model(play)
    (tmp_path / "skills").mkdir()
    _, graph = make_world(model=model_server, SKILLS_DIR=str(with_hundreds_of_tools(tmp_path / "skills")))
    graph.ask("p0", "hola")
    assert len(model_server.requests) == 2
    assert sum(map(size, model_server.requests)) <= 6 * KILOBYTE
    for person, text in zip(("p1", "p2"), CALLED, strict=True):
        model_server.requests.clear()
        graph.ask(person, text)
        assert len(model_server.requests) == 3
        assert sum(map(size, model_server.requests)) <= 12 * KILOBYTE
        assert size(model_server.requests[0]) <= 3 * KILOBYTE
