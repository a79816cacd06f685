"""Whatever comes in is taken, refused or kept aside; nothing of it brings the server down."""

import json
import re
from functools import reduce

from starlette.responses import Response

from tests.mailer import asked, press
from tests.standins.model import calls, echo, is_classifier, last_user_text, none_needed, routed
from tests.world import messages_body, open_work, sign, text_body, wait_for


def test_bodies_that_are_no_webhook_are_kept_aside_and_answered_200(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    deep = b"[" * 50_000 + b"]" * 50_000
    bodies = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'"x"',
        b'{"entry":null}',
        b'{"entry":[null,7,{"changes":{}}]}',
    ]
    bodies += [deep, b'{"entry":' * 500 + b"1" + b"}" * 500, b"\xff\xfe\x00", b'{"a":1e999}']
    assert [server.post(body).status_code for body in bodies] == [200] * len(bodies)
    assert server.rows("SELECT count(*) AS n FROM dead_letters")[0]["n"] >= 5
    assert graph.ask(person, "still there?") == "you said: still there?"


def test_a_slash_at_the_end_of_an_address_leads_to_no_redirect(town):
    server, phone = town.server, town.phone(town.newcomer())
    body = json.dumps(text_body("wamid.slash", "hello there", phone)).encode()
    posted = server.http.post("/webhook/", content=body, headers={"X-Hub-Signature-256": sign(body)})
    assert posted.status_code == 200
    assert server.rows("SELECT 1 FROM messages WHERE wamid = 'wamid.slash'")
    statuses = {"/webhook/": 403, "/health/": 200, "/metrics/": 200, "/console/": 401, "/mcp/": 401}
    assert {path: server.http.get(path).status_code for path in statuses} == statuses


def test_a_body_of_3_mb_is_taken_and_a_larger_one_refused(town):
    server, limit = town.server, 3 * 1024 * 1024
    body = json.dumps(text_body("wamid.big", "hello", town.phone(town.newcomer()))).encode()
    assert server.post(body.ljust(limit)).status_code == 200
    assert server.post(body.ljust(limit + 1)).status_code == 413
    chunked = server.http.post(
        "/webhook", content=(b" " * 65536 for _ in range(80)), headers={"X-Hub-Signature-256": sign(body)}
    )
    assert chunked.status_code == 413


def test_good_messages_beside_malformed_ones_are_answered(town):
    server, graph, person = town.server, town.graph, town.newcomer()
    phone, letters = town.phone(person), "SELECT 1 FROM dead_letters"
    before = len(server.rows(letters))
    good = text_body("wamid.good", "hello", phone)["entry"][0]["changes"][0]["value"]["messages"][0]
    nobody = {"id": "wamid.nobody", "type": "text", "text": {"body": "who am I"}, "timestamp": "1"}
    odd = {"from": phone, "id": "wamid.odd", "type": "hologram", "hologram": {"a": 1}, "timestamp": "x"}
    body = messages_body(None, 7, nobody, {"from": phone}, odd, good, phone=phone)
    assert server.post(body).status_code == 200
    wait_for(lambda: not open_work(server), "every turn")
    said = {row["kind"] for row in server.rows("SELECT kind FROM messages WHERE direction = 'in'")}
    assert {"text", "hologram"} <= said
    assert len(server.rows(letters)) >= before + 4
    assert "you said: hello" in "".join(graph.texts(person))


STRANGE = [
    "x" * 100_000,
    "🙂👩‍👩‍👧‍👦🏽",
    "مرحبا كيف حالك",
    "a\x00b\x00",
    "‮ desrever ‬",
    "\ud800 lone",
    "'; DROP TABLE inbox; --",
    "{place} {0} %s {{}}",
    "   ",
]


def test_strange_texts_are_answered(town):
    people = [(town.newcomer(), text) for text in STRANGE]
    for person, text in people:
        assert town.server.post(text_body(f"wamid.{person}", text, town.phone(person))).status_code == 200
    for person, _ in people:
        assert town.graph.reply(person)


def garbage(*answers):
    """A model that answers the main calls with these, in turn, and the last one for ever."""
    left = list(answers)

    def play(body):
        if is_classifier(body):
            return "💥 not json {"
        return left.pop(0) if len(left) > 1 else left[0]

    return play


def calling(arguments, id="call_0"):
    return {"tool_calls": [{"id": id, "function": {"name": "calculate", "arguments": arguments}}]}


DEEP = reduce(lambda inner, _: {"expression": inner}, range(500), "1+1")
DEEP_LIST = "[" * 300 + "]" * 300
SAME_IDS = [
    {"id": "x", "function": {"name": "calculate", "arguments": {"expression": "1+1"}}},
    {"id": "x", "function": {"name": "calculate", "arguments": '{"expression": "2+2"}'}},
    {"function": "nonsense"},
]
MALFORMED = {
    "empty then text": (garbage({"content": None}, "here I am"), "here I am"),
    "cut by its server": (
        garbage(Response('{"choices": [{"message": {"content": "one, two"}, "finish_reason": "length"}]}')),
        "one, two…\n\n(My answer was too long",
    ),
    "an empty fence": (garbage("```\n```"), "another way"),
    "always empty": (garbage({"content": ""}), "another way"),
    "not json": (garbage(Response("<html>oops</html>")), "language model"),
    "orphan thought": (garbage("so I think…</think>Hola"), "Hola"),
    "content list": (garbage({"content": [{"type": "text", "text": "Hola"}]}), "Hola"),
    "broken arguments": (garbage(calling('{"expression": ', None), "mended"), "mended"),
    "same ids": (garbage({"tool_calls": SAME_IDS}, "both done"), "both done"),
    "call as text": (garbage('{"name": "calculate", "arguments": {"expression": "2+2"}}', "four"), "four"),
    "a deep call as text": (
        garbage('{"name": "calculate", "arguments": {"expression": ' + DEEP_LIST + "}}"),
        '{"name": "calculate"',
    ),
    "deep arguments": (garbage(calling(DEEP), "mended"), "mended"),
    "a deep list for arguments": (garbage(calling(DEEP_LIST), "mended"), "mended"),
    "repeats itself": (garbage(calls(("calculate", {"expression": "1+1"}))), "another way"),
}


def test_whatever_the_model_answers_the_person_gets_one_reply(town):
    def play(body):
        case = re.findall(r"\[(.+)\]", last_user_text(body))
        return MALFORMED[case[-1]][0](body) if case else echo(body)

    server, graph, town.model.play = town.server, town.graph, play
    people = {case: town.newcomer() for case in MALFORMED}
    for case, person in people.items():
        graph.say(person, f"calculate something [{case}]")
    replies = {case: graph.reply(person) for case, person in people.items()}
    assert {case: text for case, text in replies.items() if MALFORMED[case][1] not in text} == {}
    wait_for(lambda: not open_work(server), "the end")
    assert {len(graph.sends(person)) for person in people.values()} == {1}
    turns = server.rows("SELECT attempts FROM turns ORDER BY created_at DESC LIMIT ?", len(people))
    assert {turn["attempts"] for turn in turns} == {1}


def test_a_server_that_refuses_tools_gets_them_in_the_prompt(make_world, model):
    @routed("calculator")
    def play(body):
        if "tools" in body:
            return Response('{"error": {"message": "model does not support tools"}}', status_code=400)
        if "[tool result]" in json.dumps(body["messages"]):
            return "it is 42"
        assert "- calculate:" in body["messages"][0]["content"]
        return '```json\n{"name": "calculate", "arguments": {"expression": "6*7"}}\n```'

    server, graph = make_world(model=model(play))
    assert graph.ask("p1", "how much is 6*7") == "it is 42"
    assert server.rows("SELECT 1 FROM journal WHERE kind = 'tool' AND payload LIKE '%42%'")


def test_what_a_server_attaches_to_its_calls_comes_back_with_them_after_a_question_and_a_crash(
    make_world, model
):
    """Gemini refuses calls without their signature, Moonshot and DeepSeek such without the thoughts."""
    signature = {"google": {"thought_signature": "c2lnbmF0dXJl"}}
    asks = calls(("save_note", {"text": "pan"}))
    asks["reasoning_content"] = "The person wants a note."
    asks["tool_calls"][0]["extra_content"] = signature

    @routed("notes")
    def play(body):
        if body["messages"][-1]["role"] != "tool":
            return asks
        asked_before = body["messages"][-2]
        kept = asked_before["tool_calls"][0].get("extra_content"), asked_before.get("reasoning_content")
        return "kept" if kept == (signature, asks["reasoning_content"]) else Response("no", status_code=400)

    server, graph = make_world(model=model(play), CONFIRMATION_MODE="confirm-all")
    graph.say("p1", "save a note: pan")
    question = asked(graph, "p1")
    server.kill()
    server.start()
    press(graph, "p1", question, "Yes")
    assert "kept" in graph.reply("p1", 2)


def test_a_prompt_beyond_the_models_window_is_shortened_and_said_where_that_is_not_enough(make_world, model):
    refused = []

    def play(body):
        if is_classifier(body):
            return none_needed(body)
        size = len(json.dumps(body["messages"]))
        if size > 9_000 or "imposible" in last_user_text(body):
            refused.append(size)
            return Response('{"error": "maximum context length is 2048 tokens"}', status_code=400)
        return "palabra " * 400

    _, graph = make_world(model=model(play))
    for count in range(1, 5):
        assert graph.ask("p0", f"cuéntame una historia, parte {count}").startswith("palabra")
    assert refused
    before = len(refused)
    assert "/nueva" in graph.ask("p0", "cuéntame también lo imposible")
    assert len(refused) == before + 3


def test_a_wrong_key_is_said_to_the_operator_and_no_secret_nor_text_stands_in_the_logs(make_world, model):
    secrets = {"OPENAI_API_KEY": "sk-very-secret-key", "ADMIN_TOKEN": "adm-secret-token"}
    played = model(echo)
    server, graph = make_world(model=played, LOG_LEVEL="DEBUG", **secrets)
    graph.ask("p1", "the secret of the pyramid")
    refusal = '{"error": {"message": "Incorrect API key sk-very-secret-key"}}'
    played.play = lambda body: Response(refusal, status_code=401)
    reply = graph.ask("p1", "hello?")
    assert "sk-" not in reply
    assert "401" not in reply
    server.stop()
    assert "401" in server.log
    for secret in (*secrets.values(), "access-token-of-the-test", "app-secret-of", "pyramid"):
        assert secret not in server.log


def test_refusals_follow_the_error_table_and_tell_the_operator(make_world, model):
    server, graph = make_world(model=model(echo))
    for person, script, state, count, said in (
        ("p1", {"code": 131047, "status": 400}, "failed", 1, "24 hours"),
        ("p2", {"code": 131026, "status": 400}, "failed", 2, "given up"),
        ("p3", {"code": 190, "status": 401}, "held", 1, "access token"),
    ):
        graph.faults(fail=[script])
        graph.say(person, "first")
        rows = lambda state=state: server.rows("SELECT 1 FROM outbox WHERE state = ?", state)  # noqa: E731
        wait_for(lambda rows=rows, count=count: len(rows()) == count, f"the row to be {state}")
        alerts = [row["text"] for row in server.rows("SELECT text FROM alerts")]
        assert any(said in text for text in alerts), alerts
        held_up = server.http.get("/health").json()["status"]
        assert held_up == ("degraded" if state == "held" else "ok")
    graph.say("p0", "second")  # its send shows that the token works
    assert graph.reply("p0") == "you said: second"
    assert graph.reply("p3", seconds=10) == "you said: first"


def test_a_number_on_the_test_list_in_its_other_form_and_who_has_only_a_user_id_are_reached(
    make_world, model
):
    ana = {"id": "mx", "name": "Ana", "phone": "5215550100009", "user_id": "MX.1055010009"}
    dani = {"id": "dani", "name": "Dani", "phone": "", "user_id": "AR.1000000000", "username": "dani"}
    server, graph = make_world(
        model=model(echo),
        ALLOWED_PHONE_NUMBERS="525550100009",
        graph={"people": [ana, dani], "test_list": ["525550100009", None]},
    )
    for said in ("hola", "otra"):
        assert graph.ask("mx", said) == f"you said: {said}"
    refused = [entry for entry in graph.log()["entries"] if entry["kind"] == "send" and not entry["wamid"]]
    assert len(refused) == 1
    assert server.rows("SELECT address FROM aliases WHERE kind = 'phone'")[0]["address"] == "525550100009"
    server.admin("people/change", action="allow", who="AR.1000000000")
    assert graph.ask("dani", "hola") == "you said: hola"
    assert "recipient" in graph.sends("dani")[0]["body"]
