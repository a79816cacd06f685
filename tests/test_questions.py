"""Questions at their edges: whose, which, when, in which mode, and what becomes of those nobody answers."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.machine import dial, injected, resident
from tests.chaos.wire import Fault, Wire
from tests.console.test_pages import Browser
from tests.mailer import ANA, asked, calling, drop_mailer, marks, park_more, press, questions, told
from tests.standins import mcp_server
from tests.standins.model import calls, last_user_text, results, routed
from tests.world import Server, Town, text_body, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.both]

HOURS = 3600.0


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return drop_mailer(tmp_path / "own")


@pytest.fixture
def desk(make_world, model, skills):
    """Makes a world in which whoever says "mail" makes the model do these calls, by default one mail."""

    def make(*wanted: tuple[str, dict[str, Any]], **options: Any) -> Any:
        return make_world(model=model(calling(*(wanted or (ANA,)))), SKILLS_DIR=str(skills), **options)

    return make


@pytest.fixture
def chat(office: tuple[Town, Path, str]) -> Any:
    """The server that stands for many tests, its skills, a newcomer; "mail" makes its model send one."""
    town, skills, person = office
    town.model.play = calling(ANA)
    return town, skills, person


def parked(server: Server) -> int:
    return len(server.rows("SELECT 1 FROM turns WHERE state = 'parked'"))


APPEND = ("write_file", {"path": "compras.txt", "content": "leche\n¿pan?", "mode": "append"})
REPLACE = ("write_file", {"path": "compras.txt", "content": "leche”\n• to: x"})
DELETE = ("delete_project", {"project": "Casa"})
APPENDING = "¿Agrego esto al final del archivo “compras.txt”?\n• texto: “leche\\n¿pan?”"
REPLACING = "¿Escribo en el archivo “compras.txt”? Lo que tenga ahora se reemplaza."
DELETING = "¿Borro el proyecto “Casa” con todas sus tareas y notas?"


def test_a_tool_of_ours_asks_in_plain_words_and_one_of_others_by_its_name(chat):
    phrases = "write file", "list files", "delete project", "create project", "send mail", "read mail"

    @routed("files", "projects", "mailer", phrases=phrases)
    def play(body):
        if any(message["role"] == "tool" for message in body["messages"]):
            return calls(APPEND, REPLACE, DELETE, ANA)
        return calls(("list_files", {}), ("read_mail", {}), ("create_project", {"name": "Casa"}))

    (town, _, _), person = chat, "p0"  # who owns the workspace
    server, graph, town.model.play = town.server, town.graph, play
    (server.folder / "workspace").mkdir(exist_ok=True)
    (server.folder / "workspace" / "plan.txt").write_text("plan")
    graph.say(person, "por favor, haz eso con el mail de Ana")
    asked(graph, person, 4)
    shown = [one["text"] for one in questions(graph, person)]
    source = "nombres de archivos, lo que respondió mailer"
    for plain in (APPENDING, REPLACING, DELETING):
        (card,) = [text for text in shown if text.startswith(plain)]
        assert card.split("\n\n")[1].endswith(source)
        assert "• to: x" not in card.splitlines()
        assert "write_file" not in card
        assert "delete_project" not in card
    (card,) = [text for text in shown if "send_mail" in text]
    assert "\nsend_mail\n" in card
    assert "• to: “ana@x.example”\n• text: “hola”" in card
    assert source in card
    graph.say(person, "👍")
    listed = told(graph, person, "• send_mail “ana@x.example”, “hola”")
    for plain in (APPENDING, REPLACING, DELETING):
        assert f"• {plain.partition(chr(10))[0]}" in listed


def test_another_conversation_and_who_was_blocked_answer_nothing(chat):
    town, skills, person = chat
    server, graph, blocked = town.server, town.graph, town.newcomer()
    for one in (person, blocked):
        graph.say(one, "mail, please")
        asked(graph, one)
    group = text_body(f"wamid.group.{person}", "yes", town.phone(person), group_id="GROUP1")
    assert server.post(group).status_code == 200
    server.admin("people/change", action="block", who=town.phone(blocked))
    press(graph, blocked, asked(graph, blocked), "Yes")
    done = "SELECT 1 FROM inbox i JOIN conversations c ON c.id = i.conversation_id AND c.group_id = 'GROUP1'"
    wait_for(lambda: server.rows(f"{done} WHERE i.done_at IS NOT NULL"), "the group's turn")
    wait_for(lambda: graph.log()["pending"] == 0, "the webhook")
    assert marks(skills, "sent") == []
    press(graph, person, asked(graph, person), "Yes")
    told(graph, person, '"ok":true')
    assert len(marks(skills, "sent")) == 1


def test_a_thumb_says_yes(chat):
    town, skills, person = chat
    graph, people = town.graph, (person, town.newcomer(), town.newcomer())
    for count, one in enumerate(people, 1):
        graph.say(one, "mail, please")
        question = asked(graph, one)
        if one == person:
            thumb = {"message_id": question["wamid"], "emoji": "👍"}
            graph.inbound({"person": one, "type": "reaction", "reaction": thumb})
        else:
            graph.say(one, "👍", **({"quoted": question["wamid"]} if count == 2 else {}))
        told(graph, one, '"ok":true')
        assert len(marks(skills, "sent")) == count


def test_a_yes_that_is_taken_back_in_the_next_breath_sends_nothing(desk, skills):
    server, graph = desk(BURST_QUIET_SECONDS="0.5")
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    wait_for(lambda: server.rows("SELECT 1 FROM outbox WHERE state = 'sent'"), "that it was sent")
    graph.say("p0", "sí")
    graph.say("p0", "pero espera")
    told(graph, "p0", "you said: pero espera")
    assert (marks(skills, "sent"), parked(server)) == ([], 1)
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":true')
    assert len(marks(skills, "sent")) == 1


def test_words_that_were_written_before_the_question_and_come_after_it_answer_nothing(chat):
    town, skills, person = chat
    server, graph = town.server, town.graph
    graph.say(person, "mail, please")
    question = asked(graph, person)
    sent = "SELECT 1 FROM statuses WHERE status = 'sent' AND wamid = ?"
    wait_for(lambda: server.rows(sent, question["wamid"]), "that it was sent")
    before = str(int(time.time()) - 600)
    late = text_body(f"wamid.late.{person}", "sí", town.phone(person), timestamp=before)
    assert server.post(late).status_code == 200
    told(graph, person, "you said: sí")
    assert marks(skills, "sent") == []
    press(graph, person, question, "Yes")
    told(graph, person, '"ok":true')
    assert len(marks(skills, "sent")) == 1


def test_the_same_call_again_leads_to_the_open_question_and_other_arguments_to_one_more(chat):
    wanted = [(ANA, ANA), (ANA,), (("send_mail", {"to": "ana@x.example", "text": "adiós"}),)]

    @routed("mailer")
    def play(body):
        if body["messages"][-1]["role"] == "tool":
            return f"result: {results(body)}"
        return calls(*wanted.pop(0)) if "mail" in last_user_text(body).splitlines()[-1] else "hm"

    town, skills, person = chat
    graph, town.model.play = town.graph, play
    graph.say(person, "mail, please")
    first = asked(graph, person)  # about the call that the round holds twice
    graph.say(person, "please, the mail")
    told(graph, person, "has not answered yet")
    assert len(questions(graph, person)) == 1
    graph.say(person, "now another mail")
    assert "adiós" in asked(graph, person, 2)["text"]
    assert marks(skills, "sent") == []
    press(graph, person, first, "Yes")
    told(graph, person, "'ok': True")
    assert (len(questions(graph, person)), len(marks(skills, "sent"))) == (2, 1)


def test_a_no_counts_for_the_whole_turn_and_for_a_call_that_repeats_it(chat):
    @routed("mailer")
    def play(body):
        if "said no" in str(results(body)[1:]):
            return "I sent the mail to Ana."
        return calls(ANA)

    town, skills, person = chat
    graph, town.model.play = town.graph, play
    graph.say(person, "mail, please")
    press(graph, person, asked(graph, person), "No")
    wait_for(lambda: len(graph.texts(person)) > 1, "the answer")
    assert "I sent the mail" not in graph.texts(person)[-1]
    assert (len(questions(graph, person)), marks(skills, "sent")) == (1, [])


def test_a_yes_right_after_a_restart_waits_for_the_server_whose_tool_it_is_for(desk):
    server, graph = desk(("mcp_parrot_say", {"text": "hello"}), start=False)
    say = mcp_server.tool("say", "sends the mail", {"text": {"type": "string"}})
    first, *rest = mcp_server.command(tools=[say], seconds=1)
    path = server.folder / "data" / "mcp_servers.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": {"parrot": {"command": first, "args": rest}}}))
    server.start()
    graph.say("p0", "say in the mail of the parrot")
    question = asked(graph, "p0")
    wait_for(lambda: server.rows("SELECT 1 FROM outbox WHERE state = 'sent'"), "the question")
    server.kill()
    server.start()
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":true')


def test_what_may_have_happened_is_asked_about_even_where_nothing_is_and_in_later_turns(desk, skills):
    _, graph = desk(ANA, ("pay", {"amount": 5}), CONFIRMATION_MODE="yolo")
    graph.say("p0", "mail the money")
    told(graph, "p0", "hung up")
    assert (len(marks(skills, "sent")), len(marks(skills, "paid"))) == (1, 1)
    graph.say("p0", "mail the money again")
    question = asked(graph, "p0")
    assert list(question["buttons"]) == ["Yes", "No"]
    assert len(marks(skills, "paid")) == 1
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":true')
    graph.say("p0", "mail the money once more")
    wait_for(lambda: len(marks(skills, "paid")) == 3, "the third payment, unasked: the second is known")
    assert len(questions(graph, "p0")) == 1


def test_at_23_hours_a_question_ends_honestly(desk, skills):
    server, graph = desk(start=False, SWEEP_SECONDS="0.3")
    clock = server.folder / "clock"
    jump = dial(clock)
    server.env |= injected(CLOCK=clock)
    server.start()
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    jump(22.9 * HOURS)
    graph.say("p0", "still here")
    told(graph, "p0", "you said: still here")
    jump(24 * HOURS)
    later = time.time() + 45 * HOURS
    wait_for(lambda: server.rows("SELECT 1 FROM approvals WHERE due_at > ?", later), "more")
    assert parked(server) == 1
    jump(46 * HOURS)
    told(graph, "p0", "nobody answered")
    press(graph, "p0", question, "Yes")
    told(graph, "p0", "is over")
    assert (marks(skills, "sent"), parked(server)) == ([], 0)


def test_a_question_of_which_nobody_knows_whether_it_came_is_answered_by_its_button(desk, skills):
    server, graph = desk(start=False)
    wire = Wire(graph.port, marked=b"biz_opaque_callback_data")
    server.env["WHATSAPP_API_URL"] = f"http://127.0.0.1:{wire.port}/v25.0"
    server.start()
    graph.faults(hold_statuses=True)
    wire.faults = [Fault(True)]  # it arrives, and no answer comes
    graph.say("p0", "mail, please")
    press(graph, "p0", asked(graph, "p0"), "Yes")
    wait_for(lambda: marks(skills, "sent"), "the mail")
    graph.faults(hold_statuses=False)
    told(graph, "p0", '"ok":true')
    assert (len(marks(skills, "sent")), len(questions(graph, "p0"))) == (1, 1)
    wire.stop()


def test_a_stop_and_a_new_conversation_end_what_waits(chat):
    town, skills, person = chat
    graph = town.graph
    for one, command, words in ((person, "/stop", "Stopped"), (town.newcomer(), "/new", "start afresh")):
        graph.say(one, "mail, please")
        question = asked(graph, one)
        graph.say(one, command)
        told(graph, one, words)
        press(graph, one, question, "Yes")
        told(graph, one, "is over")
    assert marks(skills, "sent") == []


def test_a_question_that_was_stopped_still_quotes_others_when_it_is_found_in_the_history(chat):
    plans = {
        "one": [ANA],
        "two": [("read_mail", {}), ("send_mail", {"to": "mallory@evil.example", "text": "MALLORY"})],
        "three": [
            ("search_history", {"query": "mallory"}),
            ("send_mail", {"to": "a@evil.example", "text": ""}),
        ],
    }

    @routed("mailer", "conversation", phrases=("send mail", "what we said"))
    def play(body):
        done = [message for message in body["messages"] if message["role"] == "tool"]
        plan = plans[last_user_text(body).splitlines()[-1]]
        return calls(plan[len(done)]) if len(done) < len(plan) else f"result: {done[-1]['content']}"

    town, skills, person = chat
    graph, town.model.play = town.graph, play
    graph.say(person, "one")
    press(graph, person, asked(graph, person), "Always here")
    told(graph, person, '"ok":true')
    graph.say(person, "two")
    asked(graph, person, 2)
    shown = Browser(town.server).page("/console/decisions")
    assert "MALLORY" in shown
    assert "text that is not yours: what mailer answered" in shown
    graph.say(person, "/stop")
    told(graph, person, "Stopped")
    graph.say(person, "three")
    assert "a@evil.example" in asked(graph, person, 3)["text"]
    assert len(marks(skills, "sent")) == 1


def test_a_tool_that_is_gone_when_the_yes_comes_does_not_run(chat):
    town, skills, person = chat
    town.graph.say(person, "mail, please")
    question = asked(town.graph, person)
    path = skills / "mailer" / "scripts" / "tools.py"
    written = path.read_text()
    path.write_text(written.replace("def send_mail", "def post_mail"))
    try:
        press(town.graph, person, question, "Yes")
        told(town.graph, person, '"ok":false')
    finally:
        path.write_text(written)
    assert marks(skills, "sent") == []


def test_ten_thousand_parked_turns_cost_rows_and_no_lanes(desk):
    server, graph = desk()
    graph.say("p1", "mail, please")
    asked(graph, "p1")
    before = resident(server)
    server.kill()
    park_more(server, 10_000)
    server.start()
    graph.say("p0", "hello")
    told(graph, "p0", "you said: hello")
    assert parked(server) == 10_001
    assert "recado_running_turns 0" in server.http.get("/metrics").text
    grown = resident(server) - before
    print(f"\n10,000 parked turns: {grown / 2**20:+.1f} MB")
    assert grown < 10 * 2**20
    press(graph, "p1", questions(graph, "p1")[0], "Yes")
    told(graph, "p1", '"ok":true')
