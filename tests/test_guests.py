"""A number that strangers write to: guests with few tools, invitations, and owners who decide."""

import base64
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.standins.model import echo as echo_of
from tests.test_handover import echo
from tests.tools import papers
from tests.world import TOKEN, Graph, Server, open_work, wait_for, world

FOR_GUESTS = {"current_time", "convert_time", "days_between", "weekday_of", "business_days_between"}
FOR_GUESTS |= {"add_business_days", "holidays", "set_time_zone"}
FOR_GUESTS |= {"calculate", "convert_units", "convert_money", "ask_a_human", "search_knowledge"}
PEOPLE = [
    {"id": "owner", "name": "Olga", "phone": "12125550000", "user_id": "US.10"},
    {"id": "guest", "name": "Gil", "phone": "5511955501234", "user_id": "BR.11"},
    {"id": "unnamed", "name": "Uma", "phone": "", "user_id": "AR.12", "username": "uma.escribe"},
]
FAILED = "SELECT 1 FROM outbox WHERE state = 'failed'"
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def offered(calls: list[dict[str, Any]]) -> set[str]:
    return {one["function"]["name"] for body in calls for one in body.get("tools", ())}


def press(graph: Any, person: str, buttons: list[dict[str, Any]], number: int) -> None:
    graph.inbound({"person": person, "type": "button", "reply": buttons[number]["reply"]})


def test_a_stranger_is_a_guest_until_an_owner_says_otherwise(make_world: Any, model: Any) -> None:
    played = model(lambda body: "ok")
    server, graph = make_world(
        model=played, crowd=0, graph={"people": PEOPLE}, ACCESS="everyone", GUEST_TOOLS="get_weather,selfcode"
    )
    graph.ask("owner", "hello")
    played.requests.clear()
    for person in ("guest", "unnamed"):
        graph.ask(person, "remember that I like tea, set a reminder, install the server time, que horas são?")
    assert offered(played.main_calls) <= {*FOR_GUESTS, "get_weather"}
    assert offered(played.main_calls)
    wait_for(lambda: len(graph.sends("owner")) == 3, "the owner's two alerts")
    first, second = (send["body"]["interactive"] for send in graph.sends("owner")[1:])
    assert "+5511955501234" in first["body"]["text"]
    assert "AR.12" in second["body"]["text"]
    press(graph, "owner", first["action"]["buttons"], 0)
    assert "is a member now" in graph.reply("owner", 4)
    press(graph, "owner", second["action"]["buttons"], 1)
    assert "is blocked" in graph.reply("owner", 5)
    played.requests.clear()
    graph.ask("guest", "remember that I like tea")
    assert "remember" in offered(played.main_calls)
    graph.say("unnamed", "hello?")
    graph.ask("guest", "/block 12125550000")  # a member's command is none
    assert len(graph.sends("unnamed")) == 1
    assert "+55 11 95550 1234 is a member now" in graph.ask("owner", "/member +55 11 95550 1234")
    roles = {line.split()[0]: line for line in server.recado("people", "list").splitlines() if line}
    assert " owner " in roles["12125550000,"]
    assert " member " in roles["5511955501234,"]
    server.recado("erase", "5511955501234", "--yes")
    alerts = server.rows("SELECT 1 FROM messages WHERE text LIKE '%writes for the first time%'")
    assert len(alerts) == 1  # of the other


@pytest.mark.slow
def test_a_member_does_not_wait_for_guests_documents(make_world, model):
    def spreadsheet(person: str, rows: int) -> dict[str, Any]:
        row = f"<row>{'<c/>' * 1_500}</row>"
        sheet = f"<worksheet NAMESPACE><sheetData>{row * rows}</sheetData></worksheet>"
        data = papers.excel_with(sheet) if rows else papers.excel(Sheet=[["price"]])
        content = base64.b64encode(data).decode()
        kind = {"type": "document", "mime_type": EXCEL, "filename": "prices.xlsx"}
        return {"person": person, "data": content, **kind}

    server, graph = make_world(model=model(echo_of), crowd=0, graph={"people": PEOPLE}, ACCESS="everyone")
    for guest in ("guest", "unnamed"):
        graph.inbound(spreadsheet(guest, 14_000))
    wait_for(lambda: server.rows("SELECT 1 FROM attachments WHERE attempts = 1"), "a document that is read")
    time.sleep(1)  # which takes longer than others should wait
    graph.inbound(spreadsheet("owner", 0))
    graph.reply("owner")
    assert len(server.rows("SELECT 1 FROM attachments WHERE state IN ('new', 'kept')")) == 2


def test_an_invitation_code_makes_a_member_as_often_as_it_says(make_world: Any) -> None:
    server, graph = make_world(crowd=0, graph={"people": PEOPLE}, ACCESS="code")
    told = server.recado("people", "invite", "--uses", "1")
    code = told.split()[0]
    assert f"https://wa.me/15550100100?text={code}" in told
    graph.say("guest", "hola")
    graph.say("guest", code)
    assert "convite foi aceito" in graph.reply("guest")
    graph.say("unnamed", code)
    assert "vegano" in graph.ask("guest", "recorda que sou vegano")
    assert not graph.sends("unnamed")
    assert code not in server.log
    assert TOKEN not in told


@pytest.fixture(scope="module")
def _door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph, Iterator[int]]]:
    guests = [
        {"id": f"g{n}", "name": f"G{n}", "phone": f"551195550{n:04}", "user_id": f"BR.9{n}"} for n in range(9)
    ]
    options = {"ACCESS": "everyone", "DISCLOSURE": "", "SWEEP_SECONDS": "0.3"}
    folder = tmp_path_factory.mktemp("door")
    for server, graph in world(folder, crowd=0, graph={"people": [*PEOPLE, *guests]}, **options):
        server.start()
        yield server, graph, count()


@pytest.fixture
def stranger(_door: tuple[Server, Graph, Iterator[int]]) -> tuple[Server, Graph, str]:
    """A server that says itself who answers, its stand-in, and a guest who has not written yet."""
    server, graph, numbers = _door
    wait_for(lambda: not open_work(server) and not graph.log()["pending"], "the end of the test before")
    return server, graph, f"g{next(numbers)}"


def test_a_guest_is_told_once_an_hour_that_a_question_is_over(stranger: Any) -> None:
    server, graph, guest = stranger
    graph.ask(guest, "hola")
    for number in range(6):
        forged = {"id": f"approval:{number:032x}", "title": "Sí"}
        graph.inbound({"person": guest, "type": "button", "reply": forged})
    assert "Esa pregunta ya terminó" in graph.reply(guest, 2)
    wait_for(lambda: not server.rows("SELECT 1 FROM inbox WHERE done_at IS NULL"), "the other presses")
    assert len(server.rows("SELECT 1 FROM outbox WHERE source LIKE 'heard:%'")) == 1


def test_the_first_message_to_a_person_says_that_an_assistant_answers(stranger: Any) -> None:
    server, graph, guest = stranger
    for text in ("olá, que horas são em Lisboa?", "/nova", "que horas são em Lisboa?"):
        graph.ask(guest, text)
    told = graph.texts(guest)
    assert told[0].startswith("Sou um assistente automático (IA). O que você escreve fica no servidor")
    assert "Em Lisboa" in told[0]
    assert not any("assistente automático" in later for later in told[1:])
    kept = server.rows("SELECT text FROM messages WHERE direction = 'out' ORDER BY id DESC LIMIT 3")
    assert not any("assistente automático" in row["text"] for row in kept)  # no answer of the model's


def test_the_next_message_tells_it_too_when_one_without_it_was_queued_before_the_first_failed(stranger):
    server, graph, guest = stranger
    before = len(server.rows(FAILED))
    graph.faults(fail=[{"code": 131026, "accept": True}], hold_statuses=True)
    for _ in range(2):
        graph.ask(guest, "que horas são em Lisboa?")
    graph.faults(hold_statuses=False)
    wait_for(lambda: len(server.rows(FAILED)) > before, "the late refusal")
    assert graph.ask(guest, "que horas são em Manaus?").startswith("Sou um assistente automático (IA).")


def test_a_message_that_waits_behind_a_first_one_that_is_refused_tells_it(stranger: Any) -> None:
    server, graph, guest = stranger
    tried = "SELECT 1 FROM outbox WHERE attempts > 0"
    before = len(server.rows(tried))
    graph.faults(fail=[{"code": 131056, "retry_after": 1.0}, {"code": 131026}])
    graph.say(guest, "que horas são em Lisboa?")
    wait_for(lambda: len(server.rows(tried)) > before, "a first try")
    graph.say(guest, "que horas são em Manaus?")
    assert graph.reply(guest).startswith("Sou um assistente automático (IA).")


@pytest.mark.slow
def test_a_first_message_that_is_sent_again_tells_it_once(stranger: Any) -> None:
    server, graph, guest = stranger
    graph.faults(fail=[{"code": 131000, "accept": True}])
    graph.say(guest, "que horas são em Lisboa?")
    assert graph.reply(guest, 2) == graph.reply(guest, 1)
    wait_for(lambda: not open_work(server), "the end of it")
    assert not graph.ask(guest, "que horas são em Manaus?").startswith("Sou um assistente automático (IA).")


def test_whose_first_answer_a_person_of_the_business_took_over_is_told_in_the_next(stranger: Any) -> None:
    server, graph, guest = stranger
    tried = "SELECT 1 FROM outbox WHERE attempts > 0 AND sending_at IS NULL"
    before = len(server.rows(tried))
    graph.faults(fail=[{"code": 131056}])  # too fast: the answer waits
    graph.say(guest, "que horas são em Lisboa?")
    wait_for(lambda: len(server.rows(tried)) > before, "a try")
    gil = {"to": "551195550" + f"{int(guest[1:]):04}"}
    server.post(echo("Oi, aqui é a Olga.", "wamid.D1", gil))
    server.post(echo("/bot", "wamid.D2", gil))
    graph.say(guest, "que horas são em Manaus?")
    assert graph.reply(guest).startswith("Sou um assistente automático (IA).")
