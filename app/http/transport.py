"""Every request to an address that came from a person, a model, a page, a tool or a registry."""

import asyncio
import codecs
import hashlib
import importlib
import re
import ssl
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from app import __version__
from app.http.address import PORTS, Address, Origin, is_public
from app.http.decoding import ACCEPTED, Decoder
from app.http.errors import FetchError, too_large
from app.messages import JSON

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

    from app.http.resolver import Resolve

CONNECT_SECONDS = 10.0
CONNECTIONS = 32
REDIRECTS = 5
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
HEADER_BYTES = 16 * 1024
"""Of one header; there are at most 128."""
PIECE_BYTES = 64 * 1024
OWN_HEADERS = frozenset(
    {"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer"}
    | {"Transfer-Encoding", "Upgrade"}
)
"""What only the transport writes."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_HEAD_BYTES = 1024
_SLOW_CODECS = frozenset(("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"))
"""Costly with hostile bytes, or no text at all."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of any status; `url` is the last one of the redirects, names of headers are in lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """As "text/html", "" where it was not said."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, in the charset that its first bytes, its header or (HTML) its head name.

        Without one it is UTF-8, or HTML that is not in UTF-8 in Windows' Western one; bytes that are none
        become �.
        """
        mark, codec = next((one for one in _BYTE_ORDER_MARKS if self.body.startswith(one[0])), (b"", ""))
        return self.body[len(mark) :].decode(codec or self._codec, "replace")

    @property
    def _codec(self) -> str:
        is_html = "html" in self.content_type
        named = _CHARSET.search(self.headers.get("content-type", ""))
        if named is None and is_html:
            named = _CHARSET.search(self.body[:_HEAD_BYTES].decode("ascii", "replace"))
        try:
            codec = codecs.lookup(named[1]).name if named else ""
            "".encode(codec or "utf-8")  # LookupError for "zip": bytes to bytes
        except LookupError:
            codec = ""
        if codec in ("ascii", "iso8859-1"):
            return "cp1252"  # https://encoding.spec.whatwg.org/#names-and-labels
        if codec and codec not in _SLOW_CODECS:
            return codec
        return "cp1252" if is_html and not _is_utf8(self.body) else "utf-8"

    def json(self) -> JSON:
        """Raises ValueError where the body is no JSON."""
        value: JSON = orjson.loads(self.body)
        return value


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A file that came whole; `sha256` in hexadecimal is of the bytes on the disk."""

    url: str
    headers: Mapping[str, str]
    size: int
    sha256: str


class Transport:
    """Reaches public addresses only, over connections pinned to what was checked.

    `trusted` of a request are origins that the operator wrote, which may be private: where the address itself
    has such an origin, and for redirects within it; nobody else's redirect leads there.
    `allowed_hosts`: hosts with their port, as they stand in addresses ("127.0.0.1", 8443), that the operator
    or a test lets through although they are not public. `tls`: a context in place of the system's
    authorities. Nothing is taken from the environment: no proxy, no .netrc. No cookies are kept.
    """

    def __init__(
        self,
        *,
        allowed_hosts: Collection[tuple[str, int]] = frozenset(),
        tls: ssl.SSLContext | None = None,
        resolve: "Resolve | None" = None,
    ) -> None:
        self._allowed = frozenset(allowed_hosts)
        self._tls = tls
        self._resolve = resolve
        self._sessions: dict[bool, ClientSession] = {}
        """For public addresses (False), and for trusted ones (True), whose names lead wherever they lead."""

    async def close(self) -> None:
        while self._sessions:
            await self._sessions.popitem()[1].close()

    async def get(
        self,
        url: str,
        *,
        limit_bytes: int,
        seconds: float,
        accept: str = "*/*",
        headers: Mapping[str, str] | None = None,
        hosts: Collection[str] | None = None,
        trusted: Collection[Origin] = (),
    ) -> Fetched:
        """An answer whole, at most `limit_bytes` packed and unpacked, within `seconds` in all.

        `headers` go to the first address's own host and port only; where `hosts` are given no other is asked.
        Raises FetchError.
        """
        sent = _sent(accept, headers)
        async with self._exchange("GET", url, seconds, sent, hosts=hosts, trusted=trusted) as (
            address,
            response,
        ):
            return await _whole(address, response, limit_bytes)

    async def post(
        self,
        url: str,
        body: bytes,
        *,
        limit_bytes: int,
        seconds: float,
        accept: str = "*/*",
        headers: Mapping[str, str] | None = None,
        hosts: Collection[str] | None = None,
        trusted: Collection[Origin] = (),
    ) -> Fetched:
        """The same with a body to send; a redirect is not followed, it is the answer. Raises FetchError.

        After NO_CONNECTION, and after what an address can be refused for, nothing was sent; after any other
        it may have arrived.
        """
        sent = _sent(accept, headers)
        async with self._exchange("POST", url, seconds, sent, body, hosts=hosts, trusted=trusted) as (
            address,
            response,
        ):
            return await _whole(address, response, limit_bytes)

    async def download(
        self, url: str, path: Path, *, limit_bytes: int, seconds: float, accept: str = "*/*"
    ) -> Downloaded:
        """The bytes of an answer of status 200 as a new file, not unpacked; what is not whole is removed.

        Raises FetchError, and OSError for the file (also where there is one already).
        """
        async with self._exchange("GET", url, seconds, {"Accept": accept}, encodings="identity") as (
            address,
            response,
        ):
            if response.status != 200:
                raise FetchError("BAD_STATUS", f"the site answers with status {response.status}")
            file = await asyncio.to_thread(path.open, "xb")
            try:
                with file:
                    size, sha256 = 0, hashlib.sha256()
                    async for piece in _pieces(response, limit_bytes):
                        size += len(piece)
                        sha256.update(piece)
                        await asyncio.to_thread(file.write, piece)
            except BaseException:
                await asyncio.to_thread(path.unlink, missing_ok=True)
                raise
            return Downloaded(address.url, _headers(response), size, sha256.hexdigest())

    @asynccontextmanager
    async def _exchange(
        self,
        method: str,
        url: str,
        seconds: float,
        headers: Mapping[str, str],
        body: bytes | None = None,
        encodings: str = ACCEPTED,
        hosts: Collection[str] | None = None,
        trusted: Collection[Origin] = (),
    ) -> AsyncIterator[tuple[Address, "ClientResponse"]]:
        """The first answer that leads no further, and its address; the time runs until the body is read."""
        if not self._sessions:  # the first time the import takes long
            await asyncio.to_thread(importlib.import_module, "aiohttp")
        from yarl import URL

        with _as_fetch_errors(seconds):
            async with asyncio.timeout(seconds):
                address = Address.parse(url)
                is_trusted = address.origin in trusted
                self._admit(address, hosts, is_trusted)
                for _ in range(REDIRECTS + 1):
                    async with self._session(is_trusted).request(
                        method,
                        URL(address.url, encoded=True),
                        data=body,
                        headers={**headers, "Accept-Encoding": encodings},
                        allow_redirects=False,
                    ) as response:
                        location = response.headers.get("Location")
                        if method != "GET" or response.status not in REDIRECT_STATUSES or not location:
                            yield address, response
                            return
                    onward = address.follow(location)
                    if onward.origin != address.origin:  # a key for one host is not for the next
                        headers, is_trusted = {"Accept": headers["Accept"]}, False
                    self._admit(onward, hosts, is_trusted)
                    address = onward
                raise FetchError("BAD_REDIRECT", f"the site leads on more than {REDIRECTS} times")

    def _admit(self, address: Address, hosts: Collection[str] | None, is_trusted: bool) -> None:
        """Raises FetchError for an address that is not asked, as far as it can be told before its name is
        resolved."""
        if hosts is not None and address.host not in hosts:
            named = ", ".join(sorted(hosts)) or "none"
            raise FetchError("BAD_ADDRESS", f"{address.host} is none of the hosts allowed here: {named}")
        if is_trusted or (address.host, address.port) in self._allowed:
            return
        if address.port not in PORTS.values() and address.port < 1024:  # mail, shells, name servers
            raise FetchError("BAD_ADDRESS", "of the ports below 1024 only 80 and 443 are used")
        if address.ip is not None and not is_public(address.ip):
            raise FetchError("NOT_PUBLIC", "the address is not on the public internet")

    def _session(self, is_trusted: bool) -> "ClientSession":
        if is_trusted not in self._sessions:
            self._sessions[is_trusted] = self._made(is_trusted)
        return self._sessions[is_trusted]

    def _made(self, is_trusted: bool) -> "ClientSession":
        import aiohttp

        from app.http.resolver import PinnedResolver, system_resolve

        resolver = PinnedResolver(self._resolve or system_resolve, None if is_trusted else self._allowed)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=resolver,
                use_dns_cache=False,
                ssl=self._tls or True,
                limit=CONNECTIONS,
                force_close=True,  # a kept one may be gone by the next POST, which nobody could repeat
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"recado/{__version__}"},
            trust_env=False,
            auto_decompress=False,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
        )


@contextmanager
def _as_fetch_errors(seconds: float) -> Iterator[None]:
    """What the client library raises, in our words."""
    import aiohttp

    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise FetchError("BAD_CERTIFICATE", "the site cannot prove that it is the one named") from error
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise FetchError("NO_CONNECTION", "the site takes no connection") from error
    except TimeoutError as error:
        raise FetchError("TIMED_OUT", f"the site was not done within {seconds:g} s") from error
    except (aiohttp.ClientError, ConnectionError) as error:
        raise FetchError("BAD_ANSWER", "what the site answers is broken or not HTTP") from error


async def _whole(address: Address, response: "ClientResponse", limit: int) -> Fetched:
    decoder = Decoder(response.headers.get("Content-Encoding", ""), limit)
    body = b"".join([decoder.feed(piece) async for piece in _pieces(response, limit)])
    decoder.end()
    return Fetched(address.url, response.status, _headers(response), body)


async def _pieces(response: "ClientResponse", limit: int) -> AsyncIterator[bytes]:
    """The body as it came; more than `limit` bytes are neither believed nor read."""
    if (response.content_length or 0) > limit:
        raise too_large(limit)
    came = 0
    async for piece in response.content.iter_chunked(PIECE_BYTES):
        came += len(piece)
        if came > limit:
            raise too_large(limit)
        yield piece


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _headers(response: "ClientResponse") -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in response.headers.items():
        value = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        key = name.lower()
        found[key] = f"{found[key]}, {value}" if key in found else value
    return found


def _sent(accept: str, headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers to send. Raises ValueError: what a tool's author wrote is at fault, not the site."""
    sent = {"Accept": accept} | {name.title(): value for name, value in (headers or {}).items()}
    for name, value in sent.items():
        if name in OWN_HEADERS or name.startswith("Proxy-"):
            raise ValueError(f"the header {name} is the transport's own")
        if not _TOKEN.fullmatch(name) or not value.isprintable():
            raise ValueError(f"the header {name!r} holds a line break or another control character")
    return sent
