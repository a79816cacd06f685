"""A server that writes exactly the bytes it was given."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"


@asynccontextmanager
async def raw_server(*writes: bytes, hang: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Read a request, write these bytes, then hang or close; yield the URL and the heads that came."""
    heads: list[bytes] = []
    release = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        for data in writes:
            writer.write(data)
        await writer.drain()
        if hang:
            await release.wait()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1/", heads
    finally:
        release.set()
        listening.close()
