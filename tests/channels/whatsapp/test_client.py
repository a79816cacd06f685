"""What we ask of the Graph API, and what each of its answers means."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.channels.whatsapp.channel import WhatsAppChannel, message_body
from app.channels.whatsapp.errors import read_response
from app.http.endpoint import Endpoint, NoAnswer, NotSent
from app.messages import Accepted, Address, Outgoing, Refused, Unknown
from app.store.media import MediaFolder
from tests.standins.raw import HEAD, raw_server

MEANINGS = [
    *((code, "retry") for code in (1, 4, 80007, 130429, 131056, 131000, 131016, 133016)),
    *((code, "hold") for code in (0, 10, 33, 190, 200, 299, 368, 131031, 131042, 133010)),
    (131047, "template"),
    *((code, "give_up") for code in (100, 131026, 131030, 131049, 132000, 132069, 137000)),
]


def refusal(code: Any, **more: Any) -> bytes:
    return orjson.dumps({"error": {"code": code, "message": "(#code) title", **more}})


def test_an_error_code_says_what_to_do() -> None:
    for code, then in MEANINGS:
        result = read_response(400, refusal(code))
        assert isinstance(result, Refused)
        assert (result.then, result.code) == (then, code)


def test_an_answer_without_a_known_code_goes_by_its_status() -> None:
    for status, body, then in [
        (429, b"", "retry"),
        (500, b"<html>", "retry"),
        (500, refusal(100), "retry"),
        (401, refusal(190), "hold"),
        (403, refusal(424242), "hold"),
        (403, refusal(4), "retry"),
        (403, refusal(131026), "give_up"),
        (400, refusal(100, error_subcode=33), "hold"),
        (400, b"", "give_up"),
        (400, refusal("190"), "give_up"),
        (404, b'{"error": null}', "give_up"),
        (301, b"", "give_up"),
    ]:
        result = read_response(status, body)
        assert isinstance(result, Refused)
        assert result.then == then


def test_an_acceptance_needs_the_messages_id() -> None:
    for body, expected in [
        (b'{"messages": [{"id": "wamid.1"}]}', Accepted("wamid.1")),
        (b'{"messages": [{"id": ""}]}', Unknown("accepted without a message id")),
        (b'{"messages": [{"id": 7}]}', Unknown("accepted without a message id")),
        (b'{"messages": {"id": "x"}}', Unknown("accepted without a message id")),
        (b"<html>", Unknown("accepted without a message id")),
    ]:
        assert read_response(200, body) == expected


def test_a_wait_that_is_asked_for_is_read() -> None:
    for header, seconds in [
        ("7", 7.0),
        ("0.5", 0.5),
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("inf", None),
        ("nan", None),
    ]:
        result = read_response(429, refusal(130429), header)
        assert isinstance(result, Refused)
        assert result.retry_after == seconds


def test_a_request_names_who_it_is_for_as_meta_documents_it() -> None:
    for to, address in [
        (Address("525550000001", "MX.ana"), {"recipient_type": "individual", "to": "525550000001"}),
        (Address(user_id="MX.ana"), {"recipient_type": "individual", "recipient": "MX.ana"}),
        (Address("525550000001", "MX.ana", "g1"), {"recipient_type": "group", "to": "g1"}),
    ]:
        assert message_body(to, Outgoing("hola", quoted="w1"), "out_1") == {
            "messaging_product": "whatsapp",
            "biz_opaque_callback_data": "out_1",
            "context": {"message_id": "w1"},
            "type": "text",
            "text": {"body": "hola", "preview_url": False},
            **address,
        }


def channel(port: int) -> WhatsAppChannel:
    return WhatsAppChannel(f"http://127.0.0.1:{port}/v25.0", "123", "token", MediaFolder(Path("media")))


async def test_no_connection_means_not_sent() -> None:
    client = channel(1)
    result = await client.send(Address("12125550001"), Outgoing("hola"), "out_1")
    await client.close()
    assert isinstance(result, Refused)
    assert result.then == "retry"


async def test_a_request_that_waited_in_vain_for_a_connection_was_not_sent() -> None:
    async with raw_server(hang=True) as (url, heads):
        endpoint = Endpoint(url, {}, connections=1)
        first = asyncio.create_task(endpoint.post("/messages", b"{}", 5))
        while not heads:
            await asyncio.sleep(0.01)
        with pytest.raises(NotSent, match="no connection within"):
            await endpoint.post("/messages", b"{}", 0.1)
        first.cancel()
        with pytest.raises(NoAnswer, match="no answer within"):  # its body had left
            await endpoint.post("/messages", b"{}", 0.1)
        await endpoint.close()


async def test_the_token_goes_to_the_graph_api_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to a proxy of the environment, and not to where an answer leads."""
    async with raw_server(HEAD % 0) as (elsewhere, heads):
        monkeypatch.setenv("http_proxy", elsewhere)
        monkeypatch.setenv("no_proxy", "")
        moved = b"HTTP/1.1 307 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % elsewhere.encode()
        async with raw_server(moved) as (url, _):
            client = channel(int(url.split(":")[2].split("/")[0]))
            result = await client.send(Address("12125550001"), Outgoing("hola"), "out_1")
            await client.close()
    assert isinstance(result, Refused)
    assert heads == []
