"""Skills in a conversation: whose texts reach the model, how long they stay, what it can read besides."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from app.cli.database import read_records
from app.store.journal import turn_trace
from tests.skills.folders import write
from tests.standins.model import calls, is_classifier, last_user_text, results
from tests.world import Server, Town, open_work, standing, wait_for

NEWEST = "SELECT id FROM turns ORDER BY created_at DESC LIMIT ?"
WORDS = {"roses": "rose-care", "tea": "tea", "bread": "bread", "sums": "calculator"}


@pytest.fixture(scope="module")
def _standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Town, Path]]:
    place = tmp_path_factory.mktemp("disclosure")
    skills = place / "own"
    skills.mkdir()
    for town in standing(place, crowd=30, SKILLS_DIR=str(skills)):
        yield town, skills


@pytest.fixture
def house(_standing: tuple[Town, Path]) -> tuple[Town, Path]:
    """The server that stands for all tests, and its folder of skills, which is empty again."""
    town, folder = _standing
    wait_for(lambda: not open_work(town.server), "the end of the test before")
    for skill in folder.iterdir():
        shutil.rmtree(skill)
    town.model.requests.clear()
    return town, folder


def drop(folder: Path, name: str, body: str, description: str = "", **metadata: str) -> Path:
    """A skill without tools."""
    lines = "".join(f'  {key.replace("_", "-")}: "{text}"\n' for key, text in metadata.items())
    front = f"metadata:\n{lines}" if lines else ""
    return write(folder / name, body=body, about=description or f"All about {name}.", front=front)


def brew(skill: Path, description: str) -> None:
    """Gives a skill a tool."""
    source = f'def steep(minutes: int = 3) -> str:\n    """{description}"""\n    return "done"\n'
    (skill / "scripts" / "tools.py").write_text(source)


def chosen(body: dict[str, Any]) -> str | None:
    """Plays a classifier that knows a word for each skill; None for any other request."""
    if not is_classifier(body):
        return None
    said = last_user_text(body).rpartition("Message:")[2]
    return json.dumps({"categories": [skill for word, skill in WORDS.items() if word in said]})


def obliging(body: dict[str, Any]) -> Any:
    return chosen(body) or "ok"


def system(body: dict[str, Any]) -> str:
    return str(body["messages"][0]["content"])


def tool(body: dict[str, Any], name: str) -> dict[str, Any] | None:
    found = [one["function"] for one in body.get("tools", ()) if one["function"]["name"] == name]
    return found[0] if found else None


def test_a_body_stays_with_the_conversations_of_two_people_until_it_changes(house):
    town, folder = house
    graph, first, other, town.model.play = town.graph, town.newcomer(), town.newcomer(), obliging
    drop(folder, "rose-care", "Prune roses in late winter.")
    drop(folder, "tea", "Steep tea for three minutes.")
    for person in (first, other):
        graph.ask(person, "how do I prune roses")
        assert "Prune roses in late winter." in system(town.model.main_calls[-1])
        assert "Steep tea" not in system(town.model.main_calls[-1])
    graph.ask(first, "and tea?")
    before, after = system(town.model.main_calls[0]), system(town.model.main_calls[-1])
    assert after.startswith(before)
    assert "Steep tea for three minutes." in after
    graph.ask(first, "thanks")
    assert system(town.model.main_calls[-1]) == after
    graph.ask(first, "/new")
    graph.ask(first, "thanks")
    assert "## Skill" not in system(town.model.main_calls[-1])
    drop(folder, "rose-care", "Prune roses in early spring, after the frost.")
    graph.ask(other, "thanks")
    assert "early spring" in system(town.model.main_calls[-1])
    assert "late winter" not in system(town.model.main_calls[-1])
    (folder / "tea" / "SKILL.md").write_text("nothing that could be read")  # a broken one beside it
    shutil.rmtree(folder / "rose-care")
    graph.ask(other, "thank you")
    assert "## Skill" not in system(town.model.main_calls[-1])


LONG = "\n\n".join(f"Step {n}: knead, wait, fold and wait again; no step is left out." for n in range(330))


def test_a_long_body_is_loaded_by_the_model_and_then_stays(house):
    town, folder = house
    graph, person = town.graph, town.newcomer()
    drop(folder, "bread", LONG)
    drop(folder, "tea", "Steep tea for three minutes.")
    (folder / "bread" / "references").mkdir()
    (folder / "bread" / "references" / "flour.md").write_text("Strong flour has 13 % protein.")

    def play(body):
        if answer := chosen(body):
            return answer
        if tool(body, "load_skill") and not results(body):
            return calls(("load_skill", {"name": "bread"}), ("load_skill", {"name": "calculator"}))
        if len(results(body)) == 2:
            return calls(("read_skill_file", {"skill": "bread", "path": "references/flour.md"}))
        return "ok"

    town.model.play = play
    graph.ask(person, "bread and tea")
    first, *_, last = town.model.main_calls
    load = tool(first, "load_skill")
    assert load["parameters"]["properties"]["name"]["enum"] == ["tea", "bread"]
    assert "Step 1:" not in system(first)
    assert "Steep tea" in system(first)
    loaded, unknown, read = results(last)
    assert loaded["data"]["instructions"] == LONG
    assert loaded["data"]["files"] == ["references/flour.md"]
    assert unknown["error"]["code"] == "BAD_REQUEST"
    assert read["data"]["text"] == "Strong flour has 13 % protein."
    assert len(first["tools"]) <= 8
    graph.ask(person, "thanks")
    later = town.model.main_calls[-1]
    assert LONG in system(later)
    assert system(later).index("Steep tea") < system(later).index("Step 1:")
    assert tool(later, "load_skill") is None
    assert tool(later, "read_skill_file") is not None


def test_a_skill_without_tools_is_found_without_a_classifier_and_brings_the_tools_that_it_includes(house):
    town, folder = house
    about = "Pruning and watering roses in the garden."
    drop(folder, "rose-care", "Prune roses in late winter.", about, include_tools="save_note no_such_tool")
    graph, answers = town.graph, ("none", "[]", "I would rather not say", '{"categories": ["x"]}')
    for answer in answers:
        person = town.newcomer()
        town.model.play = lambda body, answer=answer: answer if is_classifier(body) else "ok"
        graph.ask(person, "hello")
        assert "## Skill" not in system(town.model.main_calls[-1])
        graph.ask(person, "when is pruning of roses due")
        assert "Prune roses in late winter." in system(town.model.main_calls[-1])
    town.model.play, person = obliging, town.newcomer()
    graph.ask(person, "roses")
    assert tool(town.model.main_calls[-1], "save_note") is not None


def traced(server: Server, turn: str) -> dict[str, Any]:
    """The first model call of a turn after the classifier's, as the trace tells it."""
    shown = read_records(server.folder / "recado.db", lambda conn: turn_trace(conn, turn))
    (call,) = [one for one in shown.calls if one.key == "llm:0"]
    return asdict(call)


def test_a_call_can_be_rebuilt_from_its_trace_after_the_skill_is_gone(house):
    town, folder = house
    server, graph, person, town.model.play = town.server, town.graph, town.newcomer(), obliging
    drop(folder, "bread", LONG)
    brew(drop(folder, "tea", "Steep tea."), "Steeps tea.")
    graph.ask(person, "bread and tea")
    (given,) = town.model.main_calls
    assert {"load_skill", "steep"} <= {one["function"]["name"] for one in given["tools"]}
    shutil.rmtree(folder / "bread")
    shutil.rmtree(folder / "tea")
    graph.ask(person, "roses")
    _, turn = server.rows(NEWEST, 2)
    call = traced(server, turn["id"])
    assert call["prompt"] == [{"tools": given["tools"]}, *given["messages"]]
    shown = server.recado("trace", turn["id"])
    assert f"catalogue hash {call['catalog']}" in shown
    assert shown.count("Model call") == shown.count("catalogue ") == 2


def test_a_turn_that_goes_on_after_a_reload_records_what_it_then_offers(house):
    town, folder = house
    server, graph, person = town.server, town.graph, town.newcomer()
    drop(folder, "bread", LONG)
    tea = drop(folder, "tea", "Steep tea.")
    brew(tea, "Steeps tea.")

    def play(body):
        if answer := chosen(body):
            return answer
        if len(town.model.main_calls) == 1:
            server.kill()
        return "ok"

    town.model.play = play
    graph.say(person, "bread, tea and sums")
    wait_for(lambda: server.process.poll() is not None, "the server's death")
    shutil.rmtree(folder / "bread")
    brew(tea, "Steeps green tea.")
    server.start()
    assert graph.reply(person) == "ok"
    before, after = town.model.main_calls
    enums = [tool(one, "load_skill")["parameters"]["properties"]["name"]["enum"] for one in (before, after)]
    assert enums == [["tea", "bread", "calculator"], ["tea", "calculator"]]
    told = [tool(one, "steep")["description"] for one in (before, after)]
    assert told == ["Steeps tea", "Steeps green tea"]
    (turn,) = server.rows(NEWEST, 1)
    assert traced(server, turn["id"])["prompt"] == [{"tools": after["tools"]}, *after["messages"]]
