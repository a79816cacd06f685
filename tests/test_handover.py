"""A person of the business answers: the assistant is silent there until it is given the conversation back."""

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.console.test_pages import Browser
from tests.standins.model import ModelServer, none_needed
from tests.world import Graph, Server, open_work, standing, wait_for

PEOPLE = [
    {"id": "owner", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "ana", "name": "Ana", "phone": "5215550100001", "user_id": "MX.11"},
    {"id": "uma", "name": "Uma", "phone": "", "user_id": "AR.12", "username": "uma.escribe"},
    {"id": "eva", "name": "Eva", "phone": "5215550100003", "user_id": "MX.13"},
    {"id": "beto", "name": "Beto", "phone": "5215550100004", "user_id": "MX.14"},
]


def change(field: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return a signed webhook's body with one change."""
    metadata = {"display_phone_number": "15550100100", "phone_number_id": "1"}
    value = {"messaging_product": "whatsapp", "metadata": metadata, **value}
    changes = [{"field": field, "value": value}]
    return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": changes}]}


def echo(text: str, wamid: str, to: dict[str, str], field: str = "smb_message_echoes") -> dict[str, Any]:
    written = {"from": "15550100100", **to, "id": wamid, "timestamp": str(int(time.time())), "type": "text"}
    return change(field, {"message_echoes": [{**written, "text": {"body": text}}]})


def sends_with(graph: Any, person: str, words: str) -> list[dict[str, Any]]:
    return [send for send in graph.sends(person) if words in str(send)]


ANA, UMA, EVA = {"to": "5215550100001"}, {"to_user_id": "AR.12"}, {"to": "5215550100003"}


@pytest.fixture(scope="module")
def _standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph, ModelServer]]:
    folder, options = tmp_path_factory.mktemp("handover"), {"ACCESS": "everyone", "SWEEP_SECONDS": "0.2"}
    for town in standing(folder, lambda _: "Good.", crowd=0, graph={"people": PEOPLE}, **options):
        town.graph.ask("owner", "hello")
        yield town.server, town.graph, town.model


@pytest.fixture
def business(_standing: tuple[Server, Graph, ModelServer]) -> tuple[Server, Graph, ModelServer]:
    """A server whose owner has written; its model answers what a test lets it answer."""
    server, _, played = _standing
    wait_for(lambda: not open_work(server), "the end of the test before")
    played.requests.clear()
    return _standing


def test_the_assistant_is_silent_while_a_person_answers(business: Any) -> None:
    server, graph, played = business
    played.play = lambda body: "It is ten." if "hour" in str(body["messages"][-1]) else "Good."
    graph.ask("ana", "hello, what is the hour?")
    assert server.post(echo("Hi Ana, it is Olga herself.", "wamid.ECHO1", ANA)).status_code == 200
    assert server.post(echo("Hi Ana, it is Olga herself.", "wamid.ECHO1", ANA)).status_code == 200  # again
    graph.say("ana", "thanks! and is Friday free?")
    (notice,) = wait_for(lambda: sends_with(graph, "owner", "Ana (+525550100001) is answered"), "the notice")
    assert len(graph.sends("ana")) == 1
    asked = len(played.main_calls)
    friday = "SELECT 1 FROM messages WHERE text LIKE '%Friday free_'"
    wait_for(lambda: server.rows(friday), "her question, which the next words answer")
    server.post(echo("Friday at nine.", "wamid.ECHO2", ANA))
    graph.say("ana", "great. what was your name?")
    reply = notice["body"]["interactive"]["action"]["buttons"][0]["reply"]
    graph.inbound({"person": "owner", "type": "button", "reply": reply})
    graph.reply("ana", 2)  # what nobody answered yet is answered now
    assert len(played.main_calls) == asked + 1
    shown = played.main_calls[-1]["messages"]
    assert [one["role"] for one in shown] == ["system", *["user", "assistant"] * 3, "user"]
    assert "is Friday free" in shown[5]["content"]
    assert shown[6]["content"].endswith("answered this themselves:]\nFriday at nine.")
    assert "what was your name" in shown[7]["content"]
    found = server.rows("SELECT text FROM messages WHERE wamid LIKE 'wamid.ECHO%' ORDER BY id")
    assert [row["text"] for row in found] == ["Hi Ana, it is Olga herself.", "Friday at nine."]


def test_the_reply_of_a_turn_that_runs_is_dropped(business: Any) -> None:
    written = threading.Event()

    async def play(body: dict[str, Any]) -> str:
        if (none := none_needed(body)) is None:
            await asyncio.to_thread(written.wait, 20)
        return none or "too late"

    server, graph, played = business
    played.play = play
    graph.say("uma", "hola, ¿están abiertos?")
    wait_for(lambda: played.main_calls, "the turn")
    server.post(echo("Sí, hasta las seis.", "wamid.E1", UMA, field="message_echoes"))
    written.set()
    wait_for(lambda: not server.rows("SELECT 1 FROM turns WHERE state <> 'done'"), "the turn's end")
    server.kill()
    server.start()
    server.post(echo("/bot", "wamid.E2", UMA))  # written in the customer's chat, it gives that back
    graph.ask("uma", "gracias")
    assert graph.texts("uma") == ["too late"]
    shown = [one["content"] for one in played.main_calls[-1]["messages"]]
    assert "están abiertos" in shown[1]
    assert "hasta las seis" in shown[2]


def test_a_turn_that_runs_is_stopped(business: Any) -> None:
    async def play(body: dict[str, Any]) -> str:
        if (none := none_needed(body)) is None:
            await asyncio.sleep(30)
        return none or "too late"

    server, graph, played = business
    played.play = play
    browser = Browser(server)

    def reply() -> None:
        where = browser.conversation("abren")
        assert browser.send(where, f"{where}/reply", text="Sí, hasta las seis.") == 303

    running = lambda number: f"recado_running_turns {number}.0" in server.http.get("/metrics").text  # noqa: E731
    for count, stop in enumerate(
        (
            reply,
            lambda: server.post(echo("Sí, hasta las seis.", "wamid.E3", EVA)),
            lambda: graph.say("owner", "/human 5215550100003"),
        ),
        1,
    ):
        graph.say("eva", "hola, ¿abren hoy?")
        wait_for(lambda count=count: len(played.main_calls) == count, "the turn")
        assert running(1)
        stop()
        wait_for(lambda: running(0), "the turn's end", 20)
        server.post(echo("/bot", f"wamid.B{count}", EVA))
    assert "too late" not in graph.texts("eva")


def test_another_handler_of_the_number_answers(business: Any) -> None:
    server, graph, played = business
    played.play = lambda body: "It is ten."
    message = {"from": "5215550100004", "id": "wamid.S1", "timestamp": str(int(time.time())), "type": "text"}
    contacts = [{"wa_id": "5215550100004", "profile": {"name": "Beto"}}]
    messages = [{**message, "text": {"body": "¿qué hora es?"}}]
    server.post(change("standby", {"contacts": contacts, "messages": messages}))
    graph.say("beto", "¿hola?")
    his = "SELECT 1 FROM messages WHERE text LIKE '¿qué hora es_' OR text LIKE '¿hola_'"
    wait_for(lambda: len(server.rows(his)) == 2, "the messages")
    time.sleep(0.7)
    assert not graph.sends("beto")
    passed = {"sender": {"phone_number": "5215550100004"}, "control_passed": {}}
    server.post(change("messaging_handovers", passed))
    assert graph.reply("beto") == "It is ten."


@pytest.mark.slow
@pytest.mark.both
def test_a_customer_asks_for_a_person(make_world: Any) -> None:
    _, graph = make_world(
        crowd=0,
        graph={"people": PEOPLE},
        ACCESS="everyone",
        HANDOVER_MINUTES="0.02",
        OPENING_HOURS="mon-sun 00:00-00:01",
        TIMEZONE="America/Mexico_City",
        SWEEP_SECONDS="0.2",
    )
    graph.ask("owner", "hello")
    told = "✓ Avisé a una persona. Te responde por aquí; vuelve a haber alguien "
    assert graph.ask("ana", "quiero hablar con una persona\u202e").startswith(told)
    asked = wait_for(lambda: sends_with(graph, "owner", "asks for a person"), "the owner's message")
    card = asked[0]["body"]["interactive"]
    assert "\u202e" not in card["body"]["text"]
    said = "quiero hablar con una persona\\u202e"
    assert f"Ana (+525550100001) asks for a person: {said}" in card["body"]["text"]
    assert "00:00" in graph.reply("ana", 2)  # nobody came
    graph.ask("ana", "quiero hablar con una persona")
    assert "00:00" in graph.reply("ana", 4)
    wait_for(lambda: len(sends_with(graph, "owner", "asks for a person")) == 2, "the owner to be told again")
    buttons = card["action"]["buttons"]
    graph.inbound({"person": "owner", "type": "button", "reply": buttons[0]["reply"]})
    wait_for(lambda: sends_with(graph, "owner", "You answer 525550100001"), "silence")
    graph.say("ana", "¿qué hora es?")
    time.sleep(0.7)
    assert len(graph.sends("ana")) == 4
    graph.inbound({"person": "owner", "type": "button", "reply": buttons[1]["reply"]})
    assert ":" in graph.reply("ana", 5)


@pytest.mark.slow
def test_an_owner_is_told_of_ten_who_ask_and_the_console_shows_whom_nobody_answered(make_world: Any) -> None:
    crowd = [
        {"id": f"q{n}", "name": f"Q{n}", "phone": f"55119555000{n:02}", "user_id": f"BR.9{n}"}
        for n in range(13)
    ]
    server, graph = make_world(
        crowd=0, graph={"people": [*PEOPLE, *crowd]}, ACCESS="everyone",
        HANDOVER_MINUTES="0.01", SWEEP_SECONDS="0.2",
    )  # fmt: skip
    graph.ask("owner", "hello")
    for one in crowd:
        graph.say(one["id"], "quero falar com uma pessoa")
    for one in crowd:
        graph.reply(one["id"], 2)
    assert Browser(server).page("/console/conversations").count(">asks for a person<") == 13
    wait_for(lambda: not open_work(server), "every card")
    assert len(sends_with(graph, "owner", ") asks for a person")) == 10
