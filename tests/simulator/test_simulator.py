from pathlib import Path

import orjson
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.channels.whatsapp.credentials import Credentials, load_credentials
from app.channels.whatsapp.errors import THEN, TITLES, read_response
from app.messages import Refused
from app.simulator.faults import Refusal
from app.simulator.graph import StandInGraph
from app.simulator.simulator import Simulator, SimulatorAccess

CREDENTIALS = Credentials("t", "123", "s", "v")


def simulator(folder: Path, *, allowed: bool = True) -> Simulator:
    access = SimulatorAccess(published=allowed)
    graph = StandInGraph(CREDENTIALS, "http://127.0.0.1:9/webhook", [], history_path=folder / "phones.jsonl")
    return Simulator(graph, access)


def client_of(simulator: Simulator) -> TestClient:
    app = FastAPI(openapi_url=None)
    app.include_router(simulator.router)
    return TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)


def test_the_bare_address_leads_to_the_page(tmp_path: Path) -> None:
    client = client_of(simulator(tmp_path))
    assert client.get("/").headers["location"] == "/simulator"
    number = client.get("/simulator/graph/v25.0/123", headers={"Authorization": "Bearer t"})
    assert number.json()["id"] == "123"


def test_the_printed_link_opens_the_page_and_nothing_else_does(tmp_path: Path) -> None:
    made = simulator(tmp_path)
    client, link = client_of(made), made.link("")
    for wrong in ("/simulator", "/simulator?key=", "/simulator?key=x", link + "x"):
        locked = client.get(wrong)
        assert "recado simulator" in locked.text
        assert not locked.cookies
    client.cookies.set("recado_simulator", "x")
    for path in ("state", "events", "media/1"):
        assert client.get(f"/simulator/api/{path}").status_code == 401
    for path in ("send", "faults"):
        assert client.post(f"/simulator/api/{path}", json={}).status_code == 401
    client.cookies.clear()

    opened = client.get(link)
    assert opened.headers["location"] == "/simulator"  # without the key, which stays out of the history
    flags = opened.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    assert "composer" in client.get("/simulator").text
    assert client.get("/simulator/api/state").status_code == 200
    assert simulator(tmp_path).link("") != link


def test_the_client_draws_the_consequence_that_a_code_is_listed_under() -> None:
    for code in TITLES:
        refusal = Refusal(code)
        result = read_response(refusal.status_code, orjson.dumps({"error": refusal.detail}))
        assert isinstance(result, Refused)
        assert (result.then, result.code) == (THEN[code], code)


def test_credentials_are_made_once_for_each_folder_and_kept_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made = load_credentials(folder)
    assert load_credentials(folder) == made
    assert load_credentials(tmp_path / "other") != made
    assert (folder / "simulator.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["simulator.json"]
    assert made.phone_number_id.isdigit()


def test_credentials_do_not_show_their_secrets() -> None:
    shown = repr(Credentials("token-x", "1", "secret-x", "verify-x"))
    assert "-x" not in shown
