"""A transport that reaches the sites of a test, and what a fetch through it is refused for."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from app.http.address import FetchError
from app.http.transport import Fetched, Transport
from tests.standins.site import Site, authority

LIMIT = 100_000
NOWHERE = "2e00::1"
"""Passes for public, and belongs to nobody: no registry was ever given this range."""


class Names:
    """A name server: each name has the answers of its successive questions, the last one for good."""

    def __init__(self, **answers: list[list[str]]) -> None:
        self._answers = {name.replace("_", "."): given for name, given in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        if host.replace(".", "").isdigit():  # an address names itself
            return [host]
        self.asked.append(host)
        given = self._answers.get(host)
        if given is None:
            raise OSError("no such name")
        return given.pop(0) if len(given) > 1 else given[0]


@asynccontextmanager
async def reaching(*sites: Site, names: Names | None = None, **hosts: Site) -> AsyncIterator[Transport]:
    """A transport that may reach these sites on this machine: as 127.0.0.1, or by a name of theirs."""
    named = {(name.replace("_", "."), here.port) for name, here in hosts.items()}
    transport = Transport(
        allowed_hosts=named | {here.host for here in sites}, tls=authority(), resolve=names or Names()
    )
    try:
        yield transport
    finally:
        await transport.close()


async def get(transport: Transport, url: str, limit_bytes: int = LIMIT, seconds: float = 10.0) -> Fetched:
    return await transport.fetch(url, limit_bytes=limit_bytes, seconds=seconds)


async def refusal(transport: Transport, url: str, limit_bytes: int = LIMIT, seconds: float = 10.0) -> str:
    """The code that a fetch ends with."""
    with pytest.raises(FetchError) as refused:
        await get(transport, url, limit_bytes, seconds)
    return refused.value.code
