"""kill -9 between each two writes of an install: kept apart, asked, answered, bytes moved, pinned, told.

After the start the skill is installed once, with exactly the bytes of the card, and what was left half done
is gone; at no instant is there a version that is not whole.
"""

import signal
from pathlib import Path
from typing import Any

import pytest

from app.skills.installed import current, digest
from tests.chaos.machine import injected
from tests.mailer import asked, press, questions
from tests.tides import SKILL, TOOLS, Web, obeys, say
from tests.world import open_work, wait_for

pytestmark = pytest.mark.slow

SHA = "[0-9a-f]{64}"
ASKED = "SELECT 1 FROM approvals WHERE state = 'open'"
QUESTION_SENT = "SELECT 1 FROM outbox WHERE source LIKE 'approval:%' AND state = 'sent'"
RESULT = "SELECT 1 FROM journal WHERE key LIKE 'tool:%'"

# What befalls the question itself, and the reply, is as in test_consent_states and test_states.
BEFORE_THE_ANSWER = {
    "fetched, not kept": (f"/quarantine/{SHA}/files$", "RENAMING"),
    "kept, not where from": (r"/origin\.json$", "RENAMING"),
    "kept, question lost": (ASKED, "BEFORE"),
}
MOVING = {
    "bytes written, not in place": (f"/skills/tides/{SHA}$", "RENAMING"),
    "bytes in place, not pinned": (r"/skills/tides/installed\.json$", "RENAMING"),
    "pinned, still kept apart": (rf"/quarantine/\.{SHA}-", "RENAMING"),
    "installed, result lost": (RESULT, "BEFORE"),
}
NEW = {"SKILL.md": SKILL, "scripts/tools.py": TOOLS, "references/new.md": "New.\n"}
OLD = {"SKILL.md": SKILL, "scripts/tools.py": TOOLS.replace("high_tide", "old_tide")}


@pytest.mark.parametrize("name", [*BEFORE_THE_ANSWER, "bytes in place, not pinned"])
def test_a_death_at_any_state_of_an_install_installs_once(make_world, model, web: Web, name: str) -> None:
    state = (BEFORE_THE_ANSWER | MOVING)[name]
    server, graph, sound = _server(make_world, model)
    server.env = sound | injected(**{f"DIE_{state[1]}": state[0]})
    web.start(server)
    replies = _install_through_a_death(server, graph, web, sound, answers_first=name in MOVING)
    assert len(replies) == len(questions(graph, "p0")) == 1
    assert len(server.rows("SELECT 1 FROM approvals")) == 1


@pytest.mark.parametrize("name", MOVING)
def test_a_death_while_an_update_moves_leaves_the_old_version_or_the_new_one(
    make_world, model, web: Web, name: str
) -> None:
    server, graph, sound = _server(make_world, model)
    web.start(server)
    say(graph, "p0", "install_skill_from_url", url=web.put("/tides.zip", OLD))
    press(graph, "p0", asked(graph, "p0"), "Install")
    wait_for(lambda: current(server.folder) and not open_work(server), "the old version")
    server.stop()
    condition, when = MOVING[name]
    if when == "BEFORE":
        condition = f"{condition} GROUP BY 1 HAVING count(*) = 2"
    server.env = sound | injected(**{f"DIE_{when}": condition})
    web.start(server)
    replies = _install_through_a_death(server, graph, web, sound, answers_first=True, count=2)
    assert len(replies) == 2


def _server(make_world: Any, model: Any) -> tuple[Any, Any, dict[str, str]]:
    server, graph = make_world(
        start=False, model=model(obeys), graph={"retry_pause": 0.2}, SEND_RECONCILE_SECONDS="1"
    )
    return server, graph, dict(server.env)


def _install_through_a_death(
    server: Any, graph: Any, web: Web, sound: dict[str, str], *, answers_first: bool, count: int = 1
) -> list[str]:
    """Asks for the new version and says yes, before or after the death; gives what was told of it."""
    say(graph, "p0", "install_skill_from_url", url=web.put("/tides.zip", NEW))
    if answers_first:
        press(graph, "p0", asked(graph, "p0", count), "Install")
    assert server.process.wait(30) == -signal.SIGKILL
    _require_whole(server.folder)
    if server.rows(ASKED) or answers_first:
        web.put("/tides.zip", {"SKILL.md": SKILL + "Evil.\n"})

    server.env = sound
    web.start(server)
    _require_whole(server.folder)
    if not answers_first:
        wait_for(lambda: server.rows(QUESTION_SENT), "the question")
        press(graph, "p0", asked(graph, "p0", count), "Install")
    wait_for(lambda: len(_replies(graph)) >= count, "the reply")
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end")
    server.stop()
    (made,) = current(server.folder)
    made.check()
    assert made.sha256 == digest({path: text.encode() for path, text in NEW.items()})
    assert not list((server.folder / "quarantine").iterdir())
    if count > 1:  # what an update leaves of the version before goes at a start
        web.start(server)
    assert {path.name for path in made.folder.parent.iterdir()} == {"installed.json", made.sha256}
    return _replies(graph)


def _replies(graph: Any) -> list[str]:
    return [text for text in graph.texts("p0") if "✓ Installed" in text]


def _require_whole(folder: Path) -> None:
    """Whatever a start would load now is what somebody approved."""
    for installed in current(folder):
        installed.check()
