"""`context.http`: what a tool asks the internet with."""

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlencode

import orjson

from app.http.address import Origin
from app.http.transport import Fetched, Transport
from app.messages import JSON

SECONDS = 20.0
SECONDS_MOST = 60.0
BYTES = 2 * 1024 * 1024
BYTES_MOST = 8 * 1024 * 1024
THREAD_SECONDS = SECONDS_MOST + 5.0  # that a `def` tool waits: it is the request that says what went wrong

Parameters = Mapping[str, str | int | float]


class HttpClient:
    """Public addresses only. An answer has `.status`, `.ok`, `.headers`, `.url`, `.text`, `.json()`, `.body`.

    Every status is an answer; raises FetchError (`.code`, text) where none came. `hosts`: the only ones that
    are asked; `trusted`: origins that the operator wrote, which may be private, unless a request is `public`:
    somebody else wrote its address. The other options of a request are `seconds` and `limit_bytes`.
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
