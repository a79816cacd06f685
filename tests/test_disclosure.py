"""Skills in a conversation: whose texts reach the model, how long they stay, what it can read besides."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from app.cli.database import read_records
from app.store.traces import turn_trace
from tests.standins.model import calls, is_classifier, last_user_text
from tests.world import Server, wait_for

WORDS = {"roses": "rose-care", "tea": "tea", "bread": "bread", "sums": "calculator"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "skills"
    place.mkdir()
    return place


def drop(folder: Path, name: str, body: str, description: str = "", **metadata: str) -> Path:
    """A skill without tools."""
    skill = folder / name
    skill.mkdir(exist_ok=True)
    lines = ["---", f"name: {name}", f"description: {description or f'All about {name}.'}"]
    if metadata:
        lines += ["metadata:", *(f'  {key.replace("_", "-")}: "{text}"' for key, text in metadata.items())]
    (skill / "SKILL.md").write_text("\n".join([*lines, "---", body]), "utf-8")
    return skill


def brew(skill: Path, description: str) -> None:
    """Gives a skill a tool."""
    (skill / "scripts").mkdir(exist_ok=True)
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


def test_a_body_stays_with_the_conversations_of_two_people_until_it_changes(make_world, model, folder):
    drop(folder, "rose-care", "Prune roses in late winter.")
    drop(folder, "tea", "Steep tea for three minutes.")
    model_server = model(obliging)
    _, graph = make_world(model=model_server, SKILLS_DIR=str(folder))
    for person in ("p0", "p1"):
        graph.say(person, "how do I prune roses")
        graph.reply(person)
        assert "Prune roses in late winter." in system(model_server.main_calls[-1])
        assert "Steep tea" not in system(model_server.main_calls[-1])
    graph.say("p0", "and tea?")
    graph.reply("p0", 2)
    before, after = system(model_server.main_calls[0]), system(model_server.main_calls[-1])
    assert after.startswith(before)
    assert "Steep tea for three minutes." in after
    graph.say("p0", "thanks")
    graph.reply("p0", 3)
    assert system(model_server.main_calls[-1]) == after
    graph.say("p0", "/new")
    graph.reply("p0", 4)
    graph.say("p0", "thanks")
    graph.reply("p0", 5)
    assert "## Skill" not in system(model_server.main_calls[-1])
    drop(folder, "rose-care", "Prune roses in early spring, after the frost.")
    graph.say("p1", "thanks")
    graph.reply("p1", 2)
    assert "early spring" in system(model_server.main_calls[-1])
    assert "late winter" not in system(model_server.main_calls[-1])
    (folder / "tea" / "SKILL.md").write_text("nothing that could be read")  # a broken one beside it
    shutil.rmtree(folder / "rose-care")
    graph.say("p1", "thank you")
    graph.reply("p1", 3)
    assert "## Skill" not in system(model_server.main_calls[-1])


LONG = "\n\n".join(f"Step {n}: knead, wait, fold and wait again; no step is left out." for n in range(330))


def test_a_long_body_is_loaded_by_the_model_and_then_stays(make_world, model, folder):
    drop(folder, "bread", LONG)
    drop(folder, "tea", "Steep tea for three minutes.")
    (folder / "bread" / "references").mkdir()
    (folder / "bread" / "references" / "flour.md").write_text("Strong flour has 13 % protein.")

    def play(body):
        results = [json.loads(one["content"]) for one in body["messages"] if one["role"] == "tool"]
        if answer := chosen(body):
            return answer
        if tool(body, "load_skill") and not results:
            return calls(("load_skill", {"name": "bread"}), ("load_skill", {"name": "calculator"}))
        if len(results) == 2:
            return calls(("read_skill_file", {"skill": "bread", "path": "references/flour.md"}))
        return "ok"

    model_server = model(play)
    _, graph = make_world(model=model_server, SKILLS_DIR=str(folder))
    graph.say("p0", "bread and tea")
    graph.reply("p0")
    first, *_, last = model_server.main_calls
    load = tool(first, "load_skill")
    assert load["parameters"]["properties"]["name"]["enum"] == ["tea", "bread"]
    assert "Step 1:" not in system(first)
    assert "Steep tea" in system(first)
    results = [json.loads(one["content"]) for one in last["messages"] if one["role"] == "tool"]
    assert results[0]["data"]["instructions"] == LONG
    assert results[0]["data"]["files"] == ["references/flour.md"]
    assert results[1]["error"]["code"] == "BAD_REQUEST"
    assert results[2]["data"]["text"] == "Strong flour has 13 % protein."
    assert len(first["tools"]) <= 8
    graph.say("p0", "thanks")
    graph.reply("p0", 2)
    later = model_server.main_calls[-1]
    assert LONG in system(later)
    assert system(later).index("Steep tea") < system(later).index("Step 1:")
    assert tool(later, "load_skill") is None
    assert tool(later, "read_skill_file") is not None


def test_a_skill_without_tools_is_found_without_a_classifier(make_world, model, folder):
    drop(folder, "rose-care", "Prune roses in late winter.", "Pruning and watering roses in the garden.")
    answers = ("none", "[]", "I would rather not say", '{"categories": ["x"]}')
    model_server = model(lambda body: classifier if is_classifier(body) else "ok")
    _, graph = make_world(model=model_server, SKILLS_DIR=str(folder))
    for number, classifier in enumerate(answers):  # noqa: B007 (the model plays it)
        person = f"p{number}"
        graph.say(person, "hello")
        graph.reply(person)
        assert "## Skill" not in system(model_server.main_calls[-1])
        graph.say(person, "when is pruning of roses due")
        graph.reply(person, 2)
        assert "Prune roses in late winter." in system(model_server.main_calls[-1])


def test_a_skill_brings_the_tools_that_it_includes(make_world, model, folder):
    drop(folder, "rose-care", "Note every pruning.", include_tools="save_note no_such_tool")
    model_server = model(obliging)
    _, graph = make_world(model=model_server, SKILLS_DIR=str(folder), MAX_TOOLS_PER_CALL="3")
    graph.say("p0", "roses")
    graph.reply("p0")
    (body,) = model_server.main_calls
    assert tool(body, "save_note") is not None
    assert len(body["tools"]) <= 3


def traced(server: Server, turn: str) -> dict[str, Any]:
    """The first model call of a turn after the classifier's, as the trace tells it."""
    shown = read_records(server.folder / "recado.db", lambda conn: turn_trace(conn, turn))
    (call,) = [one for one in shown.calls if one.key == "llm:0"]
    return asdict(call)


def test_a_call_can_be_rebuilt_from_its_trace_after_the_skill_is_gone(make_world, model, folder):
    drop(folder, "bread", LONG)
    brew(drop(folder, "tea", "Steep tea."), "Steeps tea.")
    model_server = model(obliging)
    server, graph = make_world(model=model_server, SKILLS_DIR=str(folder))
    graph.say("p0", "bread and tea")
    graph.reply("p0")
    (given,) = model_server.main_calls
    assert {"load_skill", "steep"} <= {one["function"]["name"] for one in given["tools"]}
    shutil.rmtree(folder / "bread")
    shutil.rmtree(folder / "tea")
    graph.say("p0", "roses")
    graph.reply("p0", 2)
    (turn, *_) = server.rows("SELECT id FROM turns ORDER BY created_at")
    call = traced(server, turn["id"])
    assert call["prompt"] == [{"tools": given["tools"]}, *given["messages"]]
    shown = server.recado("trace", turn["id"])
    assert f"catalogue hash {call['catalog']}" in shown
    assert shown.count("Model call") == shown.count("catalogue ") == 2


def test_a_turn_that_goes_on_after_a_reload_records_what_it_then_offers(make_world, model, folder):
    drop(folder, "bread", LONG)
    tea = drop(folder, "tea", "Steep tea.")
    brew(tea, "Steeps tea.")

    def play(body):
        if answer := chosen(body):
            return answer
        if len(model_server.main_calls) == 1:
            server.kill()
        return "ok"

    model_server = model(play)
    server, graph = make_world(model=model_server, SKILLS_DIR=str(folder))
    graph.say("p0", "bread, tea and sums")
    wait_for(lambda: server.process.poll() is not None, "the server's death")
    shutil.rmtree(folder / "bread")
    brew(tea, "Steeps green tea.")
    server.start()
    assert graph.reply("p0") == "ok"
    before, after = model_server.main_calls
    enums = [tool(one, "load_skill")["parameters"]["properties"]["name"]["enum"] for one in (before, after)]
    assert enums == [["tea", "bread", "calculator"], ["tea", "calculator"]]
    assert [tool(one, "steep")["description"] for one in (before, after)] == [
        "Steeps tea",
        "Steeps green tea",
    ]
    (turn,) = server.rows("SELECT id FROM turns")
    assert traced(server, turn["id"])["prompt"] == [{"tools": after["tools"]}, *after["messages"]]
