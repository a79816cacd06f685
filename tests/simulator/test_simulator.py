import asyncio
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from app.simulator import PEOPLE, Credentials, Simulator
from app.simulator.voice import canned_clip

CREDENTIALS = Credentials("t", "123", "s", "v")


def test_all_of_it_lies_under_its_own_path(tmp_path: Path) -> None:
    simulator = Simulator(
        CREDENTIALS, "http://127.0.0.1:9/webhook", tmp_path / "phones.jsonl", lambda _: True
    )
    front, *routes = simulator.routes()
    assert isinstance(front, Route)
    assert front.path == "/"
    assert all(isinstance(route, Route) and route.path.startswith("/simulator") for route in routes)
    client = TestClient(Starlette(routes=[front, *routes]))
    assert client.get("/").url.path == "/simulator"
    assert client.get("/simulator").status_code == 200
    assert (
        client.get("/simulator/graph/v25.0/123", headers={"Authorization": "Bearer t"}).json()["id"] == "123"
    )


def test_the_bare_address_leads_nowhere_from_elsewhere(tmp_path: Path) -> None:
    simulator = Simulator(
        CREDENTIALS, "http://127.0.0.1:9/webhook", tmp_path / "phones.jsonl", lambda _: False
    )
    client = TestClient(Starlette(routes=simulator.routes()), follow_redirects=False)
    assert client.get("/").status_code == 404


async def test_it_stops_at_once_while_the_webhook_is_away(tmp_path: Path) -> None:
    simulator = Simulator(
        CREDENTIALS, "http://127.0.0.1:9/webhook", tmp_path / "phones.jsonl", lambda _: True
    )
    await simulator.start()
    await simulator.graph.inbound("ana", {"type": "text", "text": "hi"})
    await asyncio.wait_for(simulator.stop(), 1)
    assert simulator.graph.history.messages


def test_the_people_are_four_and_one_has_a_username_only() -> None:
    assert [bool(person.phone) for person in PEOPLE] == [True, True, True, False]
    assert {person.language for person in PEOPLE} == {"es", "pt", "en"}


def test_the_canned_voice_note_is_whole() -> None:
    pages = canned_clip().split(b"OggS")[1:]
    assert len(pages) == 3
    assert b"OpusHead" in pages[0]
    assert len(pages[2]) == 23 + 150 + 150 * 3
