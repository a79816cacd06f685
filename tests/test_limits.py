"""Limits on guests and on what is sent: who waits, who is told, and that nothing is lost."""

import asyncio
import base64
import json
import time
from typing import Any

import pytest
from starlette.responses import JSONResponse

from app.simulator.graph import canned_clip
from tests.console.test_pages import Browser
from tests.standins.model import completion, echo
from tests.world import wait_for

PEOPLE = [
    {"id": "owner", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "member", "name": "Mia", "phone": "12125550001", "user_id": "US.11"},
    {"id": "guest", "name": "Gil", "phone": "5511955501234", "user_id": "BR.12"},
]
BUSINESS = {"ACCESS": "everyone", "ALLOWED_PHONE_NUMBERS": "12125550001"}


@pytest.fixture
def business(make_world: Any) -> Any:
    """Makes a server that an owner, a member and a guest write to."""
    return lambda *more, **options: make_world(
        **{"crowd": 0, "graph": {"people": [*PEOPLE, *more]}, **BUSINESS, **options}
    )


def waiting(server: Any) -> dict[str, int]:
    rows = server.rows(
        "SELECT waits_for, count(*) AS messages FROM inbox WHERE waits_for <> '' AND done_at IS NULL"
        " AND turn_id IS NULL GROUP BY waits_for"
    )
    return {row["waits_for"]: row["messages"] for row in rows}


def used(server: Any) -> Any:
    return json.loads(server.recado("usage", "--json"))


def test_a_guest_waits_who_has_had_all_answers_and_as_a_member_is_answered_at_once(business: Any) -> None:
    server, graph = business(GUEST_LIMIT="2/day")
    graph.ask("owner", "hello")
    for _ in range(2):
        graph.ask("guest", "que horas são em Lisboa?")
    assert "Guardei sua mensagem" in graph.ask("guest", "que horas são em Manaus?")
    graph.say("guest", "que horas são em Recife?")
    wait_for(lambda: waiting(server) == {"guest": 2}, "two messages that wait")
    assert used(server)["waiting"] == {"guest": 2}
    limit = "Used up: the answers that one guest may have"
    wait_for(lambda: limit in str(graph.texts("owner")), "the owner is told")
    graph.say("owner", "/member +5511955501234")
    answer = graph.reply("guest", 4)
    assert "Manaus" in answer
    assert "Recife" in answer
    assert sum("Used up" in text for text in graph.texts("owner")) == 1


def test_an_owner_gives_one_person_limits_of_their_own(business: Any) -> None:
    server, graph = business(GUEST_LIMIT="1/day")
    asked = "what time is it in London?"
    for person in ("member", "guest"):
        graph.ask(person, asked)
    ids = {row["value"]: row["person_id"] for row in server.rows("SELECT value, person_id FROM aliases")}
    member, guest = (f"/console/people/{ids[phone]}" for phone in ("12125550001", "5511955501234"))
    browser = Browser(server)
    assert browser.send(member, f"{member}/limits", answers="two") == 400
    assert browser.send(member, f"{member}/limits", answers="1", tokens="") == 303
    assert "as much as I may for now" in graph.ask("member", asked)
    assert waiting(server) == {"person": 1}
    graph.ask("guest", asked)
    assert browser.send(guest, f"{guest}/limits", answers="3", tokens="") == 303  # it counts at once
    graph.reply("guest", 3)
    assert browser.send(member, f"{member}/limits", answers="0", tokens="1") == 303
    graph.reply("member", 3)
    assert 'value="1"' in browser.page(member)


@pytest.mark.slow
def test_a_budget_is_never_passed_and_guests_stop_first(business: Any) -> None:
    server, graph = business(MONTHLY_MESSAGE_BUDGET="50", GUEST_LIMIT="99/hour")
    asked = "what time is it in London?"
    graph.ask("owner", asked)
    for _ in range(41):  # 38 of them are the 40th message, with the owner's two
        graph.ask("guest", "que horas são em Lisboa?")
    graph.say("guest", "e em Manaus?")
    wait_for(lambda: waiting(server) == {"budget": 1}, "a message that waits")
    wait_for(lambda: len(graph.sends()) == 45, "what the owner is told")
    graph.ask("member", asked)  # the last for members
    graph.say("member", asked)
    for _ in range(3):
        graph.say("owner", asked)
        time.sleep(0.3)  # a turn of its own
    wait_for(lambda: len(server.rows("SELECT 1 FROM turns WHERE state = 'done'")) >= 46, "their turns")
    wait_for(lambda: len(graph.sends()) == 48, "all but the reserve for alerts")
    told = str(graph.texts("owner"))
    assert "80 % is used up of the month's budget for messages" in told
    assert "Used up: the month's budget for messages" in told
    assert [len(graph.sends(person)) for person in ("guest", "member")] == [41, 1]
    server.restart(MONTHLY_MESSAGE_BUDGET="100")
    assert "Manaus" in graph.reply("guest", 42)
    graph.reply("member", 2)
    metrics = server.http.get("/metrics").text
    assert 'recado_month_messages{category="service"}' in metrics


@pytest.mark.slow
def test_what_guests_write_counts_before_the_model_reads_it(business: Any, model: Any) -> None:
    async def slow(body: dict[str, Any]) -> JSONResponse:
        tokens = len(json.dumps(body["messages"])) // 4
        if tokens > 2_000:
            await asyncio.sleep(0.5)
        counted = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
        return JSONResponse(completion(echo(body)) | {"usage": counted})

    crowd = [
        {"id": f"q{n}", "name": f"Q{n}", "phone": f"551195550000{n}", "user_id": f"BR.9{n}"} for n in range(6)
    ]
    played = model(slow)
    server, graph = business(*crowd, TOKEN_LIMIT="20000/day", model=played)
    for number in range(2):
        graph.ask(f"q{number}", "hi")
    text = "a long message " * 250
    graph.faults(batch=100)
    graph.inbound(*({"person": f"q{n}", "type": "text", "text": text} for n in range(6) for _ in range(5)))
    wait_for(lambda: waiting(server).get("tokens", 0) >= 5, "guests who wait for tomorrow", seconds=60)
    [spent] = server.rows("SELECT sum(amount) AS tokens FROM used WHERE what = 'tokens'")
    assert 6_000 < spent["tokens"] <= 20_000


def test_what_is_too_long_for_the_rest_of_the_limit_waits_or_is_not_heard(business, model):
    cost = [100]

    def play(body: dict[str, Any]) -> JSONResponse:
        counted = {"prompt_tokens": cost[0], "completion_tokens": 0, "total_tokens": cost[0]}
        return JSONResponse(completion(echo(body)) | {"usage": counted})

    played = model(play)
    played.hear = lambda data: "hello there"
    server, graph = business(crowd=4, TOKEN_LIMIT="3600/day", model=played)
    graph.ask("owner", "hello")
    graph.ask("p2", "hello")
    assert "I kept your message" in graph.ask("p2", "a" * 4_000)
    assert waiting(server) == {"tokens": 1}
    note = base64.b64encode(canned_clip() + bytes(700_000)).decode()
    graph.inbound({"person": "p3", "type": "voice", "data": note, "mime_type": "audio/ogg"})
    graph.reply("p3")
    assert "it is too large to be read" in played.main_calls[-1]["messages"][-1]["content"]
    assert not played.heard
    assert "Used up" not in str(graph.texts("owner"))
    cost[0] = 3_000
    graph.ask("p3", "hello again")
    graph.say("p3", "and again")
    told = "Used up: what the language model may read"
    wait_for(lambda: told in str(graph.texts("owner")), "the owner is told")


def test_a_guests_voice_notes_are_heard_only_for_a_turn_they_may_have(business: Any, model: Any) -> None:
    played = model(echo)
    played.hear = lambda data: "hello there"
    other = {"id": "other", "name": "Bia", "phone": "5511955501235", "user_id": "BR.13"}
    server, graph = business(other, GUEST_LIMIT="1/day", TOKEN_LIMIT="90000/day", model=played)
    note = base64.b64encode(canned_clip()).decode()
    voice = {"person": "other", "type": "voice", "data": note, "mime_type": "audio/ogg"}
    graph.inbound(voice)
    graph.reply("other")
    graph.inbound(voice)
    wait_for(lambda: waiting(server) == {"guest": 1}, "the next note, which waits")
    assert len(played.heard) == 1
    voice["person"] = "guest"
    graph.inbound(*[voice] * 8)
    graph.reply("guest", seconds=60)
    prompt = played.main_calls[-1]["messages"][-1]["content"]
    assert [prompt.count(words) for words in ("hello there", "it was not looked at")] == [5, 3]
    [spent] = server.rows("SELECT sum(amount) AS tokens FROM used WHERE what = 'tokens'")
    assert spent["tokens"] >= 5 * 100 + 110
    graph.inbound(*[voice] * 3)
    wait_for(lambda: waiting(server) == {"guest": 4}, "notes that wait for tomorrow")
    assert len(played.heard) == 1 + 5


def test_a_budget_in_money_holds_for_a_country_without_a_rate(business: Any) -> None:
    somebody = {"id": "mx", "name": "Max", "phone": "525550100077", "user_id": "MX.77"}
    server, graph = business(somebody, MONTHLY_MESSAGE_BUDGET="0.3 USD")
    held = lambda: waiting(server) == {"budget": 1}  # noqa: E731
    for number in range(1, 12):  # 0.026 each, as to Argentina, of what is left for guests
        graph.say("mx", "what time is it in London?")
        wait_for(lambda number=number: held() or len(graph.sends("mx")) >= number, "what becomes of it")
        if held():
            break
    assert 3 <= len(graph.sends("mx")) <= 6
    assert used(server)["cost"] == 0


def test_a_budget_in_a_currency_without_rates_is_named_at_the_start(make_world: Any) -> None:
    server, _ = make_world(start=False, crowd=0, MONTHLY_MESSAGE_BUDGET="25 EUR")
    assert "MONTHLY_MESSAGE_BUDGET" in server.recado("serve", fails=True)
