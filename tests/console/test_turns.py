"""The page of a turn: its steps, why tools were offered, and running it again without an effect."""

import re
from typing import Any

from tests.console.test_pages import Browser


def test_a_turn_shows_its_steps_and_runs_again_without_an_effect(offline_town: Any) -> None:
    server, graph = offline_town.server, offline_town.graph
    person = offline_town.newcomer()
    graph.say(person, "note: buy <i>bread</i>")
    graph.reply(person)
    browser = Browser(server)
    [turn] = server.rows(
        "SELECT t.id FROM turns t JOIN messages m ON m.turn_id = t.id WHERE m.text LIKE '%bread%' LIMIT 1"
    )
    where = f"/console/turns/{turn['id']}"
    page = browser.page(where)
    steps = re.findall(r'<details class="(\w+)">', page)
    assert steps[:2] == ["wait", "route"]
    assert steps.count("model") == 2
    assert {"tool", "send"} <= set(steps)
    assert "Why each tool was offered" in page
    assert "best of a chosen category" in page
    assert "&lt;i&gt;bread" in page
    assert "<i>bread" not in page
    notes = "SELECT count(*) FROM skill_data WHERE skill = 'notes'"
    before = (
        server.rows(notes)[0][0],
        len(graph.sends(person)),
        server.rows("SELECT count(*) FROM journal")[0][0],
    )
    secret = re.search(r'name="csrf" value="(\w+)"', page)
    assert secret is not None
    again = browser.http.post(f"{where}/replay", data={"csrf": secret[1]})
    assert "[DRY-RUN] save_note" in again.text
    assert before == (
        server.rows(notes)[0][0],
        len(graph.sends(person)),
        server.rows("SELECT count(*) FROM journal")[0][0],
    )
