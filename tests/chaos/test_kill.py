"""kill -9 at random instants, with redeliveries: every message answered exactly once, in order.

The seed is printed; RECADO_SEED replays it, RECADO_KILLS changes how often the server dies.
"""

import asyncio
import os
import signal
import sqlite3
import time
from contextlib import closing

import pytest

from tests.chaos.machine import injected
from tests.chaos.storm import DEAF, answered_words, play, settings, storm
from tests.world import open_work, wait_for

pytestmark = pytest.mark.slow

NOTES = (
    "SELECT value ->> 'text' AS text FROM skill_data WHERE skill = 'notes' AND text NOT NULL ORDER BY text"
)


@pytest.mark.parametrize("deaf", [False, True], ids=["with wakes", "every wake dropped"])
def test_each_message_is_answered_exactly_once_and_in_order(make_world, model, deaf):
    seed = int(os.environ.get("RECADO_SEED") or time.time())
    kills = int(os.environ.get("RECADO_KILLS") or 8)
    print(f"\nseed {seed} (RECADO_SEED={seed} replays it), {kills} kills")
    server, graph = make_world(start=False, model=model(play), **settings(deaf))
    storm(server, graph, kills=kills, seed=seed, deaf=deaf)


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
    assert answered_words(graph, "p0") == ["m0", "m1", "m2", "m3"]


def test_a_tool_of_the_release_that_a_crash_cut_off_is_run_again_and_asks_nobody(make_world, model):
    server, graph = make_world(start=False, model=model(play))
    sound = dict(server.env)
    server.env = sound | injected(DIE_BEFORE="SELECT 1 FROM journal WHERE key = 'tool:0:call_1'")
    server.start()
    graph.say("p0", "m0")
    assert server.process.wait(30) == -signal.SIGKILL
    server.env = sound
    server.start()
    assert graph.reply("p0") == "answer m0\n\n✓ Note saved: m0"
    graph.say("p0", "m1")
    assert graph.reply("p0", 2) == "answer m1\n\n✓ Note saved: m1"
    assert [note["text"] for note in server.rows(NOTES)] == ["m0", "m1"]


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


def test_a_turn_whose_rows_cannot_be_read_ends_too_and_keeps_nobody_else_waiting(make_world, model):
    server, graph = make_world(model=model(play))
    graph.say("p0", "m0")
    assert graph.reply("p0")
    server.stop()
    with closing(sqlite3.connect(server.folder / "recado.db")) as conn, conn:
        conn.execute(
            "UPDATE conversations SET tools = 'not JSON' WHERE id = (SELECT conversation_id FROM turns)"
        )
    server.start()
    graph.say("p0", "m1")
    graph.say("p1", "m2")
    assert graph.reply("p1")
    wait_for(lambda: not open_work(server), "the end", seconds=40)
    (turn,) = server.rows("SELECT attempts FROM turns WHERE outcome = 'failed'")
    assert turn["attempts"] == 5
    assert server.rows("SELECT 1 FROM dead_letters WHERE source = 'turn'")
    assert server.rows("SELECT 1 FROM alerts WHERE code = 'turn'")


def test_what_is_old_and_cannot_be_forgotten_keeps_nobody_waiting_and_health_says_so(make_world, model):
    server, graph = make_world(start=False, model=model(play), SWEEP_SECONDS="0.2")
    server.start(launcher=DEAF)
    with closing(sqlite3.connect(server.folder / "recado.db", timeout=10)) as conn, conn:
        conn.execute("ALTER TABLE erased RENAME TO lost")
    wait_for(lambda: server.http.get("/health").json()["status"] == "degraded", "health to say so")
    assert "what is due or old cannot be looked through" in server.http.get("/health").json()["reason"]
    graph.say("p0", "m0")
    assert graph.reply("p0").startswith("answer m0")
    with closing(sqlite3.connect(server.folder / "recado.db", timeout=10)) as conn, conn:
        conn.execute("ALTER TABLE lost RENAME TO erased")
    wait_for(lambda: server.http.get("/health").json() == {"status": "ok"}, "all to be well")
