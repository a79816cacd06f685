"""Example phrases of what was installed, written by the model in the background."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.mailer import asked, press
from tests.standins.model import is_classifier, last_user_text
from tests.tides import SKILL, TOOLS, Web, install, obeys, say, told
from tests.world import wait_for

pytestmark = pytest.mark.slow

SLANG = "gnarly swell yo"
WRITTEN = {"high_tide": {"en": [SLANG, "{place}"], "es": ["olón bravo"]}, "other": {"en": ["no"]}}
OWN = 'high_tide: {en: ["when is it high in {place}"]}\n'


def is_writing(body: dict[str, Any]) -> bool:
    return "You write example messages" in str(body["messages"][0]["content"])


def writes(body: dict[str, Any]) -> Any:
    if is_classifier(body) and SLANG in last_user_text(body):
        return '{"categories": []}'
    return f"Sure!\n{json.dumps(WRITTEN)}" if is_writing(body) else obeys(body)


def put(web: Web, tools: str = TOOLS, more: dict[str, str] | None = None) -> str:
    files = {"SKILL.md": SKILL.format(address=web.site.url), "scripts/tools.py": tools}
    return web.put("/tides.zip", files | (more or {}))


def written(server: Any) -> Path:
    return Path(server.folder / "skills" / "tides" / "phrases.json")


def asked_to_write(played: Any) -> list[dict[str, Any]]:
    return [body for body in played.requests if is_writing(body)]


def test_the_model_writes_them_once_for_people_here_and_an_update_and_a_removal_follow(
    make_world: Any, model: Any, web: Web
) -> None:
    played = model(writes)
    server, graph = make_world(start=False, model=played)
    web.start(server)
    install(graph, put(web), "Install+trust")
    wait_for(written(server).exists, "the phrases")
    (body,) = asked_to_write(played)
    assert "please" not in str(body["messages"])  # nothing of what people wrote
    assert "these languages: en (English)." in body["messages"][0]["content"]
    kept = json.loads(written(server).read_text())
    assert kept["high_tide"]["en"] == [SLANG]
    assert kept.keys() == {"high_tide", "ask_outside"}
    assert "high_tide" in server.recado("route", SLANG)
    graph.say("p0", SLANG)
    told(graph, "p0", f"you said: {SLANG}")
    assert "high_tide" in [tool["function"]["name"] for tool in played.main_calls[-1]["tools"]]
    assert SLANG not in json.dumps([played.main_calls[-1]["messages"][:-1], played.main_calls[-1]["tools"]])
    graph.say("p0", "/help")
    assert SLANG not in told(graph, "p0", "Says when the tide is high")
    say(graph, "p0", "high_tide", place="Lota")
    told(graph, "p0", "high at noon in Lota")  # the bytes are still those of the card
    server.stop()
    web.start(server)
    install(graph, put(web, TOOLS.replace("high_tide", "low_tide")), "Install+trust", count=2)
    wait_for(lambda: len(asked_to_write(played)) == 2, "the update's phrases")
    shown = json.loads(asked_to_write(played)[1]["messages"][1]["content"])
    assert [one["tool"] for one in shown] == ["low_tide"]
    say(graph, "p0", "remove_skill", name="tides")
    press(graph, "p0", asked(graph, "p0", 3), "Yes")
    told(graph, "p0", "✓ Removed: tides")
    assert not written(server).parent.exists()


def test_what_the_author_wrote_wins_and_the_model_is_not_asked_about_it(make_world, model, web):
    played = model(writes)
    server, graph = make_world(start=False, model=played)
    web.start(server)
    install(graph, put(web, more={"assets/phrases.yaml": OWN}), "Install+trust")
    wait_for(lambda: asked_to_write(played), "the other tool's turn")
    shown = json.loads(asked_to_write(played)[0]["messages"][1]["content"])
    assert [one["tool"] for one in shown] == ["ask_outside"]


def test_an_install_waits_for_no_phrases_and_a_kill_only_puts_them_off(make_world, model, web):
    held = asyncio.Event()

    async def never() -> str:
        await held.wait()
        return ""

    def play(body: dict[str, Any]) -> Any:
        return never() if is_writing(body) else obeys(body)

    played = model(play)
    server, graph = make_world(start=False, model=played)
    web.start(server)
    install(graph, put(web), "Install+trust")
    wait_for(lambda: asked_to_write(played), "the question to the model")
    say(graph, "p0", "high_tide", place="Lota")
    told(graph, "p0", "high at noon in Lota")
    server.kill()
    assert not written(server).exists()
    played.play = writes
    web.start(server)
    wait_for(written(server).exists, "the phrases")
