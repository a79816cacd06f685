"""From a name to the IP addresses that are then connected to, looked at in between."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult

from app.http.address import is_public, unmapped
from app.http.errors import FetchError

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The IP addresses of a name (and port), as text. Raises OSError where there are none."""


class PinnedResolver(AbstractResolver):
    """Asked once for each new connection; aiohttp connects to what it gives and to nothing else.

    `allowed`: the hosts and ports that may lead to any machine; None: all of them.
    """

    def __init__(self, resolve: Resolve, allowed: Collection[tuple[str, int]] | None) -> None:
        self._resolve = resolve
        self._allowed = allowed

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Raises FetchError NO_SUCH_HOST, or NOT_PUBLIC where a single one of its addresses is not."""
        try:
            found = [unmapped(ip_address(text)) for text in await self._resolve(host, port)]
        except OSError as error:
            raise FetchError("NO_SUCH_HOST", "no machine of that name was found") from error
        if not found:
            raise FetchError("NO_SUCH_HOST", "no machine of that name was found")
        is_allowed = self._allowed is None or (host, port) in self._allowed
        if not is_allowed and not all(is_public(ip) for ip in found):
            raise FetchError("NOT_PUBLIC", "the name leads to an address that is not on the public internet")
        return [
            ResolveResult(
                hostname=host,
                host=str(ip),
                port=port,
                family=socket.AF_INET if ip.version == 4 else socket.AF_INET6,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for ip in found
        ]

    async def close(self) -> None:
        """Nothing is held."""


_THREADS = ThreadPoolExecutor(32, "names")
"""Apart from everybody's: a name server that says nothing holds one for half a minute, long after its caller
has left."""


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """What the system says, /etc/hosts included."""
    asked = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_THREADS, asked)
    return [str(address[0]) for *_, address in found]
