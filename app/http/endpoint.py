"""One HTTP address that the operator configured, over connections that are kept."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

import httpx2

from app.errors import RecadoError
from app.i18n import lazy

CONNECT_SECONDS = 5.0
IDLE_SECONDS = 15.0
ANSWER_BYTES = 8 * 1024 * 1024


class NotSent(RecadoError):
    """No byte of the body left this machine: the request can have had no effect."""


class NoAnswer(RecadoError):
    """The request may have arrived, and no whole answer came back."""


class TooLong(NoAnswer):
    """The body is larger than was asked for, or than any answer."""


@dataclass(frozen=True)
class Answer:
    """An answer; `retry_after` is that header, as it was written."""

    status: int
    body: bytes
    retry_after: str | None


class Endpoint:
    """Posts to paths below `url`, at most `connections` at once (0: as many as are asked for).

    Redirects are not followed, for the headers are meant for this host, and no proxy is used.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, connections: int = 0) -> None:
        self._url = url.rstrip("/")
        self._headers = {**headers, "Accept-Encoding": "identity"}
        is_clean = all(value.isprintable() for value in headers.values())
        self._fault = url_fault(self._url) if is_clean else "the key or token holds a line break"
        self._limits = httpx2.Limits(max_connections=connections or None, keepalive_expiry=IDLE_SECONDS)
        self._client: httpx2.AsyncClient | None = None

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def post(
        self,
        path: str,
        body: bytes,
        seconds: float,
        content_type: str = "application/json",
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Return the answer to a body within `seconds`; `headers` go with this one alone.

        Raises NotSent or NoAnswer.
        """
        sent = {**self._headers, "Content-Type": content_type, **headers}
        async with self._answered("POST", self._url + path, seconds, sent, body) as response:
            return await _read(response)

    async def get(self, path: str, seconds: float) -> Answer:
        """Return the answer to a GET. Raises NotSent or NoAnswer."""
        async with self._answered("GET", self._url + path, seconds, self._headers) as response:
            return await _read(response)

    async def download(self, url: str, target: Path, limit: int, seconds: float) -> Answer:
        """Write what another address of the same service answers into a new file, at most `limit` bytes.

        The headers go along, so the caller makes sure that the address may have them. The answer has no body.
        Raises NotSent or NoAnswer; TooLong past the limit.
        """
        async with self._answered("GET", url, seconds, self._headers) as response:
            if response.status_code == 200:
                with target.open("wb") as file:
                    async for piece in _pieces(response, limit):
                        await asyncio.to_thread(file.write, piece)
            return Answer(response.status_code, b"", response.headers.get("Retry-After"))

    @asynccontextmanager
    async def _answered(
        self, method: str, url: str, seconds: float, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request; what goes wrong until the end of the block is NotSent or NoAnswer.

        NotSent is also a request that found no free connection in time, or a closed one.
        """
        if self._fault:
            raise NotSent(f"no connection: {self._fault}")
        if self._client is None:
            timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
            self._client = httpx2.AsyncClient(limits=self._limits, timeout=timeout, trust_env=False)
        steps: set[str] = set()

        async def note(step: str, _: object) -> None:
            steps.add(step)

        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(
                    method, url, content=body, headers=headers, extensions={"trace": note}
                ) as response,
            ):
                yield response
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            is_late = isinstance(error, TimeoutError)
            said = f" within {seconds:g} s" if is_late else f": {str(error) or type(error).__name__}"
            if not any("send_request_body" in step for step in steps):
                raise NotSent(f"no connection{said}") from error
            raise NoAnswer(f"no answer{said}") from error


async def _pieces(response: httpx2.Response, limit: int) -> AsyncIterator[bytes]:
    """Yield a body as it comes. Raise TooLong where it has more than `limit` bytes."""
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > limit:
            raise TooLong(f"the body has more than {limit} bytes")
        yield piece


async def _read(response: httpx2.Response) -> Answer:
    body = b"".join([piece async for piece in _pieces(response, ANSWER_BYTES)])
    return Answer(response.status_code, body, response.headers.get("Retry-After"))


def url_fault(url: str) -> str:
    """Say why no request can be made to a configured address, "" where it can."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        is_http = False
    if not is_http:
        return lazy("the address is not of the form http://host or https://host")
    return lazy("the address holds a user's name: use the key instead") if parts.username is not None else ""
