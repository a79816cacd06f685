"""Several workers on one PostgreSQL database, and what can befall them while people write.

    python -m tests.chaos.workers [--messages 10000] [--people 1000] [--seed N] [--troubles kill freeze …]

prints the seed and what was found; it ends with 1 where a law was broken. `make chaos` runs it.
"""

import argparse
import random
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.chaos.machine import dial, injected
from tests.chaos.storm import play
from tests.chaos.wire import Fault, Wire, answer
from tests.databases import new_database, postgres, restart, slow_disk, stand_still
from tests.standins.model import ModelServer
from tests.world import Graph, Server, connected, free_port, wait_for

FREEZE_SECONDS = 60.0
DOWN_SECONDS = 3.0  # of a database that is started again
DISK_MILLISECONDS = 100  # of a commit on a slow disk
TROUBLES = ("webhooks", "kill", "freeze", "cut", "graph", "restart", "disk", "clock")
MOST_PENDING = 50  # webhooks that the stand-in delivers at a time
GIVEN_UP_SECONDS = 28.0  # of silence, after which others have the work of a worker
DAY = 86_400.0
META_DOWN = b'{"error": {"message": "Service unavailable", "code": 131016}}'
# What the Graph API says of a send, and whether it is true: refused though it arrived, cut off before and
# after it arrived, answered after its statuses.
LIES = 2 * (
    Fault(True, answer(500, META_DOWN)),
    Fault(False, answer(503, META_DOWN)),
    Fault(True),
    Fault(False),
    Fault(True, answer(200, b"{}"), seconds=0.8),
    Fault(False, answer(429, META_DOWN, "Retry-After: 1")),
)
# What became of the answers, for the report of a law that was broken.
ANSWERS = """
SELECT m.text AS said, t.outcome, t.reply, t.attempts,
 o.id, o.state, o.attempts AS sends, o.resends, o.worker, o.error
FROM messages m LEFT JOIN turns t ON t.id = m.turn_id
LEFT JOIN outbox o ON o.source = 'turn:' || t.id WHERE m.direction = 'in'
"""
# Sent twice, and nobody can say whether it arrived: law 6 has such a row end, and an alert tell of it.
UNKNOWN = f"{ANSWERS} AND o.state = 'unknown' AND o.due_at IS NULL AND o.resends = 1"
WORDS = re.compile(r"\bm\d+\b")


class Cluster:
    """A process that takes webhooks, and workers; each has a log of its own, all one data folder."""

    def __init__(self, folder: Path, database: str, crowd: int, *, lies: bool = False, **env: str) -> None:
        self.folder = folder
        self.database = database
        phones = ",".join(f"1212555{n:04}" for n in range(crowd))
        self._env = {
            "DATABASE_URL": database,
            "DATA_DIR": str(folder / "data"),
            "ALLOWED_PHONE_NUMBERS": phones,
            "OWNER_PHONE_NUMBERS": "12125550000",
            **env,
        }
        self.web = self._member("web")
        self.graph = Graph(folder, self.web, people=[], crowd=crowd, retry_pause=1)
        self.wire = Wire(self.graph.port, marked=b"biz_opaque_callback_data") if lies else None
        self._env |= connected(self.wire.port if self.wire else self.graph.port)
        self.web.env |= self._env
        self.clocks: list[Callable[[float], None]] = []
        self.workers: list[Server] = []

    def _member(self, role: str) -> Server:
        folder = self.folder / f"{role}{free_port()}"
        folder.mkdir(parents=True)
        return Server(folder, **self._env, ROLE=role)

    def start(self, workers: int) -> "Cluster":
        self.workers = [self._member("worker") for _ in range(workers)]
        for worker in self.workers:
            clock = worker.folder / "clock"
            self.clocks.append(dial(clock))
            worker.env |= injected(CLOCK=clock)
        for member in (self.web, *self.workers):
            member.start()
        return self

    def stop(self) -> None:
        self.graph.stop()
        if self.wire is not None:
            self.wire.stop()
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
def cluster(
    folder: Path, server: str, *, workers: int, crowd: int, lies: bool = False, **env: str
) -> Iterator[Cluster]:
    """A cluster on a new database of this PostgreSQL server; with `lies` its sends go through a wire."""
    database = new_database(server, f"cluster{random.randrange(10**6)}")
    made = Cluster(folder, database, crowd, lies=lies, **env)
    try:
        yield made.start(workers)
    finally:
        made.stop()


def unknown(cluster: Cluster) -> set[str]:
    """The messages whose answers may never have arrived, where the row says so and the last send was cut off.

    The wire did that, or the end of the worker that sent it.
    """
    living = {row["id"] for row in cluster.rows("SELECT id FROM procrastinate_workers")}
    cut = cluster.wire.met if cluster.wire else b""
    rows = cluster.rows(UNKNOWN)
    assert not rows or cluster.rows("SELECT 1 FROM alerts WHERE code = 'undelivered:unknown'")
    return {row["said"] for row in rows if row["worker"] not in living or row["id"].encode() in cut}


def check(cluster: Cluster, people: list[str]) -> set[str]:
    """Every message answered once, in the order in which they arrived; every tool call run once; nothing of
    one told to another. Gives the messages whose answers are of unknown outcome, which may not be there."""
    missing = unknown(cluster)
    failed = cluster.rows("SELECT id, outcome, error FROM turns WHERE outcome <> 'answered'")
    assert not failed, failed
    arrived = [
        row["text"] for row in cluster.rows("SELECT text FROM messages WHERE direction = 'in' ORDER BY id")
    ]
    assert sorted(arrived) == sorted(f"m{n}" for n in range(len(people)))
    for person in dict.fromkeys(people):
        answers = (text.partition("\n")[0] for text in cluster.graph.texts(person))
        answered = [word for answer in answers for word in WORDS.findall(answer)]
        excused = missing.difference(answered)
        expected = [text for text in arrived if people[int(text[1:])] == person and text not in excused]
        wrong = {word for word in (*expected, *answered) if expected.count(word) != answered.count(word)}
        held = [row for row in cluster.rows(ANSWERS) if row["said"] in wrong] if wrong else []
        assert answered == expected, f"{person} was answered {answered}, not {expected}; the rows: {held}"
    assert cluster.rows("SELECT source FROM outbox GROUP BY source, part HAVING count(*) > 1") == []
    notes = "SELECT value::json ->> 'text' AS text, person_id FROM skill_data WHERE skill = 'notes'"
    twice = (
        f"SELECT 1 FROM ({notes}) AS n WHERE text IS NOT NULL GROUP BY person_id, text HAVING count(*) > 1"
    )
    assert cluster.rows(twice) == []
    return missing


class Storm:
    """Everybody writes in seven parts, while troubles come over the cluster.

    `server` is the address of its PostgreSQL, `freeze` the seconds that a worker stands still, half of which
    the database does too.
    """

    def __init__(
        self, cluster: Cluster, server: str, *, messages: int, crowd: int, seed: int, freeze: float
    ) -> None:
        self._cluster, self._graph, self._server, self._freeze = cluster, cluster.graph, server, freeze
        self._chance = random.Random(seed)
        self._people = [f"p{n % crowd}" for n in range(messages)]
        self._parts = iter([range(n * messages // 7, (n + 1) * messages // 7) for n in range(7)])
        self._sent: list[dict[str, str]] = []
        self._seconds = 600 + messages / 5

    def run(self, troubles: Collection[str] = TROUBLES) -> set[str]:
        """Give what `check` gives. Raise AssertionError if a law was broken."""
        killed, frozen = self._chance.sample(self._cluster.workers, 2)
        mixed = "webhooks" in troubles
        self._write(mixed)
        if "kill" in troubles:
            killed.kill()
        self._write(mixed)
        until = time.monotonic() + self._freeze
        if "freeze" in troubles:
            frozen.process.send_signal(signal.SIGSTOP)
        if "cut" in troubles:
            cut_connections(self._cluster)
        self._write(mixed)
        if "kill" in troubles:
            killed.start()
        if "freeze" in troubles:
            self._thaw(frozen, until)
        if "graph" in troubles and self._cluster.wire is not None:
            self._cluster.wire.faults = self._chance.sample(LIES, len(LIES))
        self._write(mixed)
        if "restart" in troubles:
            restart(self._server, DOWN_SECONDS)
        self._write(mixed)
        if "disk" in troubles:
            slow_disk(self._server, DISK_MILLISECONDS)
            threading.Timer(1.0, stand_still, (self._server, self._freeze / 2)).start()
        self._write(mixed)
        if "clock" in troubles:
            self._jump(self._chance.randrange(len(self._cluster.workers)))
        self._write(mixed)
        wait_for(self._cluster.at_rest, "everything to be answered", self._seconds)
        if "disk" in troubles:
            slow_disk(self._server, 0)
        return check(self._cluster, self._people)

    def _write(self, mixed: bool) -> None:
        """Write the next part; `mixed`: webhooks come repeatedly, in any order, old ones again."""
        part, chance = next(self._parts), self._chance
        if mixed:
            self._graph.faults(duplicate=chance.randint(1, 3), batch=chance.choice((1, 1, 5)), shuffle=True)
        for first in range(part.start, part.stop, 25):
            share = range(first, min(first + 25, part.stop))
            wait_for(lambda: self._graph.pending < MOST_PENDING, "webhooks to be taken", 300)
            fresh = [{"person": self._people[n], "type": "text", "text": f"m{n}"} for n in share]
            for message, id in zip(fresh, self._graph.inbound(*fresh), strict=True):
                self._sent.append({**message, "id": id})
            if mixed:
                self._graph.inbound(*chance.sample(self._sent, 2))

    def _thaw(self, frozen: Server, until: float) -> None:
        time.sleep(max(until - time.monotonic(), 0))
        given_up = self._freeze > GIVEN_UP_SECONDS
        if given_up:
            self._wait_for_workers(len(self._cluster.workers) - 1)
        frozen.process.send_signal(signal.SIGCONT)
        if given_up:
            assert frozen.process.wait(30) == 1, "the thawed worker has to end: others have its work"
            frozen.start()

    def _jump(self, number: int) -> None:
        """A worker whose clock jumps takes itself out, and comes back once the clock is right."""
        worker, turn = self._cluster.workers[number], self._cluster.clocks[number]
        turn(self._chance.choice((DAY, -DAY, 3600.0, -3600.0)))
        assert worker.process.wait(60) == 1, "a worker whose clock is wrong has to end"
        turn(0.0)
        worker.start()

    def _wait_for_workers(self, count: int) -> None:
        living = "SELECT 1 FROM procrastinate_workers"
        wait_for(lambda: len(self._cluster.rows(living)) == count, "the frozen worker to be given up", 10)


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
    parser.add_argument("--troubles", nargs="+", choices=TROUBLES, default=TROUBLES)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    model = ModelServer(play)
    with tempfile.TemporaryDirectory() as name, postgres() as server:
        env = {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in", "RATE_LIMIT_MAX": "0"}
        crowd, began, lies = arguments.people, time.monotonic(), "graph" in arguments.troubles
        with cluster(Path(name), server, workers=arguments.workers, crowd=crowd, lies=lies, **env) as made:
            sizes = {"messages": arguments.messages, "crowd": crowd, "freeze": arguments.freeze}
            lost = Storm(made, server, seed=arguments.seed, **sizes).run(arguments.troubles)
            turns, sends = len(made.rows("SELECT 1 FROM turns")), len(made.graph.sends())
            seconds = time.monotonic() - began
            print(f"{turns} turns, {sends} messages sent in {seconds:.0f} s: every law held")
            print(f"cut off twice, and so of unknown outcome: {sorted(lost) or 'none'}")
    model.stop()


if __name__ == "__main__":
    main()
