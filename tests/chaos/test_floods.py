"""Storms of redeliveries, shuffled batches, and messages of a size nobody writes."""

import json
import os
import random
import time

import pytest

from tests.chaos.machine import MEMORY, resident
from tests.standins.model import echo, is_classifier, last_user_text
from tests.world import messages_body, open_work, text_body, wait_for

pytestmark = pytest.mark.slow

OPEN_WINDOW = {"window_open": True}
LIMIT = 3 * 1024 * 1024


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("RECADO_SEED") or time.time())
    print(f"\nseed {seed} (RECADO_SEED={seed} replays it)")
    return random.Random(seed)


def test_shuffled_batches_of_messages_and_statuses_are_each_counted_once(make_world, model, chance):
    def all_words(body):
        return '{"categories": []}' if is_classifier(body) else last_user_text(body)

    crowd, each = 50, 20
    server, graph = make_world(model=model(all_words), crowd=crowd, graph=OPEN_WINDOW)
    messages = [message(n % crowd, f"wamid.{n}", f"w{n}w") for n in range(crowd * each)]
    statuses = [
        {"id": f"wamid.early{n}", "status": "read", "timestamp": "1", "recipient_id": phone_of(n % crowd)}
        for n in range(200)
    ]
    posted: set[str] = set()
    for size in (1000, 300, 1000, 50, 50):  # the same again and again, in other orders and companies
        chance.shuffle(messages)
        for start in range(0, len(messages), size):
            body = messages_body(*messages[start : start + size])
            some = chance.sample(statuses, 50)
            body["entry"][0]["changes"][0]["value"]["statuses"] = some
            posted |= {status["id"] for status in some}
            assert server.post(body).status_code == 200
    wait_for(lambda: not open_work(server), "every answer", 60)
    said = " ".join(graph.texts())
    assert [n for n in range(crowd * each) if said.count(f"w{n}w") != 1] == []
    assert len(server.rows("SELECT 1 FROM inbox")) == crowd * each
    early = server.rows("SELECT wamid FROM statuses WHERE wamid LIKE 'wamid.early%'")
    assert sorted(row["wamid"] for row in early) == sorted(posted)


HUGE = {
    "letters": "x" * 1_000_000,
    "one word, many lines": "word\n" * 200_000,
    "emoji": "👩‍👩‍👧‍👦" * 60_000,
    "combining characters": "e" + "\u0301" * 1_000_000,
    "right to left marks": "\u202e" * 800_000,
    "digits": "9" * 1_000_000,
    "brackets": "[" * 1_000_000,
    "slashes": "/" * 1_000_000,
    "formatting": "*_~`" * 250_000,
    "not a command": "/help " + "y" * 1_000_000,
    "spaces": "a" + " " * 1_000_000 + "b",
}


def test_a_million_characters_are_answered_and_the_server_stays_small(make_world):
    server, graph = make_world(crowd=len(HUGE) + 1, graph=OPEN_WINDOW)
    other = f"p{len(HUGE)}"
    graph.say(other, "1+1")
    graph.reply(other)
    before = resident(server)
    for n, text in enumerate(HUGE.values()):
        raw = json.dumps(text_body(f"wamid.{n}", text, phone_of(n)), ensure_ascii=False).encode()
        assert len(raw) < LIMIT
        assert server.post(raw).status_code == 200
        assert server.healthy()
    graph.say(other, "2+2")
    assert "4" in graph.reply(other, 2, seconds=60)
    for n, name in enumerate(HUGE):
        assert graph.reply(f"p{n}", seconds=60), name
    assert resident(server) - before < MEMORY


def test_deep_and_wide_json_is_taken_and_the_server_stays_small(make_world, model):
    server, graph = make_world(model=model(echo), graph=OPEN_WINDOW)
    graph.say("p0", "hello")
    graph.reply("p0")
    before = resident(server)
    deep = 250_000
    bodies = [
        b"[" * deep,
        b"[" * deep + b"]" * deep,
        b'{"entry":' * deep + b"1" + b"}" * deep,
        b'{"entry":[' + b"{}," * 900_000 + b"{}]}",
        b'{"entry":[{"changes":[' + b'{"value":{"messages":[{}]}},' * 90_000 + b"{}]}]}",
        b'{"' + b"k" * 2_900_000 + b'":1}',
        b'{"entry":' + b"9" * 2_900_000 + b"}",
    ]
    for body in bodies:
        assert server.post(body).status_code == 200, body[:40]
        assert server.healthy()
    graph.say("p0", "still there?")
    assert graph.reply("p0", 2) == "you said: still there?"
    assert resident(server) - before < MEMORY


def message(person: int, wamid: str, text: str) -> dict[str, object]:
    body = text_body(wamid, text, phone_of(person))
    return body["entry"][0]["changes"][0]["value"]["messages"][0]


def phone_of(person: int) -> str:
    return f"1212555{person:04}"
