"""One HTTP address that the operator configured, over connections that are kept.

aiohttp, because a call through it costs a quarter of one through httpx2 or the openai package
(docs/decisions/0009).
"""

import asyncio
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from app.errors import RecadoError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout

CONNECT_SECONDS = 5.0
ANSWER_BYTES = 8 * 1024 * 1024
SENT_AT_ONCE = 1024 * 1024
"""Bytes of a body; a larger one goes piece by piece, so that the loop does other things meanwhile."""


class NotSent(RecadoError):
    """No byte of the request left this machine."""


class NoAnswer(RecadoError):
    """The request may have arrived, and no whole answer came back."""


class TimedOut(NoAnswer):
    """The other side was still at it when the time was up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `retry_after` is that header, as it was written."""

    status: int
    body: bytes
    retry_after: str | None


class Endpoint:
    """Posts to paths below `url`, at most `connections` at once (0: as many as are asked for).

    Redirects are not followed: what the headers hold is for this host. `proxies` obeys HTTPS_PROXY and
    the like.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        connections: int = 0,
        proxies: bool = False,
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._connections = connections
        self._proxy = _proxy(self._url) if proxies else None
        self._fault = _fault(self._url, self._headers, self._proxy)
        self._session: ClientSession | None = None

    async def warm(self) -> None:
        """Imports the client off the loop, and off the first call's way."""
        await asyncio.to_thread(importlib.import_module, "aiohttp")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def post(
        self,
        path: str,
        body: bytes,
        seconds: float,
        content_type: str = "application/json",
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """The answer to a body within `seconds`; `headers` go with this one alone.

        Raises NotSent, TimedOut or NoAnswer.
        """
        import aiohttp

        if self._fault:
            raise NotSent(f"no connection: {self._fault}")
        session = self._session or self._open()
        try:
            response = await session.post(
                self._url + path,
                data=body if len(body) <= SENT_AT_ONCE else BytesIO(body),
                # the session's own headers would go to a proxy too, the key among them
                headers={**self._headers, "Content-Type": content_type, **headers},
                allow_redirects=False,
                timeout=_limits(seconds),
            )
            return Answer(response.status, await _read(response), response.headers.get("Retry-After"))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise NotSent(f"no connection: {_reason(error)}") from error
        except TimeoutError as error:
            raise TimedOut(f"no answer within {seconds:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(f"no answer: {_reason(error)}") from error

    def _open(self) -> "ClientSession":
        import aiohttp

        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=self._proxy,
        )
        return self._session


@lru_cache(maxsize=16)
def _limits(seconds: float) -> "ClientTimeout":
    """The settings name a few; each is made once."""
    import aiohttp

    return aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS)


async def _read(response: "ClientResponse") -> bytes:
    """The body; what is too large to be an answer is not read to its end.

    The end of the body gives the connection back; a response is closed only where it was not reached.
    """
    chunks: list[bytes] = []
    size = 0
    try:
        while not response.content.at_eof():
            chunks.append(await response.content.readany())
            size += len(chunks[-1])
            if size > ANSWER_BYTES:
                raise NoAnswer(f"the answer has more than {ANSWER_BYTES} bytes")
    except BaseException:
        response.close()
        raise
    return b"".join(chunks)


def _proxy(url: str) -> str | None:
    """The proxy that the environment names for an address; aiohttp's own way reads .netrc at each call."""
    try:
        parts = urlsplit(url)
    except ValueError:  # `_fault` says so
        return None
    return None if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme)


def _fault(url: str, headers: Mapping[str, str], proxy: str | None) -> str:
    """What is wrong with a configuration that no request can be made with, "" where nothing is."""
    if any(not value.isprintable() for value in headers.values()):
        return "the key or token holds a line break or another control character"
    for address, name in ((url, "the address"), (proxy or "http://none", "the proxy")):
        try:
            parts = urlsplit(address)
            found = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            (parts.hostname or "").encode("idna")
        except ValueError:
            found = False
        if not found:
            return f"{name} is not of the form http://host or https://host"
        if address is url and parts.username is not None:
            return "the address holds a user's name: use the key instead"
    return ""


def _reason(error: Exception) -> str:
    """Its words, without the address of a proxy, which may hold a password."""
    status, message = getattr(error, "status", 0), getattr(error, "message", "")
    return f"{status} {message}" if status else str(error) or type(error).__name__
