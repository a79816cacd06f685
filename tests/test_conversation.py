"""A message in, a durable turn, a reply out: through the webhook, a real file and Meta's stand-in."""

import asyncio
import json
import re
import threading
import time

import pytest

from tests.standins.model import (
    caller,
    calls,
    echo,
    is_classifier,
    last_user_text,
    none_needed,
    results,
    routed,
    slow_until,
)
from tests.test_media_in import photo, pictures_in
from tests.world import open_work, sign, text_body, wait_for


def test_a_message_gets_one_reply_whose_status_comes_back_and_whose_prompt_and_cost_can_be_looked_up(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    wamid = graph.say(person, "hello")
    assert graph.reply(person) == "you said: hello"
    (send,) = graph.sends(person)
    read = "SELECT 1 FROM statuses WHERE status = 'read' AND wamid = ?"
    wait_for(lambda: server.rows(read, send["wamid"]), "the read status")
    (row,) = server.rows("SELECT id, state FROM outbox WHERE wamid = ?", send["wamid"])
    assert (row["state"], row["id"]) == ("sent", send["body"]["biz_opaque_callback_data"])
    assert wamid in [one["body"]["message_id"] for one in graph.log()["entries"] if one["kind"] == "typing"]
    (kept,) = server.rows("SELECT text FROM messages WHERE wamid = ?", send["wamid"])
    assert kept["text"] == "you said: hello"
    turn = server.recado("trace").splitlines()[1].split()
    assert (turn[-4], turn[-2]) == ("200", "20")  # prompt and answer
    shown = server.recado("trace", turn[0])
    assert re.findall(r"^Model call (\S+):", shown, re.MULTILINE) == ["route", "llm:0"]
    assert "hello" in shown.partition("Model call llm:0")[2]


def test_a_redelivered_body_five_times_at_once_gets_one_reply(make_world, model):
    server, graph = make_world(model=model(echo))
    graph.faults(duplicate=5)
    graph.inbound(*({"person": f"p{n % 4}", "type": "text", "text": f"m{n}"} for n in range(12)))
    wait_for(lambda: len(server.rows("SELECT 1 FROM messages WHERE direction = 'in'")) == 12, "every message")
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end of the storm")
    assert server.rows("SELECT 1 FROM messages WHERE direction = 'in' AND turn_id IS NULL") == []
    assert len(graph.sends()) == len(server.rows("SELECT 1 FROM turns"))
    metrics = server.http.get("/metrics").text
    assert 'recado_messages_total{outcome="duplicate"} 48.0' in metrics


def test_quick_messages_are_one_turn_and_an_edit_of_a_waiting_one_takes_its_place(make_world, model):
    played = model(lambda body: none_needed(body) or last_user_text(body))
    server, graph = make_world(model=played, BURST_QUIET_SECONDS="0.7")
    texts = ("first", "second", "third")
    graph.inbound(*({"person": "p0", "type": "text", "text": text} for text in texts))
    first = graph.say("p1", "buy two tickets")
    graph.inbound({"person": "p1", "type": "edit", "original": first, "text": "buy three tickets"})
    picture = {"person": "p2", "type": "image", "data": photo(), "mime_type": "image/jpeg"}
    graph.inbound(picture, picture, {"person": "p2", "type": "text", "text": "which is better?"})
    assert all(text in graph.reply("p0") for text in texts)
    assert graph.reply("p1").endswith("buy three tickets")
    assert graph.reply("p2").endswith("which is better?")
    [shown] = [body for body in played.main_calls if pictures_in(body)]
    assert len(pictures_in(shown)) == 2
    wait_for(lambda: not open_work(server), "the turns")
    assert len(graph.sends()) == len(server.rows("SELECT 1 FROM turns")) == 3
    graph.inbound({"person": "p1", "type": "edit", "original": first, "text": "buy four tickets"})
    assert graph.reply("p1", 2).endswith("buy four tickets")


def test_a_message_that_was_acted_on_and_is_deleted_gets_an_offer_to_undo(offline_town):
    server, graph = offline_town.server, offline_town.graph
    person, other = offline_town.newcomer(), offline_town.newcomer()
    graph.faults(batch=2)
    said = ("hola", "anota que la clave del portón es verde")
    wamids = graph.inbound(*[{"person": person, "type": "text", "text": text} for text in said])
    graph.reply(person)
    graph.faults(batch=1)
    wait_for(lambda: not open_work(server), "the turn")
    for wamid in [*wamids, *wamids]:  # of one turn, which is undone once
        graph.inbound({"person": other, "type": "revoke", "original": wamid})
        graph.inbound({"person": person, "type": "revoke", "original": wamid})
    answer = graph.reply(person, 2)
    assert "Borraste tu mensaje, pero ya había hecho esto:\n✓ Nota guardada: " in answer
    assert "Si no lo quieres, dime que lo deshaga." in answer
    assert len(graph.texts(person)) == 2
    assert graph.texts(other) == []


def test_a_slow_model_on_one_conversation_does_not_delay_another(town):
    quick = threading.Event()
    town.model.play = slow_until(quick)
    server, graph, person, other = town.server, town.graph, town.newcomer(), town.newcomer()
    graph.say(person, "slow please")
    wait_for(lambda: server.rows("SELECT 1 FROM turns WHERE state = 'running'"), "the slow turn")
    assert graph.ask(other, "quick") == "you said: quick"
    assert graph.texts(person) == []
    quick.set()
    assert graph.reply(person) == "you said: slow please"


def test_tools_of_a_round_run_and_their_results_reach_the_model(town):
    wanted = ("calculate", {"expression": "6*7"}), ("no_such_tool", {}), ("calculate", {"bad": 1})
    town.model.play = caller(*wanted, to="calculator")
    graph, person = town.graph, town.newcomer()
    assert graph.ask(person, "how much is 6*7") == "done"
    parts = results(town.model.main_calls[-1])
    assert parts[0]["ok"]
    assert "42" in json.dumps(parts[0]["data"])
    assert [part["error"]["code"] for part in parts[1:]] == ["UNKNOWN_TOOL", "BAD_REQUEST"]
    offered = [tool["function"]["name"] for tool in town.model.main_calls[0]["tools"]]
    assert "calculate" in offered
    assert len(offered) <= 8


def test_after_five_rounds_of_calls_the_model_must_answer(town):
    asked = []

    @routed("calculator")
    def play(body):
        asked.append(body)
        if "tools" in body:
            return calls(("calculate", {"expression": f"{len(asked)}+1"}))
        return "enough"

    town.model.play = play
    graph, person = town.graph, town.newcomer()
    assert graph.ask(person, "count") == "enough"
    assert ["tools" in body for body in asked] == [True] * 5 + [False]


def test_commands_need_no_model_and_what_is_none_gets_the_help_in_one_language(town):
    graph, person = town.graph, town.newcomer()
    for written, told in (
        ("/ayuda", "“cuánto es …”"),
        ("/AJUDA ", "“quanto é …”"),
        ("/stop", ""),
        ("/nueva", ""),
        ("Menu", "/stop"),
        ("/xyz", "I do not know /xyz."),
        ("/help", "“what is …”"),
    ):
        reply = graph.ask(person, written)
        assert told in reply
        assert "calculator" not in reply
    assert "cuánto" not in reply
    assert town.model.requests == []
    assert graph.ask(person, "help me with this /xyz") == "you said: help me with this /xyz"


def test_stop_ends_the_running_turn_and_nothing_of_it_is_sent(town):
    async def never(body):
        await asyncio.sleep(20)
        return "too late"

    town.model.play = routed()(never)
    server, graph, person = town.server, town.graph, town.newcomer()
    graph.say(person, "write a novel")
    wait_for(lambda: town.model.main_calls, "the turn to be under way")
    graph.say(person, "/stop")
    graph.reply(person, seconds=5)
    outcomes = server.rows("SELECT outcome FROM turns ORDER BY created_at DESC LIMIT 2")
    assert [row["outcome"] for row in outcomes] == ["command", "stopped"]
    assert len(graph.sends(person)) == 1


def test_a_new_conversation_forgets_what_was_said_for_the_prompt(town):
    graph, person = town.graph, town.newcomer()
    graph.ask(person, "my dog is called Firulais")
    graph.ask(person, "what did I say?")
    assert "Firulais" in json.dumps(town.model.main_calls[-1])
    graph.ask(person, "/new")
    graph.ask(person, "and now?")
    assert "Firulais" not in json.dumps(town.model.main_calls[-1])


def test_quoted_texts_of_both_sides_reach_the_model_and_survive_a_restart(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    own = graph.say(person, "the code is 4711")
    graph.reply(person)
    [ours] = [send["wamid"] for send in graph.sends(person)]
    wait_for(lambda: server.rows("SELECT 1 FROM messages WHERE wamid = ?", ours), "our wamid")
    server.restart()
    graph.ask(person, "this one", quoted=own)
    assert "the code is 4711" in last_user_text(town.model.main_calls[-1])
    graph.ask(person, "and yours", quoted=ours)
    newest = last_user_text(town.model.main_calls[-1])
    assert "your earlier message" in newest
    assert "you said: the code is 4711" in newest


def test_the_prompt_changes_only_at_its_end_while_the_tools_stay(town):
    graph, person = town.graph, town.newcomer()
    for text in ("thank you very much", "muchas gracias", "obrigado"):
        graph.ask(person, text)
    first, second, third = (body["messages"] for body in town.model.main_calls)
    assert first[0] == second[0] == third[0]
    assert third[: len(second) - 1] == second[:-1]
    assert "first message" in first[-1]["content"]
    assert "first message" not in second[-1]["content"]
    assert "so far: English" in first[-1]["content"]
    assert "so far: Spanish" in second[-1]["content"]
    assert town.model.main_calls[0]["tools"] == town.model.main_calls[2]["tools"]


def test_a_place_a_contact_and_forwarded_words_are_still_themselves_in_later_prompts(town):
    graph, person = town.graph, town.newcomer()
    place = {"location": {"latitude": 19.4326, "longitude": -99.1332}}
    contact = {"contacts": [{"name": {"formatted_name": "Beto"}, "phones": [{"phone": "+52 1 55 0000"}]}]}
    [where] = graph.inbound({"person": person, "type": "location", **place})
    graph.reply(person, 1)
    graph.inbound({"person": person, "type": "contacts", **contact})
    graph.reply(person, 2)
    order = graph.say(person, "delete all my notes", forwarded=True)
    graph.reply(person, 3)
    graph.ask(person, "what is the weather there?", quoted=where)
    _, first, _, second, _, third, _, newest = town.model.main_calls[-1]["messages"]
    assert "19.4326" in first["content"]
    assert "+52 1 55 0000" in second["content"]
    assert third["content"] == '[Forwarded, somebody else\'s words: "delete all my notes"]'
    assert "19.4326" in newest["content"]
    graph.ask(person, "what does this one ask for?", quoted=order)
    assert "Forwarded, somebody else's words" in town.model.main_calls[-1]["messages"][-1]["content"]
    assert "Commands:" not in graph.ask(
        person, "/help", forwarded=True
    )  # a command that somebody else wrote is none
    graph.inbound({"person": person, "type": "unsupported"})
    graph.reply(person, 7)
    assert "does not pass on" in last_user_text(town.model.main_calls[-1])


@pytest.mark.slow
def test_who_writes_too_fast_is_told_once_and_every_message_is_answered(make_world, model):
    server, graph = make_world(model=model(echo), RATE_LIMIT_MAX="2", RATE_LIMIT_WINDOW="2")
    for text in ("m1", "m1", "m2", "m3"):  # the same words again
        graph.say("p0", text)
    wait_for(lambda: len(server.rows("SELECT 1 FROM inbox")) == 4, "every message to come in")
    wait_for(lambda: not open_work(server), "every message to be answered")
    notices = [text for text in graph.texts("p0") if not text.startswith("you said")]
    assert len(notices) == 1
    said = server.rows("SELECT count(*) AS n FROM messages WHERE direction = 'in' AND turn_id IS NOT NULL")
    assert said[0]["n"] == 4
    assert graph.texts("p0")[-1] == "you said: m3"


def test_a_body_older_than_redeliveries_is_a_dead_letter(town):
    server, phone = town.server, town.phone(town.newcomer())
    kept = "SELECT 1 FROM messages WHERE wamid = ?"
    for days, wamid in ((9, "wamid.old"), (7, "wamid.new")):
        at = str(int(time.time() - days * 86_400))
        assert server.post(text_body(wamid, f"after {days} days", phone, timestamp=at)).status_code == 200
    wait_for(lambda: town.model.main_calls, "the turn of the newer one")
    assert [bool(server.rows(kept, wamid)) for wamid in ("wamid.old", "wamid.new")] == [False, True]
    (dead,) = server.rows("SELECT reason FROM dead_letters ORDER BY id DESC LIMIT 1")
    assert dead["reason"] == "older than 8 days by its own time"


def test_outsiders_get_200_no_reply_and_no_model_call(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    before = len(graph.sends())
    assert server.post(text_body("wamid.x", "hi", "5491122334455")).status_code == 200
    reaction = {"type": "reaction", "reaction": {"message_id": "wamid.x", "emoji": "👍"}}
    assert server.post(text_body("wamid.y", "", "5491122334455", **reaction)).status_code == 200
    graph.ask(person, "hi")
    assert {entry["person"] for entry in graph.sends()[before:]} == {person}
    assert len(town.model.main_calls) == 1
    assert server.rows("SELECT 1 FROM outsiders WHERE value = '5491122334455'")
    assert server.rows("SELECT 1 FROM messages WHERE text = 'hi' AND wamid = 'wamid.x'") == []
    assert "5491122334455" not in server.log
    assert "549…55" in server.log


def test_the_one_time_code_makes_its_sender_the_owner(make_world, model):
    server, graph = make_world(model=model(echo), ALLOWED_PHONE_NUMBERS="", OWNER_PHONE_NUMBERS="")
    printed = wait_for(lambda: server.log.split("from your WhatsApp:")[1:], "the code on the console")
    code = printed[0].split()[0]
    graph.say("p1", "WRON-G234-ABCD")
    assert graph.ask("p2", f" {code.lower()} ")
    (owner,) = server.rows("SELECT p.role, a.value FROM people p JOIN aliases a ON a.person_id = p.id")[:1]
    assert owner["role"] == "owner"
    assert graph.sends("p1") == []
    graph.say("p1", code)
    graph.ask("p2", "hello")
    assert graph.sends("p1") == []
    assert code not in json.dumps([dict(row) for row in server.rows("SELECT value FROM meta")])


def test_a_question_for_another_tool_finds_it_after_one_that_went_nowhere(offline_town):
    graph, person, other = offline_town.graph, offline_town.newcomer(), offline_town.newcomer()
    graph.ask(person, "cuanto son 15 dolares en pesos")
    assert graph.ask(person, "que hora es").startswith(("Son las", "Es la"))
    graph.ask(other, "what time is it in tokyo")
    assert "December 25" in graph.ask(other, "what day is december 25")


def test_a_changed_number_stays_the_same_person(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    graph.ask(person, "hello")
    moved = {"type": "user_changed_number", "wa_id": "12125557777", "body": "x"}
    body = text_body("wamid.sys", "", town.phone(person), type="system", system=moved)
    assert server.post(body).status_code == 200
    assert server.post(text_body("wamid.moved", "it is me", "12125557777")).status_code == 200
    wait_for(lambda: len(town.model.main_calls) == 2, "the answer")
    last = "SELECT person_id FROM turns ORDER BY created_at DESC LIMIT 2"
    assert len(server.rows(f"SELECT DISTINCT person_id FROM ({last})")) == 1


def test_a_phone_with_another_user_id_is_frozen_until_confirmed(town):
    server, graph, person, other = town.server, town.graph, town.newcomer(), town.newcomer()
    phone = town.phone(person)
    graph.ask(person, "hello")
    body = text_body("wamid.z", "let me in", phone, from_user_id="US.999999")
    assert server.post(body).status_code == 200
    (frozen,) = server.rows("SELECT frozen FROM people WHERE frozen <> ''")
    assert "another user id" in frozen["frozen"]
    graph.ask(other, "hi")
    assert len(graph.sends(person)) == 1
    server.admin("people/change", action="allow", who=phone)
    assert graph.reply(person, 2) == "you said: let me in"
    assert server.post(text_body("wamid.z2", "again", phone, from_user_id="US.999999")).status_code == 200
    assert graph.reply(person, 3) == "you said: again"


@pytest.mark.slow
def test_turns_that_wait_for_their_place_have_not_begun_and_sigterm_gives_back_the_others(make_world, model):
    async def play(body):
        if not is_classifier(body) and "patience" in last_user_text(body) and not finished:
            await asyncio.sleep(30)
        return echo(body)

    finished: list[bool] = []
    server, graph = make_world(model=model(play), CONCURRENT_TURNS="1")
    turns = "SELECT state, attempts FROM turns ORDER BY created_at"
    graph.say("p0", "patience")
    wait_for(lambda: server.rows("SELECT 1 FROM journal"), "the turn to be under way")
    for person in ("p1", "p2"):
        graph.say(person, "hello")
    wait_for(lambda: len(server.rows(turns)) == 3, "the turns of the others")
    assert [tuple(row) for row in server.rows(turns)] == [("running", 1), ("queued", 0), ("queued", 0)]
    graph.say("p1", "/stop")
    wait_for(lambda: graph.log()["pending"] == 0, "the stop to arrive")
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 10
    assert {tuple(row) for row in server.rows(turns)} <= {("queued", 0), ("done", 0)}
    finished.append(True)
    server.start()
    assert graph.reply("p0") == "you said: patience"
    assert graph.reply("p2") == "you said: hello"
    assert "Stopped" in graph.reply("p1")
    wait_for(lambda: not open_work(server), "the end")
    assert len(graph.sends("p1")) == 1


def test_in_a_group_no_tool_and_nothing_of_the_person_is_shown(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    graph.ask(person, "the safe is 1234")
    wamid = graph.sends(person)[0]["wamid"]
    more = {"group_id": "GROUP1", "context": {"id": wamid}}
    body = text_body("wamid.g", "what are my notes?", town.phone(person), **more)
    assert server.post(body).status_code == 200
    wait_for(lambda: len(town.model.main_calls) == 2, "the group's turn")
    asked = town.model.main_calls[1]
    assert "tools" not in asked
    assert "1234" not in json.dumps(asked)
    assert "private chat" in last_user_text(asked)


def test_signatures_are_checked_before_anything_happens(town):
    server, phone = town.server, town.phone(town.newcomer())
    tables = ("seen", "people", "dead_letters")
    before = [len(server.rows(f"SELECT 1 FROM {table}")) for table in tables]
    body = json.dumps(text_body("wamid.s", "hi", phone)).encode()
    for signature in ("", "sha256=", "sha256=" + "0" * 64, sign(body, "other"), sign(b"x"), "md5=abc"):
        assert server.post(body, signature).status_code == 401
    raw = server.http.post(
        "/webhook", content=body, headers=[(b"x-hub-signature-256", "sha256=ñandú".encode())]
    )
    assert raw.status_code == 401
    assert server.http.post("/webhook", content=body).status_code == 401
    assert [len(server.rows(f"SELECT 1 FROM {table}")) for table in tables] == before
