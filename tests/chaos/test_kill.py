"""kill -9 at random instants, with redeliveries: every message answered exactly once, in order.

The seed is printed; RECADO_SEED replays it, RECADO_KILLS changes how often the server dies.
"""

import asyncio
import os
import random
import re
import time

import pytest

from tests.standins.model import calls, is_classifier, last_user_text
from tests.test_conversation import open_work
from tests.world import wait_for

pytestmark = pytest.mark.slow

PEOPLE = 40
MESSAGES = 200


def play(body):
    """Classifies, asks for two tools at once, then answers with every word of the burst."""
    if is_classifier(body):
        return '{"categories": ["calculator"], "phrases": ["calculate"]}'
    said = re.findall(r"\bm\d+\b", last_user_text(body))
    if not any(message["role"] == "tool" for message in body["messages"]):
        return calls(("calculate", {"expression": "6*7"}), ("save_note", {"text": said[-1]}))
    return "answer " + " ".join(said)


@pytest.mark.parametrize("wakes", [True, False], ids=["with wakes", "every wake dropped"])
def test_each_message_is_answered_exactly_once_and_in_order(make_world, model, wakes):
    seed = int(os.environ.get("RECADO_SEED") or time.time())
    kills = int(os.environ.get("RECADO_KILLS") or 12)
    print(f"\nseed {seed} (RECADO_SEED={seed} replays it), {kills} kills")
    chance = random.Random(seed)
    launcher = ("-m", "app", "serve") if wakes else ("-m", "tests.chaos.deaf")
    server, graph = make_world(
        start=False,
        model=model(play),
        crowd=PEOPLE,
        graph={"longest_pause": 0.3},
        BURST_QUIET_SECONDS="0.05",
        SEND_RECONCILE_SECONDS="2",
        SWEEP_SECONDS="30" if wakes else "0.2",
    )
    server.start(launcher=launcher)
    people = [f"p{n % PEOPLE}" for n in range(MESSAGES)]
    ids: list[dict] = []
    for wave in range(kills):
        share = slice(wave * MESSAGES // kills, (wave + 1) * MESSAGES // kills)
        fresh = [
            {"person": person, "type": "text", "text": f"m{share.start + offset}"}
            for offset, person in enumerate(people[share])
        ]
        graph.faults(duplicate=chance.randint(1, 3))
        for message, wamid in zip(fresh, graph.inbound(*fresh), strict=True):
            ids.append({**message, "id": wamid})
        graph.inbound(*chance.sample(ids, 5))  # redeliveries, old and new
        time.sleep(chance.uniform(0.2, 1.2))
        server.kill()
        server.start(launcher=launcher)
    wait_for(lambda: graph.log()["pending"] == 0, "every webhook to be taken", 120)
    wait_for(lambda: not open_work(server), "every turn and send to end", 120)
    wait_for(lambda: graph.log()["pending"] == 0, "every status to be taken", 60)

    failed = server.rows("SELECT id, error FROM turns WHERE outcome <> 'answered'")
    assert [dict(row) for row in failed] == []
    for person in sorted(set(people)):
        expected = [f"m{n}" for n in range(MESSAGES) if people[n] == person]
        answered = [word for text in graph.texts(person) for word in re.findall(r"m\d+", text)]
        assert answered == expected, f"{person}: seed {seed}"
    repeated = server.rows("SELECT source, count(*) FROM outbox GROUP BY source HAVING count(*) > 1")
    assert repeated == []


def test_a_message_that_comes_while_a_burst_is_redone_after_a_crash_is_answered_too(make_world, model):
    server, graph = make_world(model=model(play), BURST_QUIET_SECONDS="0.3")
    for n in range(3):
        graph.say("p0", f"m{n}")
    wait_for(lambda: server.rows("SELECT 1 FROM turns"), "the burst to be claimed")
    server.kill()
    server.start()
    graph.say("p0", "m3")
    wait_for(lambda: "m3" in " ".join(graph.texts("p0")), "the late message")
    wait_for(lambda: not open_work(server), "the end")
    words = [word for text in graph.texts("p0") for word in re.findall(r"m\d+", text)]
    assert words == ["m0", "m1", "m2", "m3"]


def test_a_turn_that_kills_the_server_ends_after_three_attempts_with_an_honest_reply(make_world, model):
    async def hang(body):
        await asyncio.sleep(60)

    server, graph = make_world(model=model(hang))
    graph.say("p0", "poison")
    for attempt in (1, 2, 3):
        wait_for(lambda n=attempt: server.rows("SELECT 1 FROM turns WHERE attempts = ?", n), "the attempt")
        server.kill()
        server.start()
    assert "Something went wrong" in graph.reply("p0")
    wait_for(lambda: not open_work(server), "the end")
    assert len(graph.sends("p0")) == 1
    assert server.rows("SELECT 1 FROM dead_letters WHERE source = 'turn'")
    assert server.rows("SELECT 1 FROM alerts WHERE code = 'turn'")
