"""kill -9 in the very instant of every state that a message goes through, and a start after it.

The death is a SIGKILL just after (or just before) the commit that brings the state about, so each is
met exactly. Executions are counted where a tool leaves its mark: a file outside the database.
"""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.machine import injected
from tests.standins.model import ModelServer, calls, is_classifier
from tests.world import ROOT, open_work, wait_for, world

pytestmark = pytest.mark.slow

BELL = '''
from pathlib import Path


def ring_bell(text: str) -> dict:
    """Rings the bell; twice is twice."""
    return _mark("rung")


def light_lamp(text: str) -> dict:
    """Lights the lamp; twice is once."""
    return _mark("lit")


def _mark(what):
    with Path({marks!r}).open("a") as file:
        file.write(f"{{what}}\\n")
    return {{"summary": what}}
'''
BELL_SKILL = """---
name: bell
description: Rings the bell and lights the lamp.
metadata:
  idempotent-tools: "light_lamp"
---
"""


INBOX = "SELECT 1 FROM inbox"
TURN = "SELECT 1 FROM turns"
ROUTE = "SELECT 1 FROM journal WHERE key = 'route'"
INTENT = "SELECT 1 FROM journal WHERE key LIKE 'intent:{}:%'"
RESULT = "SELECT 1 FROM journal WHERE key LIKE 'tool:{}:%'"
OUTBOX = "SELECT 1 FROM outbox WHERE state = '{}'"
STATUS = "SELECT 1 FROM statuses WHERE status = '{}'"

# An answer is committed together with what follows from it: intents, or the reply.
DEATHS = {
    "message not yet committed": (INBOX, "BEFORE"),
    "message committed": (INBOX, "AFTER"),
    "turn made": (TURN, "AFTER"),
    "route recorded": (ROUTE, "AFTER"),
    "model's answer and intent lost": (INTENT.format(0), "BEFORE"),
    "answer and intent recorded, tool not run": (INTENT.format(0), "AFTER"),
    "tool run, result lost": (RESULT.format(0), "BEFORE"),
    "answer and intent of an idempotent tool recorded": (INTENT.format(1), "AFTER"),
    "idempotent tool run, result lost": (RESULT.format(1), "BEFORE"),
    "last answer and reply lost": (OUTBOX.format("ready"), "BEFORE"),
    "last answer and reply committed": (OUTBOX.format("ready"), "AFTER"),
    "on the wire": (OUTBOX.format("sending"), "AFTER"),
    "sent, not known": (OUTBOX.format("sent"), "BEFORE"),
    "first status not yet committed": (STATUS.format("sent"), "BEFORE"),
}


@pytest.fixture(scope="module")
def belfry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple]:
    """A release with a skill that leaves marks outside the database; one stand-in for all deaths."""
    folder = tmp_path_factory.mktemp("belfry")
    release, marks = folder / "release", folder / "marks.txt"
    shutil.copytree(ROOT / "app", release / "app")
    scripts = release / "skills" / "bell" / "scripts"
    scripts.mkdir(parents=True)
    (release / "skills" / "bundled.txt").write_text("bell\n")
    (scripts.parent / "SKILL.md").write_text(BELL_SKILL)
    (scripts / "tools.py").write_text(BELL.format(marks=str(marks)))
    model = ModelServer(play)
    options = {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in", "PYTHONPATH": str(release)}
    options |= {"SKILLS_DIR": str(release / "skills"), "SEND_RECONCILE_SECONDS": "1"}
    for server, graph in world(folder, crowd=len(DEATHS), graph={"retry_pause": 0.2}, **options):
        yield server, graph, model, marks
    model.stop()


@pytest.fixture
def fresh(belfry: tuple, tmp_path: Path) -> Iterator[None]:
    """A data folder of its own for each death; ends what a failed test left running."""
    server, _, model, marks = belfry
    marks.write_text("")
    model.requests.clear()
    server.folder = tmp_path
    server.env["DATABASE_URL"] = f"sqlite:///{tmp_path}/recado.db"
    yield
    if server.process.poll() is None:
        server.kill()


def play(body):
    """Rings the bell in the first round, lights the lamp in the second, then says what it was told."""
    if is_classifier(body):
        return '{"categories": ["bell"]}'
    told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if len(told) == 2:
        return "done"
    return calls((("ring_bell", "light_lamp")[len(told)], {"text": "x"}))


@pytest.mark.parametrize("name", DEATHS)
@pytest.mark.usefixtures("fresh")
def test_a_death_at_any_state_loses_nothing_and_repeats_nothing(belfry, name):
    server, graph, model, marks = belfry
    (state, when), person = DEATHS[name], f"p{list(DEATHS).index(name)}"
    sound = dict(server.env)

    server.env = sound | injected(**{f"DIE_{when}": state})
    server.start()
    graph.say(person, "ring, then light")
    assert server.process.wait(30) == -signal.SIGKILL
    assert bool(server.rows(state)) == (when == "AFTER")
    rung, lit = done(marks)
    begun, rung_known, lit_known = (
        bool(server.rows(state)) for state in (INTENT.format(0), RESULT.format(0), RESULT.format(1))
    )

    server.env = sound
    server.start()
    assert graph.reply(person) == "done"
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end")
    server.stop()
    assert graph.texts(person) == ["done"]
    assert done(marks) == (rung if begun else 1, lit if lit_known else lit + 1)
    told = json.dumps(model.main_calls[-1]["messages"])
    assert ("OUTCOME_UNKNOWN" in told) == (begun and not rung_known)
    assert len(server.rows("SELECT 1 FROM turns")) == 1


def done(marks: Path) -> tuple[int, int]:
    """How often the bell was rung and the lamp was lit."""
    made = marks.read_text().split()
    return made.count("rung"), made.count("lit")
