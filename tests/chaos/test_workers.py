"""Several workers on one database: what one of them leaves is done by another, once and in order."""

import asyncio
import os
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.chaos.storm import play
from tests.chaos.workers import TROUBLES, Storm, check, cluster
from tests.databases import SERVER, postgres
from tests.mailer import asked, calling, drop_mailer, marks, press, told
from tests.standins.model import ModelServer, calls, is_classifier
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
    options = connected_to(model(play))
    with cluster(tmp_path, server, workers=3, crowd=PEOPLE, lies=True, **options) as made:
        Storm(made, server, messages=210, crowd=PEOPLE, seed=seed, freeze=30.0).run(
            TROUBLES if not SERVER else set(TROUBLES) - {"restart", "disk"}  # which end no server of others
        )


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


def test_the_first_process_alone_removes_what_a_kill_left(server, tmp_path):
    rest = tmp_path / "data" / "mcp" / ".removed"
    rest.mkdir(parents=True)
    with cluster(tmp_path, server, workers=1, crowd=2) as made:
        assert not rest.exists()
        rest.mkdir()
        (worker,) = made.workers
        worker.stop()
        worker.start()
        assert rest.exists()


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


def test_a_dropped_skill_and_an_open_question_are_every_workers(server, tmp_path, model):
    skills = tmp_path / "own"
    skills.mkdir()
    env = connected_to(model(calling(("send_mail", {"to": "ana", "text": "hola"}))))
    with cluster(tmp_path, server, workers=2, crowd=2, SKILLS_DIR=str(skills), **env) as made:
        first, second = made.workers
        drop_mailer(skills)
        first.kill()
        made.graph.say("p0", "mail ana")
        question = asked(made.graph, "p0")
        first.start()
        second.kill()
        press(made.graph, "p0", question, "Yes")
        told(made.graph, "p0", "result")
        wait_for(made.at_rest, "the turn to end")
        assert [mail["to"] for mail in marks(skills, "sent")] == ["ana"]


def test_a_reminder_rings_once_whoever_made_it(server, tmp_path, model):
    def remind(body):
        if is_classifier(body):
            return '{"categories": ["reminders"], "phrases": ["set a reminder"]}'
        if any(message["role"] == "tool" for message in body["messages"]):
            return "done"
        return calls(("set_reminder", {"text": "stretch", "when": "in two hours"}))

    env = connected_to(model(remind))
    with cluster(tmp_path, server, workers=3, crowd=2, SWEEP_SECONDS="0.5", **env) as made:
        made.graph.say("p0", "remind me")
        assert "✓" in made.graph.reply("p0")
        with psycopg.connect(made.database, autocommit=True) as connection:
            connection.execute("UPDATE schedules SET due_at = extract(epoch FROM now()) + 1")
        wait_for(lambda: "⏰" in " ".join(made.graph.texts("p0")), "the reminder")
        time.sleep(2)
        assert " ".join(made.graph.texts("p0")).count("⏰") == 1


def test_the_process_that_takes_webhooks_says_that_no_worker_runs(server, tmp_path):
    with cluster(tmp_path, server, workers=1, crowd=2) as made:
        wait_for(lambda: made.web.http.get("/health").json() == {"status": "ok"}, "all to be well")
        (worker,) = made.workers
        assert worker.stop() == 0
        wait_for(lambda: "no worker runs" in made.web.http.get("/health").text, "health to say so")
        made.graph.say("p0", "2+2")
        worker.start()
        assert "4" in made.graph.reply("p0")
