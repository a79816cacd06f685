"""A Graph API that is away, slow or lying: each message once where that can be known, never a third time."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.chaos.wire import Fault, Wire, answer
from tests.standins.model import ModelServer, echo
from tests.world import Graph, Server, messages_body, open_work, wait_for, world

pytestmark = pytest.mark.slow

META_DOWN = b'{"error": {"message": "Service unavailable", "code": 131016}}'
PAGE = b"<html>Bad gateway</html>"
CUT_BEFORE, CUT_AFTER = Fault(False), Fault(True)


@dataclass(frozen=True)
class Case:
    """The faults that the sends of one reply meet, and how often the person then has it."""

    faults: tuple[Fault, ...]
    copies: int = 1
    state: str = "sent"
    statuses: bool = True
    """Whether Meta's statuses come in meanwhile."""


CASES = {
    "cut before it arrived": Case((CUT_BEFORE,)),
    "cut after it arrived": Case((CUT_AFTER,)),
    "cut after it arrived, and no status": Case((CUT_AFTER,), copies=2, statuses=False),
    "cut twice after it arrived, and no status": Case((CUT_AFTER,) * 2, 2, "unknown", statuses=False),
    "cut twice before it arrived": Case((CUT_BEFORE,) * 2, 0, "unknown"),
    "200 with a page, arrived": Case((Fault(True, answer(200, PAGE)),)),
    "200 with a page, not arrived": Case((Fault(False, answer(200, PAGE)),)),
    "200 without an id, arrived": Case((Fault(True, answer(200, b'{"messages": []}')),)),
    "200 cut short, arrived": Case((Fault(True, answer(200, b"{" * 99)[:-50]),)),
    "answered after its statuses": Case((Fault(True, answer(200, b"{}"), seconds=0.8),)),
    "500": Case((Fault(False, answer(500, META_DOWN)),)),
    "500 although it arrived": Case((Fault(True, answer(500, META_DOWN)),)),
    "500 although it arrived, and no status": Case(
        (Fault(True, answer(500, META_DOWN)),), copies=2, statuses=False
    ),
    "503 with a page, twice": Case((Fault(False, answer(503, PAGE)),) * 2),
    "429": Case((Fault(False, answer(429, META_DOWN, "Retry-After: 1")),)),
    "429 with a date": Case((Fault(False, answer(429, b"", "Retry-After: Fri, 01 Jan 2027 00:00:00 GMT")),)),
    "no HTTP at all": Case((Fault(False, b"SSH-2.0-OpenSSH_9.9\r\n"),)),
}


@pytest.fixture(scope="module")
def liar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Graph, Wire]]:
    """One server whose sends go through a wire."""
    model = ModelServer(echo)
    options = {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in"}
    options |= {"SEND_RECONCILE_SECONDS": "3", "SWEEP_SECONDS": "0.5"}
    for server, graph in world(tmp_path_factory.mktemp("liar"), crowd=len(CASES) + 6, **options):
        wire = Wire(graph.port, marked=b"biz_opaque_callback_data")
        server.env["WHATSAPP_API_URL"] = f"http://127.0.0.1:{wire.port}/v25.0"
        server.start()
        yield server, graph, wire
        wire.stop()
    model.stop()


@pytest.mark.parametrize("statuses", [True, False], ids=["statuses come", "none comes meanwhile"])
def test_a_reply_arrives_once_where_that_can_be_known_and_at_most_twice_else(liar, statuses):
    """All cases at once, each to a person of their own."""
    server, graph, wire = liar
    cases = {name: case for name, case in CASES.items() if case.statuses == statuses}
    people = {name: f"p{list(CASES).index(name)}" for name in cases}
    graph.faults(hold_statuses=not statuses)
    wire.of = {f"you said: {name} 1".encode(): list(case.faults) for name, case in cases.items()}
    for name, person in people.items():
        graph.say(person, f"{name} 1")
    wait_for(lambda: all(row_of(server, f"{name} 1") for name in cases), "the replies")
    wait_for(lambda: not open_work(server), "what becomes of them")
    rows = {name: row_of(server, f"{name} 1") for name in cases}
    assert {name: row["state"] for name, row in rows.items()} == {
        name: one.state for name, one in cases.items()
    }
    assert [left for left in wire.of.values() if left] == []
    told = {name for name, row in rows.items() if f"message {row['id']} was sent twice" in alerts(server)}
    assert told == {name for name, case in cases.items() if case.state == "unknown"}
    graph.faults(hold_statuses=False)
    for name, person in people.items():
        graph.say(person, f"{name} 2")
    wait_for(lambda: all(row_of(server, f"{name} 2") for name in cases), "the next replies")
    wait_for(lambda: not open_work(server), "their end")
    expected = {
        name: [f"you said: {name} 1"] * one.copies + [f"you said: {name} 2"] for name, one in cases.items()
    }
    assert {name: graph.texts(person) for name, person in people.items()} == expected
    assert server.http.get("/health").status_code == 200


def test_a_reply_that_was_answered_with_a_500_waits_for_a_late_status(liar):
    server, graph, wire = liar
    graph.faults(hold_statuses=True)
    wire.of = {b"you said: late": [Fault(True, answer(500, META_DOWN))]}
    graph.say("p22", "late")
    wait_for(lambda: (row := row_of(server, "late")) and row["code"] == 131016, "the refusal")
    time.sleep(1.5)
    graph.faults(hold_statuses=False)
    wait_for(lambda: not open_work(server), "its end")
    assert graph.texts("p22") == ["you said: late"]


@pytest.fixture(autouse=True)
def settled(liar):
    """Each test begins with nothing on its way and no fault of the one before."""
    server, graph, wire = liar
    yield
    wire.of = {}
    graph.faults(hold_statuses=False)
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the end of the case")


def row_of(server: Server, text: str):
    """The newest outbox row that answers `text`."""
    rows = server.rows(
        "SELECT o.* FROM outbox o JOIN messages m ON m.id = o.message_id WHERE m.text = ?"
        " ORDER BY o.seq DESC LIMIT 1",
        f"you said: {text}",
    )
    return rows[0] if rows else None


def alerts(server: Server) -> str:
    return "\n".join(row["text"] for row in server.rows("SELECT text FROM alerts"))


def test_replies_wait_in_order_while_nobody_listens_and_health_says_so(liar):
    server, graph, wire = liar
    wire.down()
    for n in range(3):
        graph.say("p20", f"m{n}")
        wait_for(lambda n=n: row_of(server, f"m{n}"), "the turn")
    reason = wait_for(lambda: server.http.get("/health").json().get("reason"), "health to say so")
    assert reason == "WhatsApp cannot be reached"
    wire.up()
    graph.reply("p20", 3)
    wait_for(lambda: not open_work(server), "the end")
    assert graph.texts("p20") == [f"you said: m{n}" for n in range(3)]
    assert server.http.get("/health").json()["status"] == "ok"


@pytest.mark.parametrize(("code", "status"), [(131042, "degraded"), (131026, "ok")])
def test_health_is_not_well_while_whatsapp_takes_everything_and_delivers_nothing(liar, code, status):
    server, graph, _ = liar
    graph.say("p19", f"before {code}")
    row = wait_for(lambda: not open_work(server) and row_of(server, f"before {code}"), "the reply")
    failed = {"id": row["wamid"], "status": "failed", "timestamp": "1", "recipient_id": "12125550019"}
    body = messages_body(phone="12125550019")
    body["entry"][0]["changes"][0]["value"]["statuses"] = [{**failed, "errors": [{"code": code}]}]
    assert server.post(body).status_code == 200
    health = server.http.get("/health").json()
    assert (health["status"], str(code) in health.get("reason", "")) == (status, status == "degraded")
    graph.say("p19", f"after {code}")
    wait_for(lambda: row_of(server, f"after {code}") and not open_work(server), "the next reply")
    wait_for(lambda: server.http.get("/health").json() == {"status": "ok"}, "the health to be well")


def test_statuses_of_nobodys_messages_are_taken_and_change_nothing(liar):
    server, graph, _ = liar
    graph.say("p21", "before")
    graph.reply("p21")
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the last status")
    before = server.rows("SELECT id, state, wamid FROM outbox")
    for n, state in enumerate(("sent", "failed", "read", "failed", "nonsense", None, 7)):
        status = {"id": f"wamid.nobody{n}", "status": state, "timestamp": "1", "recipient_id": "12125550021"}
        status |= {"biz_opaque_callback_data": f"out_{n}", "errors": [{"code": 131026, "title": "no"}]}
        body = messages_body(phone="12125550021")
        body["entry"][0]["changes"][0]["value"]["statuses"] = [status, status]
        assert server.post(body).status_code == 200
    assert server.rows("SELECT id, state, wamid FROM outbox") == before
    graph.say("p21", "after")
    assert graph.reply("p21", 2) == "you said: after"
