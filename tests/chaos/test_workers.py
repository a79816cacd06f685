"""Several workers on one database: what one of them leaves is done by another, once and in order."""

import asyncio
import os
import time
from collections.abc import Iterator

import pytest

from tests.chaos.storm import play
from tests.chaos.workers import check, cluster, storm
from tests.databases import postgres
from tests.standins.model import ModelServer
from tests.world import wait_for

pytestmark = pytest.mark.slow

PEOPLE = 40


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as address:
        yield address


def connected_to(model: ModelServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in"}


def test_workers_that_die_freeze_and_lose_the_database_leave_nothing_undone_and_do_nothing_twice(
    server, tmp_path, model
):
    seed = int(os.environ.get("RECADO_SEED") or time.time())
    print(f"\nseed {seed} (RECADO_SEED={seed} replays it)")
    with cluster(tmp_path, server, workers=3, crowd=PEOPLE, **connected_to(model(play))) as made:
        storm(made, messages=200, crowd=PEOPLE, seed=seed, freeze=30.0)


def test_a_killed_workers_turn_goes_on_with_another_within_forty_seconds(server, tmp_path, model):
    held = asyncio.Event()

    async def hang(body):
        if not held.is_set():
            held.set()
            await asyncio.sleep(120)
        return play(body)

    played = model(hang)
    with cluster(tmp_path, server, workers=2, crowd=2, **connected_to(played)) as made:
        made.graph.say("p1", "m0")
        wait_for(held.is_set, "a worker to ask the model")
        holder = made.rows("SELECT worker_id FROM procrastinate_jobs WHERE status = 'doing'")[0]["worker_id"]
        numbers = sorted(row["id"] for row in made.rows("SELECT id FROM procrastinate_workers"))
        made.workers[numbers.index(holder)].kill()
        assert made.graph.reply("p1", seconds=40).startswith("answer m0")


def test_workers_are_restarted_one_by_one_while_people_write(server, tmp_path, model):
    with cluster(tmp_path, server, workers=2, crowd=10, **connected_to(model(play))) as made:
        people = [f"p{n % 10}" for n in range(120)]
        for n, person in enumerate(people):
            made.graph.say(person, f"m{n}")
            if n in (20, 70):
                worker = made.workers[n > 20]
                assert worker.stop() == 0
                worker.start(wait=False)
        wait_for(made.at_rest, "everything to be answered", 60)
        check(made, people)


def test_a_stop_reaches_the_worker_that_runs_the_turn(server, tmp_path, model):
    asked = asyncio.Event()

    async def hang(body):
        asked.set()
        await asyncio.sleep(120)

    with cluster(tmp_path, server, workers=2, crowd=2, **connected_to(model(hang))) as made:
        made.graph.say("p1", "tell me a long story")
        wait_for(asked.is_set, "a worker to ask the model")
        made.graph.say("p1", "/stop")
        assert made.graph.reply("p1", seconds=10)
        wait_for(made.at_rest, "the turn to end", 10)
        assert [row["outcome"] for row in made.rows("SELECT outcome FROM turns ORDER BY created_at")] == [
            "stopped",
            "command",
        ]
