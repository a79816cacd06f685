"""`context.http`: what a tool asks the internet with."""

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from app.http.address import Origin
from app.http.answers import Fetched
from app.http.transport import Transport
from app.messages import JSON

SECONDS = 20.0
SECONDS_MOST = 60.0
BYTES = 2 * 1024 * 1024
BYTES_MOST = 8 * 1024 * 1024
MARGIN_SECONDS = 5.0
"""How much longer a thread waits than the request may take: it is the request that says what went wrong."""

Parameters = Mapping[str, str | int | float]


class HttpClient:
    """Public addresses only. An answer has `.status`, `.ok`, `.headers`, `.url`, `.text`, `.json()`, `.body`.

    Every status is an answer; raises FetchError (`.code`, text) where none came. This is the awaitable face
    (`async def` tools); `sync()` gives the one for `def` tools. `hosts`: the only ones that are asked;
    `trusted`: origins that the operator wrote, which may be private, unless a request is `public`: somebody
    else wrote its address. The other options of a request are `seconds` and `limit_bytes`.
    """

    def __init__(
        self, transport: Transport, hosts: Collection[str] | None = None, trusted: Collection[Origin] = ()
    ) -> None:
        self._transport = transport
        self._hosts = hosts
        self._trusted = trusted

    async def get(
        self,
        url: str,
        *,
        params: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
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
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Fetched:
        """Send `body`, or `json` where there is none; a redirect is not followed, it is the answer."""
        if body is None:
            body, headers = orjson.dumps(json), {"Content-Type": "application/json", **(headers or {})}
        return await self._fetch(url, body, headers, **options)

    def sync(self) -> "SyncHttpClient":
        return SyncHttpClient(self, asyncio.get_running_loop())

    async def _fetch(
        self,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
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


class SyncHttpClient:
    """The HTTP client of a `def` tool in a thread of its own: the loop asks, the thread waits."""

    def __init__(self, client: HttpClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop

    def get(self, url: str, **options: Any) -> Fetched:
        """Return what `HttpClient.get` does."""
        return self._wait(self._client.get(url, **options))

    def post(self, url: str, **options: Any) -> Fetched:
        """Return what `HttpClient.post` does."""
        return self._wait(self._client.post(url, **options))

    def _wait(self, asked: Coroutine[Any, Any, Fetched]) -> Fetched:
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result(SECONDS_MOST + MARGIN_SECONDS)
