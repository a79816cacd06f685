"""kill -9 between each two writes of a question: asked, sent, answered, intent.

After the start there is one question for the call (sent once more at most, where nobody knows whether it
came), the tool ran once or is told as unknown, and the reply arrives.
"""

import signal
from pathlib import Path

import pytest

from tests.chaos.machine import injected
from tests.mailer import ANA, asked, calling, drop_mailer, marks, press, questions
from tests.world import open_work, wait_for

pytestmark = pytest.mark.slow

ASKED = "SELECT 1 FROM approvals"
QUESTION = "SELECT 1 FROM outbox WHERE source LIKE 'approval:%' AND state = '{}'"
ANSWERED = "SELECT 1 FROM approvals WHERE state = 'yes'"
INTENT = "SELECT 1 FROM journal WHERE key LIKE 'intent:%'"
RESULT = "SELECT 1 FROM journal WHERE key LIKE 'tool:%'"

# State, when the process dies, how the person answers. What comes after the intent is as in test_states.
DEATHS = {
    "question not yet committed": (ASKED, "BEFORE", "button"),
    "asked": (ASKED, "AFTER", "words"),
    "question on the wire": (QUESTION.format("sending"), "AFTER", "button"),
    "question sent, not known": (QUESTION.format("sent"), "BEFORE", "words"),
    "answer lost": (ANSWERED, "BEFORE", "words"),
    "answered": (ANSWERED, "AFTER", "button"),
    "intent recorded, not run": (INTENT, "AFTER", "button"),
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_death_at_any_state_of_a_question_asks_once_and_runs_once(
    make_world, model, tmp_path: Path, name: str
) -> None:
    state, when, answer = DEATHS[name]
    skills = drop_mailer(tmp_path / "own")
    server, graph = make_world(
        start=False,
        model=model(calling(ANA)),
        graph={"retry_pause": 0.2},
        SKILLS_DIR=str(skills),
        SEND_RECONCILE_SECONDS="1",
    )
    sound = dict(server.env)
    server.env = sound | injected(**{f"DIE_{when}": state})
    server.start()
    graph.say("p0", "mail, please")
    before = list(DEATHS).index(name) < list(DEATHS).index("answer lost")
    if not before:
        _answer(graph, answer)
    assert server.process.wait(30) == -signal.SIGKILL
    begun = bool(server.rows(INTENT))
    known = bool(server.rows(RESULT))
    sent = len(marks(skills, "sent"))

    server.env = sound
    server.start()
    if before:
        wait_for(lambda: server.rows(QUESTION.format("sent")), "the question")
        _answer(graph, answer)
    wait_for(lambda: any("result" in text for text in graph.texts("p0")), "the reply")
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end")
    server.stop()

    assert len({question["text"] for question in questions(graph, "p0")}) == 1
    assert len(questions(graph, "p0")) <= 1 + (name == "question on the wire")
    assert len(server.rows("SELECT 1 FROM approvals")) == 1
    replies = [text for text in graph.texts("p0") if "result" in text]
    assert len(replies) == 1
    unknown = begun and not known
    assert ("OUTCOME_UNKNOWN" in replies[0]) == unknown
    assert len(marks(skills, "sent")) == (sent if unknown else 1)


def _answer(graph, answer: str) -> None:
    question = asked(graph, "p0")
    if answer == "button":
        press(graph, "p0", question, "Yes")
    else:
        graph.say("p0", "yes", quoted=question["wamid"])
