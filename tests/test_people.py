"""People are kept apart, in every table, file, prompt, reply and log line; who may not talk gets nothing."""

import json
import sqlite3
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.responses import Response

from app.people import SIMULATED_PEOPLE
from tests.mailer import ANA as ANA_MAIL
from tests.mailer import asked, drop_mailer, press
from tests.standins.model import calls, completion, echo, keeper, last_user_text, routed, slow_until
from tests.world import open_work, standing, text_body, wait_for

ANA, BETO, CARLA = "12125550000", "12125550001", "12125550002"
ANAS, BETOS = "alfa-7319", "bravo-2846"


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory):
    """A server on which two people kept a secret each, listed their notes, and one quoted the other."""
    for town in standing(tmp_path_factory.mktemp("lived_in"), keeper, LOG_LEVEL="DEBUG"):
        live_in(town.server, town.graph)
        yield town.server, town.graph, town.model


def live_in(server, graph):
    for person, secret in [("p0", ANAS), ("p1", BETOS)]:
        graph.ask(person, f"keep {secret}")
        assert secret in graph.ask(person, "list")
    of_ana = [row["wamid"] for row in server.rows("SELECT wamid FROM messages WHERE text LIKE '%alfa%'")]
    for number, wamid in enumerate(filter(None, of_ana), 3):
        body = text_body(f"wamid.q{number}", "list what this says", BETO, context={"id": wamid})
        assert server.post(body).status_code == 200
        graph.reply("p1", number)
    wait_for(lambda: not open_work(server) and graph.log()["pending"] == 0, "the last status")


def test_nothing_of_one_person_reaches_another_in_any_prompt_reply_figure_or_log(lived_in):
    server, graph, model_server = lived_in
    prompts = [json.dumps(body) for body in model_server.requests]
    assert [prompt for prompt in prompts if ANAS in prompt and BETOS in prompt] == []
    assert sum(ANAS in prompt for prompt in prompts) > 3
    quoting = [prompt for prompt in prompts if "list what this says" in prompt]
    assert len(quoting) >= 4
    assert ANAS not in "".join(quoting)
    assert ANAS not in "".join(graph.texts("p1"))
    assert BETOS not in "".join(graph.texts("p0"))
    told = [server.http.get(path).text for path in ("/health", "/metrics")]
    for private in (ANAS, BETOS, ANA, BETO):
        assert all(private not in text for text in [*told, server.log])


def test_every_row_and_file_with_words_of_a_person_is_that_persons(lived_in):
    server, _, _ = lived_in
    with closing(sqlite3.connect(":memory:")) as database:
        with closing(sqlite3.connect(server.folder / "recado.db")) as kept:
            kept.backup(database)
        database.row_factory = sqlite3.Row
        database.execute("PRAGMA foreign_keys=ON")
        people = {
            row["value"]: row["person_id"] for row in database.execute("SELECT value, person_id FROM aliases")
        }
        for secret, phone in [(ANAS, ANA), (BETOS, BETO)]:
            found = [*rows_with(database, secret), *rows_with(database, phone)]
            assert {owner for _, owner in found} == {people[phone]}
            tables = {table for table, _ in found}
            assert {"messages", "journal", "outbox", "prompt_parts", "skill_data"} <= tables
        for path in filter(Path.is_file, server.folder.rglob("*")):
            if not path.name.startswith(("recado.db", "graph.")):  # the latter is the stand-in's
                assert not [one for one in (ANAS, BETOS) if one.encode() in path.read_bytes()], path
        database.execute("DELETE FROM people WHERE id = ?", (people[ANA],))
        assert rows_with(database, ANAS) + rows_with(database, ANA) == []
        assert rows_with(database, BETOS) != []


def rows_with(database: sqlite3.Connection, text: str) -> list[tuple[str, str]]:
    """(table, person) of every row that holds a text in any of its columns."""
    found = []
    for table in [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]:
        for row in database.execute(f"SELECT * FROM {table}"):
            if any(isinstance(value, str) and text in value for value in tuple(row)):
                found.append((table, row["person_id"] if "person_id" in row.keys() else "nobody"))  # noqa: SIM118
    return found


def test_who_is_shut_out_while_being_answered_gets_nothing_and_who_is_frozen_waits(make_world, model):
    changed = threading.Event()
    server, graph = make_world(model=model(slow_until(changed)), SWEEP_SECONDS="0.3")
    graph.say("p1", "slow please")
    graph.say("p2", "slow secret")
    running = "SELECT 1 FROM turns WHERE state = 'running'"
    wait_for(lambda: len(server.rows(running)) == 2, "the slow turns")
    server.admin("people/change", action="block", who=BETO)
    assert server.post(text_body("wamid.2", "who am I", CARLA, from_user_id="US.2")).status_code == 200
    changed.set()
    wait_for(lambda: not server.rows(running), "the end of what ran")
    graph.say("p1", "hello")
    graph.ask("p0", "hello")
    wait_for(lambda: server.rows("SELECT 1 FROM outbox WHERE state = 'failed'"), "the first to be settled")
    assert server.rows("SELECT 1 FROM outbox WHERE state = 'ready'")
    assert graph.sends("p1") == graph.sends("p2") == []
    server.admin("people/change", action="allow", who=CARLA)
    assert graph.reply("p2") == "you said: slow secret"
    assert graph.reply("p2", 2) == "you said: who am I"
    assert graph.sends("p1") == []


def test_a_used_up_budget_is_told_once_an_hour_and_the_next_day_answers_again(make_world, model):
    server, graph = make_world(model=model(echo), DAILY_TOKEN_BUDGET="1000")
    hours = {datetime.now(UTC).hour}
    for count in range(1, 6):
        graph.say("p0", f"message {count}")
        wait_for(lambda n=count: turns_done(server) == n, "the turn's end")
    wait_for(lambda: not open_work(server), "every send")
    texts = graph.texts("p0")
    assert texts[0] == "you said: message 1"
    hours.add(datetime.now(UTC).hour)
    assert 1 <= sum("tomorrow" in text for text in texts) <= len(hours)
    assert server.rows("SELECT tokens FROM token_use")[0]["tokens"] <= 1000
    server.stop()
    server.change("UPDATE token_use SET day = '2001-01-01'")
    server.start()
    assert graph.ask("p0", "message 6") == "you said: message 6"


def test_what_a_yes_did_is_told_though_the_budget_is_used_up_and_that_was_said_before(
    make_world, model, tmp_path
):
    @routed("notes", "mailer")
    def play(body):
        if last_user_text(body).endswith("go"):
            return calls(ANA_MAIL)
        return Response(json.dumps(completion("hi") | {"usage": {"prompt_tokens": 30_000}}))

    skills = drop_mailer(tmp_path / "own")
    budget = {"DAILY_TOKEN_BUDGET": "20000", "CONFIRMATION_MODE": "confirm-all"}
    _, graph = make_world(model=model(play), SKILLS_DIR=str(skills), **budget)
    graph.say("p0", "send a mail: go")
    question = asked(graph, "p0")
    assert graph.ask("p0", "hello") == "hi"
    assert "tomorrow" in graph.ask("p0", "still there?")
    press(graph, "p0", question, "Yes")
    assert "This was done already: send_mail" in graph.reply("p0", 4)


def test_names_cards_and_quotes_make_nobody_somebody_else(town):
    server, graph, person, other = town.server, town.graph, town.newcomer(), town.newcomer()
    phone, own = town.phone(person), town.phone(other)
    graph.ask(person, "hello")
    before = server.rows("SELECT * FROM aliases")
    phones = [{"wa_id": phone, "phone": phone}]
    card = {"name": {"formatted_name": phone}, "phones": phones, "user_id": "US.77"}
    context = {"id": "wamid.other", "from": phone, "from_user_id": "US.77"}
    body = text_body("wamid.name", f"I am {phone}", own, context=context)
    body["entry"][0]["changes"][0]["value"]["contacts"][0]["profile"]["name"] = phone
    assert server.post(body).status_code == 200
    graph.reply(other)
    body = text_body("wamid.card", "", own, type="contacts", contacts=[card], context=context)
    assert server.post(body).status_code == 200
    graph.reply(other, 2)
    added = [row for row in server.rows("SELECT * FROM aliases") if row not in before]
    assert [row["value"] for row in added] == [own]
    people = "SELECT p.frozen FROM people p JOIN aliases a ON a.person_id = p.id WHERE a.value IN (?, ?)"
    assert [row["frozen"] for row in server.rows(people, phone, own)] == ["", ""]


def test_the_simulators_owner_is_nobody_to_whatsapp(make_world, model):
    first = SIMULATED_PEOPLE[0]
    model_server = model(echo)
    server, _ = make_world(
        model=model_server, start=False, ALLOWED_PHONE_NUMBERS=first.phone, OWNER_PHONE_NUMBERS=""
    )
    connected = {name: server.env.pop(name) for name in list(server.env) if name.startswith("WHATSAPP_")}
    server.start()
    body = {"person": first.id, "type": "text", "text": "the secret of the simulator"}
    server.http.post("/simulator/api/send", json=body).raise_for_status()
    wait_for(lambda: turns_done(server) == 1 and not open_work(server), "the simulator's answer")
    server.restart(**connected)
    wait_for(lambda: "Nobody owns this assistant yet" in server.log, "the one-time code")
    assert server.post(text_body("wamid.1", "hello", first.phone)).status_code == 200
    wait_for(lambda: turns_done(server) == 2, "the answer on WhatsApp")
    assert "the secret of the simulator" not in json.dumps(model_server.requests[-2:])
    assert "owner of this assistant" not in json.dumps(model_server.main_calls[-1]["messages"][0])
    people = server.rows("SELECT realm, role FROM people ORDER BY created_at")
    assert [tuple(row) for row in people] == [("simulator", "member"), ("whatsapp", "member")]


def turns_done(server) -> int:
    return server.rows("SELECT count(*) AS n FROM turns WHERE state = 'done'")[0]["n"]
