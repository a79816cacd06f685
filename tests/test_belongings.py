"""What is kept of a person is given out whole, and erased for good, with a server and without."""

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from app.people import SIMULATED_PEOPLE
from tests.standins.model import echo, keeper, slow_until
from tests.world import Server, open_work, standing, text_body, wait_for

ANA, BETO = "12125550000", "12125550001"
ANAS, BETOS = "alfa-7319", "bravo-2846"


@pytest.fixture
def lived_in(make_world, model):
    """A server on which two people kept a secret each, one of them also in a file."""
    return live_in(*make_world(model=model(keeper)))


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Such a server, on which nobody of the two is erased."""
    for town in standing(tmp_path_factory.mktemp("kept"), keeper):
        yield live_in(town.server, town.graph)


def live_in(server, graph):
    for person, secret in [("p1", BETOS), ("p0", ANAS)]:
        graph.ask(person, f"keep {secret}")
    wait_for(lambda: graph.log()["pending"] == 0, "the last status")
    folder = server.folder / "workspace" / "people" / person_of(server, BETO)
    folder.mkdir(parents=True)
    (folder / "plan.txt").write_text(f"of {BETOS}")
    return server, graph


def person_of(server: Server, phone: str) -> str:
    (row,) = server.rows("SELECT person_id FROM aliases WHERE value = ?", phone)
    return row["person_id"]


def places(server: Server, text: str) -> list[str]:
    """The files of ours that hold a text anywhere in their bytes."""
    files = filter(Path.is_file, server.folder.rglob("*"))
    ours = (path for path in files if not path.name.startswith(("graph.", "server.log")))
    return sorted(path.name for path in ours if text.encode() in path.read_bytes())


@pytest.mark.parametrize("running", [True, False], ids=["beside the server", "without a server"])
def test_an_erased_person_stands_nowhere_on_the_disk_and_who_writes_again_begins_anew(lived_in, running):
    server, graph = lived_in
    body = text_body("wamid.once", f"keep {BETOS}", BETO)
    assert server.post(body).status_code == 200
    graph.reply("p1", 2)
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the last status")
    if not running:
        server.stop()
    aliases = server.rows("SELECT value FROM aliases WHERE person_id = ?", person_of(server, BETO))
    names = [row["value"] for row in aliases]
    assert len(names) == 2
    assert "plan.txt" in places(server, BETOS)
    assert [] not in [places(server, name) for name in names]
    said = server.recado("erase", BETO)
    assert "4 messages" in said
    assert [places(server, one) for one in (BETOS, *names)] == [[]] * (1 + len(names))
    assert places(server, ANAS) != []
    if not running:
        server.start()
    assert ANAS in graph.ask("p0", "list")
    assert server.post(body).status_code == 200  # which came before
    assert BETOS not in graph.ask("p1", "list")
    assert server.rows("SELECT text FROM messages WHERE text LIKE '%bravo%'") == []
    assert len(graph.sends("p1")) == 3


def test_erasing_ends_what_runs_and_nothing_of_it_is_written_or_sent_afterwards(make_world, model):
    go_on = threading.Event()
    played = model(slow_until(go_on))
    server, graph = make_world(model=played, DAILY_TOKEN_BUDGET="100000", SWEEP_SECONDS="0.1")
    graph.say("p1", "slow please")
    wait_for(lambda: played.main_calls, "the turn")
    person = person_of(server, BETO)
    server.recado("erase", BETO)
    go_on.set()
    assert "and me?" in graph.ask("p0", "and me?")
    assert graph.sends("p1") == []
    tables = [row["name"] for row in server.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    kept = [one for one in tables for row in server.rows(f"SELECT * FROM {one}") if person in tuple(row)]
    assert kept == ["erased", "audit"]  # our own id of the person alone
    assert "stumbled" not in server.log
    folders = [server.folder / "workspace" / "people" / one for one in (person, person_of(server, ANA))]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "late.txt").write_text(BETOS)
    wait_for(lambda: not folders[0].exists(), "the sweep")
    assert folders[1].exists()


def test_messages_are_taken_in_while_the_log_waits_for_a_reader(lived_in):
    server, _ = lived_in
    with closing(sqlite3.connect(server.folder / "recado.db", check_same_thread=False)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM messages").fetchone()
        said = []
        erasing = threading.Thread(target=lambda: said.append(server.recado("erase", BETO)))
        erasing.start()
        wait_for(
            lambda: not server.rows("SELECT 1 FROM aliases WHERE value = ?", BETO), "the rows to be gone"
        )
        for number in range(5):
            assert server.post(text_body(f"wamid.l{number}", "list", ANA)).status_code == 200
        reader.execute("COMMIT")
        erasing.join()
    assert "is erased" in said[0]
    assert places(server, BETOS) == []


@pytest.mark.slow
def test_a_reply_that_waits_for_others_on_the_wire_is_not_sent_any_more(make_world, model):
    crowd = 52  # two more than are sent at once
    server, graph = make_world(model=model(echo), crowd=crowd)
    graph.faults(delay=4, hold_statuses=True)
    for n in range(crowd):
        graph.say(f"p{n}", f"hello {n}")
    sending = "SELECT 1 FROM outbox WHERE state = 'sending'"
    ready = "SELECT 1 FROM outbox WHERE state = 'ready'"
    wait_for(lambda: (len(server.rows(sending)), len(server.rows(ready))) == (crowd - 2, 2), "two to wait")
    wait_for(lambda: len(graph.sends()) == crowd - 2, "the others on the wire")
    (waiting, _) = {f"p{n}" for n in range(crowd)} - {send["person"] for send in graph.sends()}
    server.recado("erase", f"1212555{int(waiting[1:]):04}")
    graph.faults(hold_statuses=False)
    everybody = {f"p{n}" for n in range(crowd)}
    wait_for(lambda: {send["person"] for send in graph.sends()} >= everybody - {waiting}, "the others")
    wait_for(lambda: not open_work(server), "the end", 60)
    assert graph.sends(waiting) == []


def test_who_was_only_turned_away_is_forgotten_too_and_somebody_unknown_is_named_in_one_line(kept):
    server, _ = kept
    assert server.post(text_body("wamid.no", "let me in", "5491144445555")).status_code == 200
    assert "nobody is known as ','" in server.recado("erase", ",", "--yes", fails=True)
    assert "5491144445555" in server.recado("people", "list")
    server.recado("erase", "+54 9 11 4444-5555")
    assert "5491144445555" not in server.recado("people", "list")
    for command in ("erase", "export"):
        (said,) = server.recado(command, "5215512345678", fails=True).splitlines()
        assert "nobody is known as '5215512345678'" in said


def test_everything_of_a_person_is_given_out_and_nothing_of_another(kept):
    server, _ = kept
    given = json.loads(server.recado("export", BETO))
    assert given["names"][0] == BETO
    assert [message["direction"] for message in given["messages"]] == ["in", "out"]
    assert BETOS in json.dumps(given["skill_data"])
    [plan] = given["files"]
    assert Path(plan).read_text() == f"of {BETOS}"
    assert {"people", "aliases", "conversations", "turns", "inbox", "outbox", "journal"} <= given.keys()
    assert "model_calls" in given
    assert ANAS not in json.dumps(given)
    assert ANA not in json.dumps(given)


def test_the_simulators_phone_is_emptied_too(tmp_path):
    server = Server(tmp_path).start()
    for person in SIMULATED_PEOPLE[1:3]:
        body = {"person": person.id, "type": "text", "text": f"hola {BETOS}-{person.id}"}
        server.http.post("/simulator/api/send", json=body).raise_for_status()
    sent = "SELECT 1 FROM outbox WHERE state = 'sent'"
    wait_for(lambda: len(server.rows(sent)) == 2 and not open_work(server), "the replies")
    beside, without = SIMULATED_PEOPLE[1:3]
    assert "simulator.jsonl" in places(server, f"{BETOS}-{beside.id}")
    server.recado("erase", beside.phone)
    assert places(server, f"{BETOS}-{beside.id}") == []
    assert BETOS + f"-{beside.id}" not in server.http.get("/simulator/api/state").text
    server.stop()
    assert "simulator.jsonl" in places(server, f"{BETOS}-{without.id}")
    server.recado("erase", without.phone)
    assert places(server, BETOS) == []
