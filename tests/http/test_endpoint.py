"""What one HTTP call to an operator's address comes to, whatever the other side does."""

import asyncio
from contextlib import suppress

import pytest

from app.http import endpoint
from app.http.endpoint import Answer, Endpoint, NoAnswer, NotSent, TimedOut
from tests.standins.raw import HEAD, raw_server


async def post(url: str, seconds: float = 5.0) -> Answer:
    one = Endpoint(url, {"Authorization": "Bearer secret"})
    try:
        return await one.post("/x", b"{}", seconds)
    finally:
        await one.close()


async def test_nothing_listens_means_not_sent() -> None:
    async with raw_server() as (url, _):
        pass
    with pytest.raises(NotSent, match="no connection"):
        await post(url)


async def test_a_connection_that_breaks_off_is_no_answer() -> None:
    for writes in [(), (b"garbage\r\n\r\n",), (HEAD % 10, b"half")]:
        async with raw_server(*writes) as (url, _):
            with pytest.raises(NoAnswer, match="no answer"):
                await post(url)


async def test_an_answer_that_does_not_end_in_time_is_told_apart() -> None:
    async with raw_server(HEAD % 10, b"half", hang=True) as (url, _):
        with pytest.raises(TimedOut, match=r"no answer within 0\.2 s"):
            await post(url, 0.2)


async def test_a_whole_answer_leaves_its_connection_for_the_next_call_and_half_a_one_does_not() -> None:
    connections, answers = list[int](), [HEAD % 2 + b"ok", HEAD % 0, HEAD % 10 + b"half", HEAD % 2 + b"ok"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(set(connections))
        with suppress(asyncio.IncompleteReadError):  # it was closed
            while await reader.readuntil(b"\r\n\r\n{}"):
                connections.append(number)
                writer.write(answers.pop(0))
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    one = Endpoint(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}", {})
    try:
        assert [(await one.post("/x", b"{}", 5)).body for _ in range(2)] == [b"ok", b""]
        with pytest.raises(TimedOut):
            await one.post("/x", b"{}", 0.2)
        assert (await one.post("/x", b"{}", 5)).body == b"ok"
    finally:
        await one.close()
        listening.close()
    assert connections == [0, 0, 0, 1]


async def test_what_is_too_large_is_not_read_to_its_end() -> None:
    size = endpoint.ANSWER_BYTES * 4
    async with raw_server(HEAD % size, b"x" * (endpoint.ANSWER_BYTES + 1), hang=True) as (url, _):
        with pytest.raises(NoAnswer, match="more than"):
            await post(url)


async def test_a_redirect_is_not_followed() -> None:
    async with raw_server(HEAD % 0) as (elsewhere, heads):
        moved = b"HTTP/1.1 307 Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % elsewhere.encode()
        async with raw_server(moved) as (url, _):
            assert (await post(url)).status == 307
    assert heads == []


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(HEAD % 0) as (proxy, heads):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("no_proxy", "")
        with pytest.raises(NotSent):
            await post("http://name.invalid/v1")
    assert heads == []


async def test_what_can_never_be_sent_is_not_sent_and_says_why() -> None:
    for url, key, fault in [
        ("127.0.0.1:8000/v1", "k", "the address is not of the form http://host"),
        ("ftp://host/v1", "k", "the address is not of the form http://host"),
        ("http://a..b/v1", "k", "the address is not of the form http://host"),
        ("http://[host/v1", "k", "the address is not of the form http://host"),
        ("http://host:x/v1", "k", "the address is not of the form http://host"),
        ("http://me:you@host/v1", "k", "the address holds a user's name"),
        ("http://host/v1", "k\n", "the key or token holds a line break"),
    ]:
        with pytest.raises(NotSent, match=fault):
            await Endpoint(url, {"Authorization": f"Bearer {key}"}).post("/x", b"{}", 5)
