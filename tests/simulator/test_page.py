import asyncio
import base64
import re
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from app.simulator import simulator
from tests.simulator.conftest import NUMBER, House

pytestmark = pytest.mark.asyncio(loop_scope="session")

STATIC = sorted(path.name for path in Path(simulator.__file__).with_name("static").glob("*.*s"))
READS = ["", *(f"/static/{name}" for name in STATIC), "/api/state"]


async def test_every_page_forbids_what_it_does_not_need(house: House) -> None:
    for path in READS:
        answer = await house.client.get(f"/simulator{path}")
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


async def test_the_page_needs_nothing_from_elsewhere_and_no_inline_code(house: House) -> None:
    document = (await house.client.get("/simulator")).text
    assert re.findall(r'<script(?![^>]*src="/simulator/)', document) == []
    assert re.findall(r"\son\w+=|<style|\sstyle=", document) == []
    assert set(re.findall(r'(?:src|href)="(?!#|data:)([^"]+)"', document)) == {
        "/simulator/static/page.css",
        "/simulator/static/panel.css",
        "/simulator/static/page.js",
    }
    for name in STATIC:
        text = (await house.client.get(f"/simulator/static/{name}")).text
        assert "innerHTML" not in text
        modules = re.findall(r'(?:from|import) "([^"]+)"', text)
        assert {module.removeprefix("./") for module in modules} <= set(STATIC), name
        assert set(re.findall(r"https?://(?!www\.w3\.org/)[\w.]+", text)) <= {"https://www.openstreetmap.org"}


async def test_every_word_of_the_page_is_there_in_each_language(house: House) -> None:
    text = (await house.client.get("/simulator/static/words.js")).text
    bare = re.sub(r'"[^"\n]*"|`[^`]*`', "''", text)
    tables = re.findall(r"const (es|pt|en) = \{(.*?)\n\};", bare, re.DOTALL)
    keys = {name: re.findall(r"(\w+):\s", table) for name, table in tables}
    assert sorted(keys) == ["en", "es", "pt"]
    assert len(keys["en"]) > 80
    assert keys["es"] == keys["pt"] == keys["en"]


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
        ({"Content-Type": "text/plain"}, 415),
    ],
)
async def test_writes_come_from_the_page_itself(house: House, headers: dict[str, str], status: int) -> None:
    address = house.client.base_url
    own = f"{address.scheme}://{address.host}:{address.port}"
    headers = {"Content-Type": "application/json"} | {k: v.replace("SELF", own) for k, v in headers.items()}
    body = orjson.dumps({"person": "ana", "type": "text", "text": "hi"})
    answer = await house.client.post("/simulator/api/send", content=body, headers=headers)
    assert answer.status_code == status
    await house.idle()
    assert len(house.messages) == (1 if status == 200 else 0)


@pytest.mark.parametrize(
    "body",
    [
        {"person": "nobody", "type": "text", "text": "hi"},
        {"person": "ana", "type": "image", "mime_type": "image/png", "data": "%%%"},
        {"person": "ana", "type": "image", "mime_type": "image/svg+xml", "data": "PHN2Zy8+"},
    ],
)
async def test_a_wrong_send_is_explained(house: House, body: Any) -> None:
    answer = await house.client.post("/simulator/api/send", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]
    await house.idle()
    assert house.posts == []


async def test_a_document_sent_from_the_page_is_only_offered_for_saving(house: House) -> None:
    data = base64.b64encode(b"<script>alert(1)</script>").decode()
    body = {"person": "ana", "type": "document", "data": data, "mime_type": "text/plain", "filename": "a.txt"}
    await house.client.post("/simulator/api/send", json=body)
    await house.idle()
    document = house.messages[0]["document"]
    assert document["filename"] == "a.txt"
    answer = await house.client.get(f"/simulator/api/media/{document['id']}")
    assert answer.headers["content-disposition"] == "attachment"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert (await house.client.get("/simulator/api/media/nothing")).status_code == 400


async def test_a_write_that_is_too_large_is_refused(house: House) -> None:
    body = {"person": "ana", "type": "text", "text": "x" * simulator.LARGEST_BODY}
    answer = await house.client.post("/simulator/api/send", json=body)
    assert answer.status_code == 413
    assert str(simulator.LARGEST_BODY) in answer.json()["error"]


async def test_an_open_page_hears_of_switches_wherever_they_are_thrown(house: House) -> None:
    async with house.client.stream("GET", "/simulator/api/events") as stream:
        events = _events(stream)
        await anext(events)
        await house.client.post("/simulator/api/faults", json={"fail": [{"code": 131000}]})
        assert (await anext(events))["event"] == "faults"
        await house.send({"type": "text", "text": {"body": "hi"}})
        used = await anext(events)
        assert (used["event"], used["faults"]["fail"]) == ("faults", [])
        refused = await anext(events)
        assert (refused["event"], refused["person"], refused["code"]) == ("refused", "ana", 131000)


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
        async with asyncio.timeout(10):
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
