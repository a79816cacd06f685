"""How somebody asks for a tool is learned from calls that succeeded: for that person, and for nobody else."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.standins.model import ModelServer, calls, is_classifier, last_user_text
from tests.test_cli import House
from tests.world import Graph, Server, text_body, until, wait_for

SLANG = "garabateame tortugas"
SEARCH = ("search_tools", {"query": "save a note", "limit": 1})
SAVE = ("save_note", {"text": "kept"})


def results(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(one["content"]) for one in body["messages"] if one["role"] == "tool"]


def play(body: dict[str, Any]) -> Any:
    """A model whose classifier knows nothing; it searches, and saves a note, where it is asked kindly."""
    if is_classifier(body):
        return '{"categories": []}'
    made = results(body)
    said = last_user_text(body)
    if "please" not in said or len(made) == 2:
        return "done"
    save = ("save_note", {}) if "wrongly" in said else SAVE
    return calls([SEARCH, save][len(made)])


class School:
    """A server in which people teach and are tested, each time in a conversation that begins anew."""

    def __init__(self, server: Server, graph: Graph, model: ModelServer) -> None:
        self.server = server
        self.graph = graph
        self.model = model

    def say(self, person: str, text: str) -> None:
        for one in ("/new", text):
            before = len(self.graph.texts(person))
            self.graph.say(person, one)
            self.graph.reply(person, before + 1)

    def teach(self, person: str, text: str = SLANG) -> None:
        self.say(person, f"please {text}")

    def offered(self, person: str, text: str = SLANG) -> bool:
        """Whether a message alone brings the tool."""
        self.say(person, text)
        return "save_note" in [tool["function"]["name"] for tool in self.model.main_calls[-1]["tools"]]

    def phrases(self) -> list[tuple[str, str]]:
        rows = self.server.rows("SELECT tool, stems FROM learned_phrases ORDER BY id")
        return [(row["tool"], row["stems"]) for row in rows]

    def erase(self, person: str) -> None:
        phone = f"1212555{int(person[1:]):04}"
        with closing(sqlite3.connect(self.server.folder / "recado.db", timeout=10)) as database, database:
            database.execute("PRAGMA foreign_keys=ON")
            gone = database.execute(
                "DELETE FROM people WHERE id IN (SELECT person_id FROM aliases WHERE value = ?)", (phone,)
            )
            assert gone.rowcount == 1


@pytest.fixture
def school(make_world: Callable[..., Any], model: Callable[..., ModelServer]) -> School:
    model_server = model(play)
    server, graph = make_world(model=model_server, crowd=6, MAX_TOOLS_PER_CALL="2")
    return School(server, graph, model_server)


def test_what_somebody_asked_for_is_found_by_the_same_words_for_that_person_alone(school: School) -> None:
    assert not school.offered("p0")
    school.teach("p0")
    assert school.phrases() == [("save_note", "garabateam tortug")]
    assert school.offered("p0")
    assert not school.offered("p1")

    reasons = {
        row["name"]: [one["learned"] for one in json.loads(row["payload"])["reasons"]]
        for row in school.server.rows(
            "SELECT a.value AS name, j.payload FROM journal j JOIN aliases a ON a.person_id = j.person_id"
            " WHERE j.key = 'route' ORDER BY j.at"
        )
    }
    assert max(reasons["12125550000"]) > 0.5
    assert max(reasons["12125550001"]) == 0
    house = House(school.server.folder, school.server.env)
    (turn,) = school.server.rows(
        "SELECT j.turn_id AS id FROM journal j JOIN aliases a ON a.person_id = j.person_id"
        " WHERE j.key = 'route' AND a.value = '12125550000' ORDER BY j.at DESC LIMIT 1"
    )
    shown = house.run("trace", turn["id"]).stdout.split("Model call")[0]
    assert "learned 0.70" in shown
    assert "tortug" not in shown
    assert "save_note" not in house.run("route", SLANG).stdout.split("Matched")[0]
    told = [school.server.http.get(path).text for path in ("/health", "/metrics")]
    assert all("tortug" not in text for text in (*told, school.server.log))


def test_words_that_three_others_have_are_shared_and_those_of_fewer_are_not(school: School) -> None:
    for person, own in [("p1", "jirafas"), ("p2", "cebras")]:
        school.teach(person, f"garabateame {own}")
    assert not school.offered("p4", "garabateame")
    school.teach("p3", "garabateame leones")
    assert school.offered("p4", "garabateame")
    assert not school.offered("p4", "jirafas cebras leones")
    school.erase("p3")
    assert not school.offered("p4", "garabateame")


def test_who_is_erased_has_taught_nothing_any_more(school: School) -> None:
    school.teach("p0")
    assert school.offered("p0")
    school.erase("p0")
    assert school.phrases() == []
    assert not school.offered("p0")


def test_a_failed_call_and_a_forwarded_message_teach_nothing(school: School) -> None:
    school.teach("p0", f"wrongly {SLANG}")
    before = len(school.graph.texts("p0"))
    body = text_body("wamid.f", f"please {SLANG}", "12125550000", context={"forwarded": True})
    assert school.server.post(body).status_code == 200
    assert "✓" in school.graph.reply("p0", before + 1)
    assert school.phrases() == []


def test_an_answer_comes_where_nothing_can_be_learned_or_looked_up(school: School) -> None:
    with closing(sqlite3.connect(school.server.folder / "recado.db", timeout=10)) as database, database:
        database.execute("DROP TABLE learned_stems")
    school.teach("p0")
    assert "✓" in school.graph.texts("p0")[-1]


def test_a_turn_that_was_cut_off_teaches_once_and_a_restart_keeps_it(
    make_world: Callable[..., Any], model: Callable[..., ModelServer]
) -> None:
    silent = True

    async def slow(body: dict[str, Any]) -> Any:
        if not is_classifier(body) and len(results(body)) == 2:
            await until(lambda: not silent, "the server's end")
        return play(body)

    model_server = model(slow)
    server, graph = make_world(model=model_server, MAX_TOOLS_PER_CALL="2")
    school = School(server, graph, model_server)
    graph.say("p0", f"please {SLANG}")
    wait_for(lambda: len(model_server.main_calls) == 3, "the call after the note")
    assert school.phrases() == []
    server.kill()
    silent = False
    server.start()
    graph.reply("p0")
    assert school.phrases() == [("save_note", "garabateam tortug")]
    server.kill()
    server.start()
    assert school.offered("p0")
