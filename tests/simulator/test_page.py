import asyncio
import base64
import re
from typing import Any

import httpx2
import orjson
import pytest

from app.simulator import PEOPLE
from tests.simulator.conftest import NUMBER, House

pytestmark = pytest.mark.asyncio(loop_scope="session")

READS = ["", "/", "/static/page.css", "/static/page.js", "/api/state"]


@pytest.mark.parametrize("path", READS)
async def test_every_page_forbids_what_it_does_not_need(house: House, path: str) -> None:
    answer = await house.client.get(f"/simulator{path}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


async def test_the_page_needs_nothing_from_elsewhere_and_no_inline_code(house: House) -> None:
    page = (await house.client.get("/simulator")).text
    assert re.findall(r'<script(?![^>]*src="/simulator/)', page) == []
    assert re.findall(r"\son\w+=|<style|\sstyle=", page) == []
    assert set(re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', page)) == {
        "/simulator/static/page.css",
        "/simulator/static/page.js",
    }
    script = (await house.client.get("/simulator/static/page.js")).text
    assert "innerHTML" not in script


async def test_where_it_is_not_allowed_nothing_is_there(house: House) -> None:
    house.allowed = False
    for path in [*READS, "/api/events", "/api/media/1", f"/graph/v25.0/{NUMBER}", "/graph/media/1"]:
        assert (await house.client.get(f"/simulator{path}")).status_code == 404, path
    for path in ["/api/send", "/api/faults", f"/graph/v25.0/{NUMBER}/messages"]:
        assert (await house.client.post(f"/simulator{path}", json={})).status_code == 404, path


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "SELF"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
async def test_writes_come_from_the_page_itself(house: House, headers: dict[str, str], status: int) -> None:
    address = house.client.base_url
    own = f"{address.scheme}://{address.host}:{address.port}"
    headers = {"Content-Type": "application/json"} | {k: v.replace("SELF", own) for k, v in headers.items()}
    body = orjson.dumps({"person": "ana", "type": "text", "text": "hi"})
    answer = await house.client.post("/simulator/api/send", content=body, headers=headers)
    assert answer.status_code == status
    await house.graph.idle()
    assert len(house.messages) == (1 if status == 200 else 0)


@pytest.mark.parametrize(
    "body",
    [
        {"person": "nobody", "type": "text", "text": "hi"},
        {"person": "ana", "type": "text", "text": ""},
        {"person": "ana", "type": "text", "text": "x" * 65_537},
        {"person": "ana", "type": "dance"},
        {"person": "ana", "type": "image", "mime_type": "image/png"},
        {"person": "ana", "type": "image", "mime_type": "image/png", "data": "%%%"},
        {"person": "ana", "type": "image", "mime_type": "image/svg+xml", "data": "PHN2Zy8+"},
        {"person": "ana", "type": "button"},
        ["ana"],
        "ana",
    ],
)
async def test_a_wrong_send_is_explained(house: House, body: Any) -> None:
    answer = await house.client.post("/simulator/api/send", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]
    await house.graph.idle()
    assert house.posts == []


async def test_a_document_sent_from_the_page_is_only_offered_for_saving(house: House) -> None:
    data = base64.b64encode(b"<script>alert(1)</script>").decode()
    body = {"person": "ana", "type": "document", "data": data, "mime_type": "text/plain", "filename": "a.txt"}
    await house.client.post("/simulator/api/send", json=body)
    await house.graph.idle()
    document = house.messages[0]["document"]
    assert document["filename"] == "a.txt"
    answer = await house.client.get(f"/simulator/api/media/{document['id']}")
    assert answer.headers["content-disposition"] == "attachment"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert (await house.client.get("/simulator/api/media/nothing")).status_code == 404


async def test_the_state_holds_people_and_messages(house: House) -> None:
    state = (await house.client.get("/simulator/api/state")).json()
    assert [person["id"] for person in state["people"]] == [person.id for person in PEOPLE]
    assert [message["content"]["body"] for message in state["messages"]] == ["hi"] * len(PEOPLE)


async def test_faults_are_switched_by_the_page(house: House) -> None:
    answer = await house.client.post("/simulator/api/faults", json={"duplicate": 2})
    assert answer.json()["duplicate"] == 2
    assert (await house.client.post("/simulator/api/faults", json={"x": 2})).status_code == 400


async def test_events_begin_with_the_state_follow_what_happens_and_end_with_the_stop(house: House) -> None:
    async with house.client.stream("GET", "/simulator/api/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = _events(stream)
        assert (await anext(events))["event"] == "state"
        wamid = await house.graph.inbound("ana", {"type": "text", "text": "hi"})
        said = await anext(events)
        assert (said["event"], said["message"]["id"]) == ("message", wamid)
        await house.send({"status": "read", "message_id": wamid, "typing_indicator": {"type": "text"}})
        seen = [await anext(events)]
        while seen[-1]["event"] != "typing":
            seen.append(await anext(events))
        assert {"event": "status", "id": wamid, "status": "read"} in seen
        await asyncio.wait_for(house.graph.stop(), 2)
        async with asyncio.timeout(2):
            assert [event async for event in events if event["event"] == "message"] == []


async def _events(stream: httpx2.Response) -> Any:
    async for line in stream.aiter_lines():
        if line.startswith("data: "):
            yield orjson.loads(line.removeprefix("data: "))
