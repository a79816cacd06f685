"""Each transcript in `transcripts/` is a test: what people said is said again, what came back is compared."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.world import Server

FOLDER = Path(__file__).parent / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*.json"))
LONGEST = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """As a newcomer has it: no key, the offline model, the simulator."""
    running = Server(tmp_path_factory.mktemp("replay")).start()
    yield running
    assert running.stop() == 0


def replay(server: Server, transcript: Any) -> Any:
    answer = server.http.post("/simulator/api/replay", json=transcript, timeout=LONGEST)
    assert answer.status_code == 200, answer.text
    return answer.json()


def differences(result: Any) -> list[Any]:
    wrong = [step for step in result["steps"] if not step["ok"]]
    return wrong + [{"came unasked": one} for one in result["extra"]]


def test_there_are_transcripts_in_three_languages() -> None:
    spoken = {one["language"] for path in TRANSCRIPTS for one in json.loads(path.read_text())["people"]}
    assert spoken == {"es", "pt", "en"}


@pytest.mark.slow
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_same_comes_back_as_was_recorded(server: Server, path: Path) -> None:
    transcript = json.loads(path.read_text())
    result = replay(server, transcript)
    assert differences(result) == []
    assert len(result["steps"]) == len(transcript["events"])


def test_a_stranger_plays_whoever_has_written_and_nothing_said_before_is_in_the_way(server: Server) -> None:
    person = {"id": "eva", "name": "Eva", "phone": "34600000001", "user_id": "ES.1", "language": "es"}
    saved = {"person": "eva", "says": {"type": "text", "text": "Guarda una nota: comprar pan"}}
    asked = {"person": "eva", "says": {"type": "text", "text": "Mis notas"}}
    listed = {"person": "eva", "gets": {"text": "Tus notas (1 de 1):\n\n1. comprar pan"}}
    confirmed = {"person": "eva", "gets": {"text": "✓ Nota guardada: comprar pan"}}
    transcript = {"recado_transcript": 1, "people": [person], "events": [saved, confirmed, asked, listed]}
    for _ in range(2):
        result = replay(server, transcript)
        assert differences(result) == []
    people = server.http.get("/simulator/api/state").json()["people"]
    assert [one["id"] for one in people][4:] == ["eva-replay"]


@pytest.mark.parametrize(
    ("gets", "kind"),
    [
        ({"text": "12 × 12 = 145"}, "another number"),
        ({"text": "12 × 12 = {time}"}, "a placeholder of another kind"),
        ({"body": "12 × 12 = 144", "buttons": ["Yes", "No"]}, "buttons that did not come"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_differs_is_told(server: Server, gets: Any, kind: str) -> None:
    result = replay(server, _one_exchange("What is 12*12?", gets))
    assert not result["ok"]
    assert [step["ok"] for step in result["steps"]] == [True, False]
    assert result["steps"][1]["got"] == {"text": "12 × 12 = 144"}


def test_an_answer_nobody_recorded_is_told(server: Server) -> None:
    transcript = _one_exchange("What is 12*12?", {"text": "12 × 12 = {number}"})
    more = {"after": 5.0, "person": "max", "says": {"type": "text", "text": "What is 2+2?"}}
    transcript["events"].append(more)
    result = replay(server, transcript)
    assert [step["ok"] for step in result["steps"]] == [True, True, True]
    assert result["extra"] == [{"person": "max-replay", "got": {"text": "2 + 2 = 4"}}]
    assert not result["ok"]


def test_the_switches_are_afterwards_as_they_were(server: Server) -> None:
    server.http.post("/simulator/api/faults", json={"duplicate": 2})
    transcript = _one_exchange("What is 12*12?", {"text": "12 × 12 = 144"})
    transcript["events"].insert(0, {"switches": {"batch": 3}})
    assert replay(server, transcript)["ok"]
    faults = server.http.get("/simulator/api/state").json()["faults"]
    assert (faults["duplicate"], faults["batch"]) == (2, 1)
    server.http.post("/simulator/api/faults", json={"duplicate": 1})


def _one_exchange(said: str, gets: Any) -> Any:
    person = {"id": "max", "name": "Max", "phone": "", "user_id": "DE.1", "username": "max.m"}
    events = [
        {"person": "max", "says": {"type": "text", "text": said}},
        {"person": "max", "gets": gets},
    ]
    return {"recado_transcript": 1, "people": [person], "events": events}
