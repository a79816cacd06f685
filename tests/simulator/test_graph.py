import base64
import hashlib
import hmac
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.people import SIMULATED_PEOPLE
from tests.simulator.conftest import NUMBER, SECRET, TOKEN, House, MakeHouse

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANA, BRUNO, CHRIS, DANI = SIMULATED_PEOPLE
HI = {"type": "text", "text": {"body": "hi"}}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


async def test_a_send_is_answered_as_meta_does_and_followed_by_signed_statuses(house: House) -> None:
    answer = await house.send({**HI, "biz_opaque_callback_data": "outbox-1"})
    assert answer.status_code == 200
    sent = answer.json()
    wamid = sent["messages"][0]["id"]
    assert sent == {
        "messaging_product": "whatsapp",
        "contacts": [{"input": ANA.phone, "wa_id": ANA.phone}],
        "messages": [{"id": wamid}],
    }
    await house.idle()
    assert [status["status"] for status in house.statuses] == ["sent", "delivered", "read"]
    for status in house.statuses:
        assert status["id"] == wamid
        assert status["recipient_id"] == ANA.phone
        assert status["recipient_user_id"] == ANA.user_id
        assert status["biz_opaque_callback_data"] == "outbox-1"
    for raw, signed in house.posts:
        assert signed == "sha256=" + hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"type": "text", "text": {"body": "x" * 4097}}, 100),
        ({**HI, "to": "4915550000000"}, 131030),
        ({**HI, "recipient": "US.999"}, 131026),
        ({"type": "image", "image": {"id": "123"}}, 100),
        ({"type": "reaction", "reaction": {"message_id": "wamid.none", "emoji": "👍"}}, 131009),
        ({"status": "read", "message_id": "wamid.none"}, 100),
    ],
)
async def test_errors_have_metas_form(house: House, body: dict[str, Any], code: int) -> None:
    answer = await house.send(body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["type"] == "OAuthException"
    assert error["message"].startswith(f"(#{code}) ")
    assert error["error_data"]["details"]
    assert error["fbtrace_id"]


async def test_wrong_tokens_garbage_and_other_numbers_are_refused(house: House) -> None:
    for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        answer = await house.client.get(f"/simulator/graph/v25.0/{NUMBER}", headers=wrong)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, 190)
    header = {"Authorization": f"Bearer {TOKEN}"}
    for path, content in [
        (f"/v25.0/{NUMBER}/messages", b"{"),
        (f"/v25.0/{NUMBER}/messages", b"[]"),
        ("/v25.0/999/messages", b"{}"),
    ]:
        answer = await house.client.post(f"/simulator/graph{path}", content=content, headers=header)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, 100)


async def test_outside_the_window_only_a_template_passes(make_house: MakeHouse) -> None:
    house = await make_house()
    template = {"type": "template", "template": {"name": "hello_world", "language": {"code": "en_US"}}}
    assert (await house.send(HI)).json()["error"]["code"] == 131047
    assert (await house.send(template)).status_code == 200
    await house.graph.inbound("ana", {"type": "text", "text": "hi"})
    assert (await house.send(HI)).status_code == 200
    house.graph.set_faults({"clock_ahead": 24 * 3600 + 1})
    assert (await house.send(HI)).json()["error"]["code"] == 131047


async def test_inbound_text_has_the_shape_of_2026(house: House) -> None:
    await house.graph.inbound("ana", {"type": "text", "text": "¿qué tal?", "quoted": "wamid.before"})
    await house.idle()
    body = orjson.loads(house.posts[0][0])
    assert body["object"] == "whatsapp_business_account"
    assert body["entry"][0]["changes"][0]["field"] == "messages"
    value = house.values[0]
    assert value["metadata"]["phone_number_id"] == NUMBER
    assert value["contacts"] == [{"profile": {"name": "Ana"}, "user_id": ANA.user_id, "wa_id": ANA.phone}]
    message = value["messages"][0]
    assert (message["from"], message["from_user_id"]) == (ANA.phone, ANA.user_id)
    assert message["text"] == {"body": "¿qué tal?"}
    assert message["context"]["id"] == "wamid.before"
    assert message["id"].startswith("wamid.")
    assert message["timestamp"].isdigit()


async def test_inbound_kinds(house: House) -> None:
    reply, edited = {"id": "y", "title": "Yes"}, {"type": "text", "text": {"body": "new"}}
    for said, kind, block in [
        ({"type": "button", "reply": reply}, "interactive", {"type": "button_reply", "button_reply": reply}),
        ({"type": "list", "reply": reply}, "interactive", {"type": "list_reply", "list_reply": reply}),
        *(
            ({"type": kind, kind: block}, kind, block)
            for kind, block in (
                ("location", {"latitude": 1.5, "longitude": 2.5}),
                ("contacts", [{"name": {"formatted_name": "E"}}]),
                ("reaction", {"message_id": "wamid.x", "emoji": "👍"}),
            )
        ),
        (
            {"type": "edit", "original": "wamid.x", "text": "new"},
            "edit",
            {"original_message_id": "wamid.x", "message": {"context": {"id": "wamid.x"}, **edited}},
        ),
        ({"type": "revoke", "original": "wamid.x"}, "revoke", {"original_message_id": "wamid.x"}),
    ]:
        await house.graph.inbound("bruno", said)
        await house.idle()
        assert (house.messages[-1]["type"], house.messages[-1][kind]) == (kind, block)


async def test_a_voice_note_can_be_fetched_with_the_token_only(house: House) -> None:
    await house.graph.inbound("ana", {"type": "voice"})
    await house.idle()
    audio = house.messages[0]["audio"]
    assert audio["voice"] is True
    assert audio["mime_type"] == "audio/ogg; codecs=opus"
    found = (await house.get(f"/v25.0/{audio['id']}")).json()
    assert found["url"].startswith(str(house.client.base_url))
    file = await house.client.get(found["url"], headers={"Authorization": f"Bearer {TOKEN}"})
    assert file.content.startswith(b"OggS")
    assert hashlib.sha256(file.content).hexdigest() == found["sha256"]
    assert base64.b64encode(hashlib.sha256(file.content).digest()).decode() == audio["sha256"]
    assert (await house.client.get(found["url"])).status_code == 401


async def test_a_file_goes_up_is_sent_and_deleted(house: House) -> None:
    header = {"Authorization": f"Bearer {TOKEN}"}
    path = f"/simulator/graph/v25.0/{NUMBER}/media"
    form = {"messaging_product": "whatsapp", "type": "image/png"}
    up = await house.client.post(
        path, data=form, files={"file": ("a.png", PIXEL, "image/png")}, headers=header
    )
    media_id = up.json()["id"]
    assert house.graph.media.find(media_id).data == PIXEL
    assert (await house.send({"type": "image", "image": {"id": media_id, "caption": "a"}})).status_code == 200
    gone = await house.client.delete(f"/simulator/graph/v25.0/{media_id}", headers=header)
    assert gone.json() == {"success": True}
    assert (await house.get(f"/v25.0/{media_id}")).json()["error"]["code"] == 100
    large = {"file": ("a.png", b"x" * (5 * 1024 * 1024 + 1), "image/png")}
    refused = await house.client.post(path, data=form, files=large, headers=header)
    assert refused.json()["error"]["code"] == 131053


async def test_a_webhook_is_posted_until_it_is_taken_and_in_order(house: House) -> None:
    house.answers += [500, 503, 401, 200]
    ids = [await house.graph.inbound("ana", {"type": "text", "text": str(n)}) for n in range(3)]
    assert house.graph.pending == 3
    await house.idle()
    assert [message["id"] for message in house.messages] == [ids[0]] * 4 + ids[1:]
    assert house.graph.pending == 0


async def test_history_and_untaken_webhooks_survive_a_restart(make_house: MakeHouse, tmp_path: Path) -> None:
    path = tmp_path / "phones.jsonl"
    first = await make_house(history_path=path)
    taken = await first.graph.inbound("ana", {"type": "text", "text": "taken"})
    await first.idle()
    first.answers += [503] * 1000
    lost = await first.graph.inbound("ana", {"type": "text", "text": "not taken"})
    first.graph.set_faults({"hold_statuses": True})
    reply = (await first.send(HI)).json()["messages"][0]["id"]
    await first.graph.stop()
    with path.open("ab") as file:
        file.write(b'{"event": "message", "mess')

    second = await make_house(history_path=path)
    await second.idle()
    assert list(second.graph.history.chats["ana"]) == [taken, lost, reply]
    assert [message["id"] for message in second.messages] == [lost]
    assert [(status["id"], status["status"]) for status in second.statuses] == [
        (reply, "sent"),
        (reply, "delivered"),
        (reply, "read"),
    ]
    assert (await second.send(HI)).status_code == 200
