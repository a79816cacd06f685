"""Ten thousand questions that wait for an answer: what they cost, and how soon an answer is acted upon."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Plan, Row, absolute, cpu_seconds, memory_mb
from bench.postgres import postgres
from bench.process import Release
from tests.mailer import ANA, asked, calling, drop_mailer, marks, park_more, press, told
from tests.standins.model import ModelServer
from tests.world import Graph, Server, world

PARKED = 10_000
ASKED = 20
"""People whose own questions are answered."""
IDLE_SECONDS = 35.0
"""In which the sweep looks once at the rows."""
MOST_MB, MOST_MS, MOST_IDLE = 10.0, 200.0, 1.0


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    found = _measured(folder / "sqlite", "SQLite", plan)
    with postgres(folder / "server") as server:
        database = server.new_database("parked")
        found += _measured(folder / "postgres", "PostgreSQL", plan, DATABASE_URL=database)
    return found


def _measured(folder: Path, name: str, plan: Plan, **env: str) -> list[Row]:
    skills, parked = drop_mailer(folder / "own"), plan.of(PARKED)
    with _running(folder / "world", SKILLS_DIR=str(skills), **env) as (server, graph):
        for n in range(1, ASKED + 1):
            graph.say(f"p{n}", "mail, please")
        questions = {f"p{n}": asked(graph, f"p{n}") for n in range(1, ASKED + 1)}
        alone = _at_rest(server, graph)
        server.stop()
        park_more(server, parked)
        server.start()
        full = _at_rest(server, graph)
        times = [_woken(skills, graph, person, question) for person, question in questions.items()]
    first, *others = times  # the first call starts the process of the dropped skill
    what = f"{parked:,} parked questions, {name}"
    return [
        absolute(f"memory of {what}", [full[0] - alone[0]], "MB", MOST_MB),
        absolute(f"CPU at rest beside {what}, of a core", [100 * (full[1] - alone[1])], "%", MOST_IDLE),
        absolute(f"from an answer to the call, {what}", [statistics.median(others)], "ms", MOST_MS),
        absolute(f"the slowest of {len(others)}, {what}", [max(others)], "ms", MOST_MS),
        Row(
            f"the first, which starts the skill's process, {what}", f"{first:.0f} ms", "–", first, unit=" ms"
        ),
    ]


@contextmanager
def _running(folder: Path, **env: str) -> Iterator[tuple[Server, Graph]]:
    folder.mkdir(parents=True)
    played = ModelServer(calling(ANA))
    model = {"OPENAI_BASE_URL": played.url, "LLM_MODEL": "stand-in"}
    for server, graph in world(folder, crowd=ASKED + 1, **model, **env):
        server.start()
        yield server, graph
    played.stop()


def _at_rest(server: Server, graph: Graph) -> tuple[float, float]:
    """The memory after a new start and an answer, and the share of a core that is used from then on."""
    server.stop()
    server.start()
    graph.say("p0", "hello")
    told(graph, "p0", "you said: hello")
    time.sleep(2)
    assert server.process is not None
    began, memory = _cpu(server), memory_mb(server.process.pid)
    time.sleep(IDLE_SECONDS)
    return memory, (_cpu(server) - began) / IDLE_SECONDS


def _cpu(server: Server) -> float:
    assert server.process is not None
    return cpu_seconds(server.process.pid)


def _woken(skills: Path, graph: Graph, person: str, question: dict[str, object]) -> float:
    """Milliseconds from the press of a button until the tool has run."""
    before, began = len(marks(skills, "sent")), time.perf_counter()
    press(graph, person, question, "Yes")
    while len(marks(skills, "sent")) == before:
        if time.perf_counter() - began > 30:
            raise RuntimeError(f"the answer of {person} woke nothing")
        time.sleep(0.002)
    took = 1000 * (time.perf_counter() - began)
    told(graph, person, "result")
    return took
