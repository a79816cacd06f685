"""What outgrows a conversation's window is folded into a summary: once, kept apart, open to correction."""

import asyncio
import json
import re
from typing import Any

import pytest

from tests.standins.model import is_classifier
from tests.world import Town, open_work, wait_for

PLANTED = re.compile(r"fact \d+")
SMALL_TALK = "and the weather is nice here today, is it not? " * 12


class Chatter:
    """A model that answers in a sentence and folds by keeping every planted fact."""

    def __init__(self) -> None:
        self.folded: list[dict[str, Any]] = []
        self.prompts: list[str] = []
        self.waits = False

    async def __call__(self, body: dict[str, Any]) -> Any:
        if is_classifier(body):
            return '{"categories": ["conversation"], "phrases": ["talk"]}'
        if "keep the memory" in str(body["messages"][0]["content"]):
            given = json.loads(body["messages"][1]["content"])
            self.folded.append(given)
            if self.waits:
                await asyncio.sleep(60)
            said = " ".join(one["person"] for one in given["exchanges"])
            facts = [*given["summary"].get("facts", []), *PLANTED.findall(said)]
            return "```json\n" + json.dumps({"who": ["a gardener"], "facts": facts}) + "\n```"
        self.prompts.append(json.dumps(body["messages"]))
        return "noted"


def talk(graph: Any, server: Any, start: int, end: int, small_talk: str = SMALL_TALK) -> None:
    for number in range(start, end):
        graph.ask("p0", f"{f'fact {number}' if number % 2 == 0 else 'well'} {small_talk}")
    wait_for(lambda: not open_work(server), "the last turn")


def due(server: Any) -> bool:
    return bool(server.rows("SELECT 1 FROM summaries WHERE due_at IS NOT NULL"))


@pytest.mark.slow
def test_nothing_that_leaves_the_window_is_lost_under_kill_9(make_world: Any, model: Any) -> None:
    chatter = Chatter()
    server, graph = make_world(model=model(chatter), SWEEP_SECONDS="0.5")
    graph.inbound({"person": "p0", "type": "text", "text": "fact 999", "forwarded": True})
    graph.reply("p0")
    talk(graph, server, 1, 25)
    chatter.waits = True
    talk(graph, server, 25, 35)
    wait_for(lambda: due(server), "a conversation that outgrows its window")
    wait_for(lambda: chatter.folded, "the model at work on it")
    server.kill()
    chatter.waits = False
    server.start()
    wait_for(lambda: not due(server), "the summary after the crash")
    talk(graph, server, 35, 80)
    wait_for(lambda: not due(server), "the summary")
    talk(graph, server, 80, 81)
    known = set(PLANTED.findall(chatter.prompts[-1]))
    assert {f"fact {number}" for number in range(2, 81, 2)} <= known
    assert max(map(len, chatter.prompts)) < 40_000
    assert "fact 999" not in json.dumps(chatter.folded)
    [kept] = server.rows("SELECT parts FROM summaries")
    facts = json.loads(kept["parts"])["facts"]
    assert len(facts) == len(set(facts)) < 40


@pytest.mark.slow
@pytest.mark.both
def test_a_summary_is_shown_shortened_and_forgotten_and_is_nobody_elses(make_world: Any, model: Any) -> None:
    chatter = Chatter()
    server, graph = make_world(model=model(chatter), SWEEP_SECONDS="0.5")
    talk(graph, server, 0, 16, SMALL_TALK * 4)
    wait_for(lambda: not due(server) and server.rows("SELECT 1 FROM summaries"), "a summary")
    assert "s1. a gardener\ns2. fact 0\n" in graph.ask("p0", "/memory")
    assert graph.ask("p1", "/memoria") == "Todavía no recuerdo nada de ti."
    assert graph.ask("p0", "/memory delete s2") == "✓ Forgotten: fact 0"
    assert "s1. a gardener\ns2. fact 2\n" in graph.ask("p0", "/memory")
    graph.ask("p0", "/new")
    assert graph.ask("p0", "/memory") == "I remember nothing about you yet."
    graph.ask("p0", "hello again")
    assert "a gardener" not in chatter.prompts[-1]


def test_a_fact_is_shown_with_its_day_and_deleted_by_its_number(offline_town: Town) -> None:
    graph, person = offline_town.graph, offline_town.newcomer()
    graph.ask(person, "recuerda que vivo en Lima")
    graph.ask(person, "recuerda que mi hija se llama Ana")
    assert "1. vivo en Lima (hoy " in graph.ask(person, "/memoria")
    assert graph.ask(person, "/memoria borrar 1") == "✓ Olvidado: vivo en Lima"
    assert "No hay un número 1" in graph.ask(person, "/memoria borrar 1")
    shown = graph.ask(person, "¿qué sabes de mí?")
    assert "Ana" in shown
    assert "Lima" not in shown
