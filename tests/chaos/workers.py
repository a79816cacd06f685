"""Several workers on one PostgreSQL database: killed, frozen, cut off, restarted, while people write.

    python -m tests.chaos.workers [--messages 10000] [--people 1000] [--seed N]

prints the seed and what was found; it ends with 1 where a law was broken. `make chaos` runs it.
"""

import argparse
import random
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.storm import play
from tests.databases import new_database, postgres
from tests.standins.model import ModelServer
from tests.world import Graph, Server, connected, free_port, wait_for

FREEZE_SECONDS = 60.0
MOST_PENDING = 50  # webhooks that the stand-in delivers at a time
GIVEN_UP_SECONDS = 28.0  # of silence, after which others have the work of a worker
WORDS = re.compile(r"\bm\d+\b")


class Cluster:
    """A process that takes webhooks, and workers; each has a log of its own, all one data folder."""

    def __init__(self, folder: Path, database: str, crowd: int, **env: str) -> None:
        self.folder = folder
        self.database = database
        phones = ",".join(f"1212555{n:04}" for n in range(crowd))
        self._env = {
            "DATABASE_URL": database,
            "DATA_DIR": str(folder / "data"),
            "ALLOWED_PHONE_NUMBERS": phones,
            "OWNER_PHONE_NUMBERS": "12125550000",
            "SEND_RECONCILE_SECONDS": "5",
            **env,
        }
        self.web = self._member("web")
        self.graph = Graph(folder, self.web, people=[], crowd=crowd, longest_pause=5)
        self._env |= connected(self.graph.port)
        self.web.env |= self._env
        self.workers: list[Server] = []

    def _member(self, role: str) -> Server:
        folder = self.folder / f"{role}{free_port()}"
        folder.mkdir(parents=True)
        return Server(folder, **self._env, ROLE=role)

    def start(self, workers: int) -> "Cluster":
        self.workers = [self._member("worker") for _ in range(workers)]
        for member in (self.web, *self.workers):
            member.start()
        return self

    def stop(self) -> None:
        self.graph.stop()
        for member in (self.web, *self.workers):
            if member.process is not None and member.process.poll() is None:
                member.kill()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with psycopg.connect(self.database, autocommit=True, row_factory=dict_row) as connection:
            return connection.execute(sql.encode()).fetchall()

    def at_rest(self) -> bool:
        """Whether nothing waits: no message, no turn, no send, no webhook."""
        return self.graph.pending == 0 and not self.rows(
            "SELECT 1 FROM inbox WHERE done_at IS NULL UNION SELECT 1 FROM turns WHERE state <> 'done'"
            " UNION SELECT 1 FROM outbox WHERE state IN ('ready', 'sending', 'unknown', 'held')"
            " AND due_at IS NOT NULL"
        )


@contextmanager
def cluster(folder: Path, server: str, *, workers: int, crowd: int, **env: str) -> Iterator[Cluster]:
    """A cluster on a new database of this PostgreSQL server."""
    made = Cluster(folder, new_database(server, f"cluster{random.randrange(10**6)}"), crowd, **env)
    try:
        yield made.start(workers)
    finally:
        made.stop()


def check(cluster: Cluster, people: list[str]) -> None:
    """Every message answered once and in order, every tool call run once, nothing of one told to another."""
    failed = cluster.rows("SELECT id, outcome, error FROM turns WHERE outcome <> 'answered'")
    assert not failed, failed
    for person in dict.fromkeys(people):
        expected = [f"m{n}" for n, whose in enumerate(people) if whose == person]
        answers = (text.partition("\n")[0] for text in cluster.graph.texts(person))
        answered = [word for answer in answers for word in WORDS.findall(answer)]
        assert answered == expected, f"{person} was answered {answered}, not {expected}"
    assert cluster.rows("SELECT source FROM outbox GROUP BY source, part HAVING count(*) > 1") == []
    notes = "SELECT value::json ->> 'text' AS text, person_id FROM skill_data WHERE skill = 'notes'"
    twice = (
        f"SELECT 1 FROM ({notes}) AS n WHERE text IS NOT NULL GROUP BY person_id, text HAVING count(*) > 1"
    )
    assert cluster.rows(twice) == []


def storm(cluster: Cluster, *, messages: int, crowd: int, seed: int, freeze: float) -> None:
    """One worker is killed and started again, one frozen and thawed; connections and webhooks suffer too."""
    chance = random.Random(seed)
    people = [f"p{n % crowd}" for n in range(messages)]
    parts = [range(part * messages // 4, (part + 1) * messages // 4) for part in range(4)]
    killed, frozen = chance.sample(cluster.workers, 2)

    def write(part: range) -> None:
        cluster.graph.faults(duplicate=chance.randint(1, 3))
        for first in range(part.start, part.stop, 25):
            share = range(first, min(first + 25, part.stop))
            wait_for(lambda: cluster.graph.pending < MOST_PENDING, "webhooks to be taken", 300)
            cluster.graph.inbound(*({"person": people[n], "type": "text", "text": f"m{n}"} for n in share))

    write(parts[0])
    killed.kill()
    write(parts[1])
    frozen.process.send_signal(signal.SIGSTOP)
    until = time.monotonic() + freeze
    cut_connections(cluster)
    write(parts[2])
    killed.start()
    time.sleep(max(until - time.monotonic(), 0))
    if freeze > GIVEN_UP_SECONDS:
        wait_for(
            lambda: len(cluster.rows("SELECT 1 FROM procrastinate_workers")) == len(cluster.workers) - 1,
            "the frozen worker to be given up",
            10,
        )
    frozen.process.send_signal(signal.SIGCONT)
    write(parts[3])
    wait_for(cluster.at_rest, "everything to be answered", 600 + messages / 5)
    check(cluster, people)
    if freeze > GIVEN_UP_SECONDS:
        assert frozen.process.wait(30) == 1, "the thawed worker has to end: others have its work"


def cut_connections(cluster: Cluster) -> None:
    """End all connections in the middle of whatever they do, as a restart of the database would."""
    cluster.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Workers that die, freeze and lose their connections")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=1_000)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--freeze", type=float, default=FREEZE_SECONDS)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    model = ModelServer(play)
    with tempfile.TemporaryDirectory() as name, postgres() as server:
        env = {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in", "RATE_LIMIT_MAX": "0"}
        crowd, began = arguments.people, time.monotonic()
        with cluster(Path(name), server, workers=arguments.workers, crowd=crowd, **env) as made:
            storm(
                made,
                messages=arguments.messages,
                crowd=crowd,
                seed=arguments.seed,
                freeze=arguments.freeze,
            )
            turns, sends = len(made.rows("SELECT 1 FROM turns")), len(made.graph.sends())
            seconds = time.monotonic() - began
            print(f"{turns} turns, {sends} messages sent in {seconds:.0f} s: every law held")
    model.stop()


if __name__ == "__main__":
    main()
