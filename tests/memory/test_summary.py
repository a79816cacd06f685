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
        graph.say("p0", f"{f'fact {number}' if number % 2 == 0 else 'well'} {small_talk}")
        graph.reply("p0", number + 1)
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


def test_a_summary_is_shown_shortened_and_forgotten_and_is_nobody_elses(make_world: Any, model: Any) -> None:
    chatter = Chatter()
    server, graph = make_world(model=model(chatter), SWEEP_SECONDS="0.5")
    talk(graph, server, 0, 16, SMALL_TALK * 4)
    wait_for(lambda: not due(server) and server.rows("SELECT 1 FROM summaries"), "a summary")
    graph.say("p0", "/memory")
    assert "s1. a gardener\ns2. fact 0\n" in graph.reply("p0", 17)
    graph.say("p1", "/memoria")
    assert graph.reply("p1") == "Todavía no recuerdo nada de ti."
    graph.say("p0", "/memory delete s2")
    assert graph.reply("p0", 18) == "✓ Forgotten: fact 0"
    graph.say("p0", "/memory")
    assert "s1. a gardener\ns2. fact 2\n" in graph.reply("p0", 19)
    graph.say("p0", "/new")
    graph.reply("p0", 20)
    graph.say("p0", "/memory")
    assert graph.reply("p0", 21) == "I remember nothing about you yet."
    graph.say("p0", "hello again")
    graph.reply("p0", 22)
    assert "a gardener" not in chatter.prompts[-1]


def test_a_fact_is_shown_with_its_day_and_deleted_by_its_number(offline_town: Town) -> None:
    graph, person = offline_town.graph, offline_town.newcomer()
    for number, (said, told) in enumerate(
        [
            ("recuerda que vivo en Lima", "vivo en Lima"),
            ("recuerda que mi hija se llama Ana", "se llama Ana"),
            ("/memoria", "1. vivo en Lima (hoy "),
            ("/memoria borrar 1", "✓ Olvidado: vivo en Lima"),
            ("/memoria borrar 1", "No hay un número 1"),
            ("¿qué sabes de mí?", "Ana"),
        ],
        1,
    ):
        graph.say(person, said)
        assert told in graph.reply(person, number)
    assert "Lima" not in graph.reply(person, 6)
