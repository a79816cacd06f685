"""Bodies, heads and waits without end."""

import asyncio
import gzip
import socket
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from app.http.transport import Transport
from tests.http.reaching import LIMIT, get, reaching, refusal
from tests.standins.site import answer, site

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
PACKED = HEAD + b"Content-Encoding: gzip\r\n\r\n"
EMPTY_BLOCKS = b"\x00\x00\x00\xff\xff" * 1000
"""Parts of a deflate stream that unpack to nothing."""


async def _forever(writer: asyncio.StreamWriter, start: bytes, piece: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0)


async def _drip(writer: asyncio.StreamWriter, start: bytes, piece: bytes) -> None:
    writer.write(start)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)


async def test_a_body_over_the_limit_is_refused() -> None:
    for declared in [True, False]:
        body = b"x" * (LIMIT + 1)
        page = answer(body) if declared else HEAD + b"\r\n" + body
        async with site({"/": page, "/fits": answer(body[:-1])}) as here, reaching(here) as transport:
            assert await refusal(transport, here.url) == "TOO_LARGE"
            assert len((await get(transport, here.url + "/fits")).body) == LIMIT


@pytest.mark.parametrize(
    ("start", "piece"),
    [(HEAD + b"\r\n", b"x" * 10_000), (PACKED + gzip.compress(b"", mtime=0)[:10], EMPTY_BLOCKS)],
)
async def test_a_body_without_end_is_cut_at_the_limit(start: bytes, piece: bytes) -> None:
    async def page(writer: asyncio.StreamWriter) -> None:
        await _forever(writer, start, piece)

    async with site({"": page}) as here, reaching(here) as transport:
        assert await refusal(transport, here.url) == "TOO_LARGE"


async def test_a_bomb_is_unpacked_no_further_than_the_limit() -> None:
    packed = gzip.compress(bytes(64 * 1024 * 1024), mtime=0)
    assert len(packed) < LIMIT
    async with site({"/": answer(packed, content_encoding="gzip")}) as here, reaching(here) as transport:
        await refusal(transport, "http://10.0.0.1/")  # so that the client is imported
        tracemalloc.start()
        assert await refusal(transport, here.url) == "TOO_LARGE"
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 4 * 1024 * 1024


async def test_what_was_not_asked_for_or_cannot_be_unpacked_is_refused() -> None:
    for encoding, packed in [
        ("br", b"\x0b\x02\x80hello\x03"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"hello", mtime=0), mtime=0)),
        ("gzip", b"hello"),
        ("deflate", b"\x78\x9cgarbage"),
        ("gzip", gzip.compress(b"hello", mtime=0)[:-1]),
        ("gzip", gzip.compress(b"hello", mtime=0) + b"more"),
    ]:
        async with (
            site({"/": answer(packed, content_encoding=encoding)}) as here,
            reaching(here) as transport,
        ):
            assert await refusal(transport, here.url) == "BAD_ANSWER"


@pytest.mark.parametrize(
    ("start", "piece"), [(HEAD, b"X-A: b\r\n" * 100), (b"", b"a" * 1000)], ids=["headers", "no HTTP"]
)
async def test_a_head_without_end_is_refused(start: bytes, piece: bytes) -> None:
    async def page(writer: asyncio.StreamWriter) -> None:
        await _forever(writer, start, piece)

    async with site({"": page}) as here, reaching(here) as transport:
        assert await refusal(transport, here.url) == "BAD_ANSWER"


@pytest.mark.parametrize(
    ("start", "piece"),
    [(HEAD + b"Content-Length: 50000\r\n\r\n", b"x"), (HEAD, b"x"), (b"", b"HTTP/1.1 100 Continue\r\n\r\n")],
    ids=["body", "head", "only beginnings"],
)
async def test_a_drip_does_not_outlast_the_time(start: bytes, piece: bytes) -> None:
    async def page(writer: asyncio.StreamWriter) -> None:
        await _drip(writer, start, piece)

    async with site({"": page}) as here, reaching(here) as transport:
        assert await refusal(transport, here.url, seconds=0.4) == "TIMED_OUT"


async def test_name_servers_that_say_nothing_hold_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own function cannot be cancelled; the loop's threads are those of the whole server."""
    asked: list[object] = []
    end = Event()

    def silent(host: str, *_: object, **__: object) -> list[object]:
        asked.append(host)
        end.wait(20)
        raise OSError

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    transport = Transport()
    fetches = [refusal(transport, f"http://site{n}.test/", seconds=5) for n in range(3)]
    waiting = asyncio.gather(*fetches)
    try:
        async with asyncio.timeout(3):
            while len(asked) < 3:
                await asyncio.sleep(0.01)
            assert await asyncio.to_thread(lambda: "answered") == "answered"
    finally:
        end.set()
    assert await waiting == ["NO_SUCH_HOST"] * 3
    await transport.close()


@pytest.mark.parametrize(
    "page",
    [b"", b"garbage\r\n\r\n", answer(b"half", content_length="10"), CHUNKED + b"a\r\nhalf"],
    ids=["nothing", "garbage", "half", "half a chunk"],
)
async def test_what_breaks_off_is_no_answer(page: bytes) -> None:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(page)
        await writer.drain()

    async with site({"": write}) as here, reaching(here) as transport:
        assert await refusal(transport, here.url) == "BAD_ANSWER"
