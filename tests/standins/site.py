"""A web site on this machine that answers with the very bytes that a test gives it.

Its certificate (tls/site.pem: site.test, localhost, 127.0.0.1) is signed by tls/authority.pem, whose own key
was thrown away; both last until 2126 and are trusted by nobody but these tests.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

TLS = Path(__file__).parent / "tls"

Page = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """`heads`: what it was asked, as it came, with bodies."""

    port: int = 0
    scheme: str = "http"
    heads: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def host(self) -> tuple[str, int]:
        return "127.0.0.1", self.port


@asynccontextmanager
async def site(pages: Mapping[str, Page], *, tls: bool = False) -> AsyncIterator[Site]:
    """Answers a path with its page, and closes; the page "" is for every other path."""
    here = Site(scheme="https" if tls else "http")
    open_connections: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = [line.split(":")[1] for line in head.lower().split("\r\n") if "content-length:" in line]
            here.heads.append(head + (await reader.readexactly(int(size[0]) if size else 0)).decode())
            page = pages.get(head.split()[1]) or pages[""]
            await (_write(writer, page) if isinstance(page, bytes) else page(writer))
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the test has had enough
        finally:
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections.add(task)
        await serve(reader, writer)
        open_connections.discard(task)

    context = _server_context() if tls else None
    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        for task in open_connections:
            task.cancel()
        await asyncio.gather(*open_connections)
        server.close()


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A whole answer with its length, unless `content_length` says another; Location becomes a redirect."""
    fields = {"content_length": str(len(body)), **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer(status=status, location=location)


def authority() -> ssl.SSLContext:
    """What a client needs to believe the site, and only it."""
    return ssl.create_default_context(cafile=str(TLS / "authority.pem"))


async def _write(writer: asyncio.StreamWriter, page: bytes) -> None:
    writer.write(page)
    await writer.drain()


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "site.pem")
    return context
