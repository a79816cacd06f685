"""The guarded transport for addresses from a person, a model, a page, a tool or a registry."""

import asyncio
import codecs
import re
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpcore2
import orjson

from app import __version__
from app.http.address import PORTS, Address, FetchError, Origin, is_public, too_large, unmapped
from app.i18n import lazy
from app.messages import JSON

SECONDS, SECONDS_MOST = 20.0, 60.0  # of a tool's request, unless it says otherwise, and at most
BYTES, BYTES_MOST = 2 * 1024 * 1024, 8 * 1024 * 1024
THREAD_SECONDS = SECONDS_MOST + 5.0  # that a `def` tool waits: it is the request that says what went wrong
CONNECT_SECONDS = 10.0
ONE_OF_MANY_SECONDS = 3.0  # before the next address of a name is tried
CONNECTIONS = 32
REDIRECTS = 5
AGENT = f"recado/{__version__}"
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
OWN_HEADERS = frozenset(
    {"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer"}
    | {"Transfer-Encoding", "Upgrade"}
)
"""Headers that only the transport writes."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
# Codecs of text; others are costly with hostile bytes, or turn bytes into bytes.
_TEXT_CODEC = re.compile(r"utf-(?:8|16|32).*|iso8859-.*|cp\d+|koi8.*|gb.*|big5.*|euc_.*|shift_jis.*")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

Headers = Mapping[str, str] | None
Parameters = Mapping[str, str | int | float] | None
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]  # from a name and port to IP addresses, else OSError


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
        """Return the media type such as "text/html", "" if none was given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, in the charset that its header names; bytes that are none become �.

        Without one, or where it says ISO 8859-1, it is UTF-8 or else Windows' Western one.
        """
        named = _CHARSET.search(self.headers.get("content-type", ""))
        codec = ""
        with suppress(LookupError):  # a charset that Python does not know
            codec = codecs.lookup(named[1]).name if named else ""
        if codec == "utf-8":
            return self.body.decode("utf-8-sig", "replace")
        if codec != "iso8859-1" and _TEXT_CODEC.fullmatch(codec):
            return self.body.decode(codec, "replace")
        with suppress(UnicodeDecodeError):
            return self.body.decode("utf-8-sig")
        return self.body.decode("cp1252", "replace")  # https://encoding.spec.whatwg.org/#names-and-labels

    def json(self) -> JSON:
        """Raises ValueError where the body is no JSON."""
        value: JSON = orjson.loads(self.body)
        return value


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
        resolve: Resolve | None = None,
    ) -> None:
        self._allowed = frozenset(allowed_hosts)
        self._tls = tls
        self._resolve = resolve or system_resolve
        self._pools: dict[bool, httpcore2.AsyncConnectionPool] = {}  # True: for what the operator trusts

    async def close(self) -> None:
        while self._pools:
            await self._pools.popitem()[1].aclose()

    async def fetch(
        self,
        url: str,
        *,
        body: bytes | None = None,
        limit_bytes: int,
        seconds: float,
        headers: Headers = None,
        hosts: Collection[str] | None = None,
        trusted: Collection[Origin] = (),
    ) -> Fetched:
        """Return a whole answer, at most `limit_bytes` packed and unpacked, within `seconds` in all.

        With a `body` it is posted, and a redirect is the answer. `headers` but Accept go to the first
        address's own host and port only; where `hosts` are given no other is asked. Raises FetchError: after
        NO_CONNECTION and after a refused address nothing was sent, after any other code it may have arrived.
        """
        sent = _sent(headers or {})
        with _as_fetch_errors(seconds):
            async with asyncio.timeout(seconds):
                address = Address.parse(url)
                is_trusted = address.origin in trusted
                for _ in range(REDIRECTS + 1):
                    self._admit(address, hosts, is_trusted)
                    async with self._request(address, is_trusted, sent, body) as response:
                        location = _headers(response).get("location")
                        if body is not None or response.status not in REDIRECT_STATUSES or not location:
                            return await _whole(address, response, limit_bytes)
                    onward = address.follow(location)
                    if onward.origin != address.origin:  # a key for one host is not for the next
                        sent, is_trusted = {"Accept": sent["Accept"]}, False
                    address = onward
                raise FetchError("BAD_REDIRECT", lazy("the site leads on more than {n} times", n=REDIRECTS))

    def _request(
        self, address: Address, is_trusted: bool, headers: Mapping[str, str], body: bytes | None
    ) -> AbstractAsyncContextManager[httpcore2.Response]:
        sent = {**headers, "Host": urlsplit(address.url).netloc, "Accept-Encoding": "gzip"}
        sent |= {"User-Agent": AGENT, "Connection": "close"}  # a POST on a kept one could be lost
        scheme, host, target = address.scheme.encode(), address.host.encode(), address.target.encode()
        return self._pool(is_trusted).stream(
            "GET" if body is None else "POST",
            httpcore2.URL(scheme=scheme, host=host, port=address.port, target=target),
            headers=list(sent.items()),
            content=body,
            extensions={"timeout": {"connect": CONNECT_SECONDS}},
        )

    def _admit(self, address: Address, hosts: Collection[str] | None, is_trusted: bool) -> None:
        """Raise FetchError for an address that is refused before its name is resolved."""
        if hosts is not None and address.host not in hosts:
            named = ", ".join(sorted(hosts)) or "none"
            raise FetchError(
                "BAD_ADDRESS",
                lazy("{host} is none of the hosts allowed here: {named}", host=address.host, named=named),
            )
        if is_trusted or (address.host, address.port) in self._allowed:
            return
        if address.port not in PORTS.values() and address.port < 1024:  # mail, shells, name servers
            raise FetchError("BAD_ADDRESS", lazy("of the ports below 1024 only 80 and 443 are used"))
        if address.ip is not None and not is_public(address.ip):
            raise FetchError("NOT_PUBLIC", lazy("the address is not on the public internet"))

    def _pool(self, is_trusted: bool) -> httpcore2.AsyncConnectionPool:
        if is_trusted not in self._pools:
            self._pools[is_trusted] = httpcore2.AsyncConnectionPool(
                ssl_context=self._tls or ssl.create_default_context(),
                max_connections=None if is_trusted else CONNECTIONS,  # callers bound the former
                max_keepalive_connections=0,
                network_backend=_PinnedBackend(self._resolve, None if is_trusted else self._allowed),
            )
        return self._pools[is_trusted]


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses that the system knows for a name, /etc/hosts included."""
    asked = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_NAME_THREADS, asked)
    return [str(address[0]) for *_, address in found]


async def addresses_of(resolve: Resolve, host: str, port: int, *, is_allowed: bool = False) -> list[str]:
    """Return the addresses of a host. Raises FetchError where there is none, or one is not public."""
    try:
        found = [unmapped(ip_address(text)) for text in await resolve(host, port)]
    except OSError:
        found = []
    if not found:
        raise FetchError("NO_SUCH_HOST", lazy("no machine of that name was found"))
    if not is_allowed and not all(map(is_public, found)):
        raise FetchError(
            "NOT_PUBLIC", lazy("the name leads to an address that is not on the public internet")
        )
    return list(dict.fromkeys(map(str, found)))


# Apart from the loop's own: a name server that says nothing holds a thread long after its caller has left.
_NAME_THREADS = ThreadPoolExecutor(32, "names")


class _PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Resolves a name once for each connection, checks what it found, and connects to nothing else.

    TLS still names and checks the host of the address. `allowed`: the hosts and ports that may lead to any
    machine; None: all of them.
    """

    def __init__(self, resolve: Resolve, allowed: Collection[tuple[str, int]] | None) -> None:
        self._resolve = resolve
        self._allowed = allowed
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raises FetchError NO_SUCH_HOST, or NOT_PUBLIC where a single one of its addresses is not."""
        try:
            async with asyncio.timeout(timeout):
                is_allowed = self._allowed is None or (host, port) in self._allowed
                addresses = await addresses_of(self._resolve, host, port, is_allowed=is_allowed)
                return await self._connect(addresses, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error

    async def _connect(self, addresses: Sequence[str], port: int) -> httpcore2.AsyncNetworkStream:
        for ip in addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await self._network.connect_tcp(ip, port, timeout=ONE_OF_MANY_SECONDS)
        return await self._network.connect_tcp(addresses[-1], port)


_BROKEN = (httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.TimeoutException, ConnectionError)


@contextmanager
def _as_fetch_errors(seconds: float) -> Iterator[None]:
    """Raise FetchError for what the client library raises."""
    try:
        yield
    except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
        if any(isinstance(cause, ssl.SSLError) for cause in error.args):
            raise FetchError(
                "BAD_CERTIFICATE", lazy("the site cannot prove that it is the one named")
            ) from error
        raise FetchError("NO_CONNECTION", lazy("the site takes no connection")) from error
    except TimeoutError as error:
        raise FetchError("TIMED_OUT", lazy("the site was not done within {n} s", n=f"{seconds:g}")) from error
    except _BROKEN as error:
        raise FetchError("BAD_ANSWER", lazy("what the site answers is broken or not HTTP")) from error


async def _whole(address: Address, response: httpcore2.Response, limit: int) -> Fetched:
    """Read and unpack a body; more than `limit` bytes are neither believed nor read."""
    headers, body = _headers(response), bytearray()
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > limit:
        raise too_large(limit)
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > limit:
            raise too_large(limit)
    whole = unpacked(bytes(body), headers.get("content-encoding", ""), limit)
    return Fetched(address.url, response.status, headers, whole)


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a body without its content encoding, at most `limit` bytes.

    Raise FetchError TOO_LARGE or BAD_ANSWER.
    """
    encoding = encoding.strip().lower()
    if not body or encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise FetchError("BAD_ANSWER", lazy("the answer comes in an encoding that was not asked for"))
    inflater = zlib.decompressobj(zlib.MAX_WBITS + 16)
    try:
        made = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise FetchError("BAD_ANSWER", lazy("the answer cannot be unpacked")) from error
    if len(made) > limit:
        raise too_large(limit)
    if not inflater.eof or inflater.unused_data:
        raise FetchError("BAD_ANSWER", lazy("the answer broke off, or goes on after its end"))
    return made


def _headers(response: httpcore2.Response) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in response.headers:
        key, text = name.decode("ascii", "replace").lower(), value.decode("utf-8", "replace")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _sent(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to send. Raises ValueError: the tool's author is at fault, not the site."""
    sent = {"Accept": "*/*"} | {name.title(): value for name, value in headers.items()}
    for name, value in sent.items():
        if name in OWN_HEADERS or name.startswith("Proxy-"):
            raise ValueError(f"the header {name} is the transport's own")
        if not _TOKEN.fullmatch(name) or not value.isprintable():
            raise ValueError(f"the header {name!r} holds a line break or another control character")
    return sent


class HttpClient:
    """`context.http`: what a tool asks the internet with; public addresses only.

    An answer has `.status`, `.ok`, `.headers`, `.url`, `.text`, `.json()`, `.body`. Every status is one;
    raises FetchError (`.code`, text) where none came. `hosts`: the only ones that are asked; `trusted`:
    origins that the operator wrote, which may be private, unless a request is `public`: somebody else wrote
    its address. The other options of a request are `seconds` and `limit_bytes`.
    """

    def __init__(
        self, transport: Transport, hosts: Collection[str] | None = None, trusted: Collection[Origin] = ()
    ) -> None:
        self._transport = transport
        self._hosts = hosts
        self._trusted = trusted

    async def get(
        self, url: str, *, params: Parameters = None, headers: Headers = None, **options: Any
    ) -> Fetched:
        """Return the answer; `params` are added to the address.

        Redirects are followed, without `headers` to another host.
        """
        if params:
            url, mark, fragment = url.partition("#")
            url = f"{url}{'&' if '?' in url else '?'}{urlencode(params)}{mark}{fragment}"
        return await self._fetch(url, None, headers, **options)

    async def post(
        self,
        url: str,
        *,
        json: JSON = None,
        body: bytes | None = None,
        headers: Headers = None,
        **options: Any,
    ) -> Fetched:
        """Send `body`, or `json` where there is none; a redirect is not followed, it is the answer."""
        if body is None:
            body, headers = orjson.dumps(json), {"Content-Type": "application/json", **(headers or {})}
        return await self._fetch(url, body, headers, **options)

    async def _fetch(
        self,
        url: str,
        body: bytes | None,
        headers: Headers,
        *,
        seconds: float = SECONDS,
        limit_bytes: int = BYTES,
        public: bool = False,
    ) -> Fetched:
        return await self._transport.fetch(
            url,
            body=body,
            headers=headers,
            seconds=min(seconds, SECONDS_MOST),
            limit_bytes=min(limit_bytes, BYTES_MOST),
            hosts=self._hosts,
            trusted=() if public else self._trusted,
        )
