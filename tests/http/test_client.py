"""What a tool sees of the internet through `context.http`."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from app.http.address import FetchError, origins
from app.http.transport import BYTES, BYTES_MOST, THREAD_SECONDS, HttpClient, Transport
from app.tools.tool import InThread
from tests.http.reaching import Names
from tests.standins.site import Site, answer, redirect, site


@asynccontextmanager
async def client(here: Site, hosts: Collection[str] | None = None) -> AsyncIterator[HttpClient]:
    transport = Transport(allowed_hosts={here.host})
    try:
        yield HttpClient(transport, hosts)
    finally:
        await transport.close()


async def test_a_tool_cannot_ask_for_more_than_the_most() -> None:
    async with (
        site({"/large": answer(b"x" * (BYTES + 1)), "/huge": answer(b"x" * (BYTES_MOST + 1))}) as here,
        client(here) as http,
    ):
        for path, limit in (("/large", BYTES), ("/huge", 10 * BYTES_MOST)):
            with pytest.raises(FetchError) as refused:
                await http.get(here.url + path, limit_bytes=limit)
            assert refused.value.code == "TOO_LARGE"
        assert len((await http.get(here.url + "/large", limit_bytes=10 * BYTES_MOST)).body) == BYTES + 1


# What the operator wrote


@asynccontextmanager
async def client_of(*settings: str, resolve: Names | None = None) -> AsyncIterator[HttpClient]:
    """As a skill has it whose settings have these values."""
    transport = Transport(resolve=resolve)
    try:
        yield HttpClient(transport, trusted=origins(settings))
    finally:
        await transport.close()


async def test_an_address_of_the_operators_may_be_private_by_number_and_by_name() -> None:
    names = Names(searxng=[["127.0.0.1"]], other=[["127.0.0.1"]])
    async with site({"": answer(b"yes")}) as here:
        by_name = f"http://searxng:{here.port}/search"
        async with client_of("a word", here.url, f" {by_name} ", resolve=names) as http:
            for url in (f"{here.url}/a?b=c", f"http://SEARXNG.:{here.port}/", by_name):
                assert (await http.get(url)).body == b"yes"
            assert (await http.post(by_name, json={})).body == b"yes"
            sync = InThread(http, THREAD_SECONDS)
            assert (await asyncio.to_thread(lambda: sync.get(here.url))).body == b"yes"
            with pytest.raises(FetchError) as refused:
                await http.get(f"http://other:{here.port}/")
    assert refused.value.code == "NOT_PUBLIC"
    assert len(here.heads) == 5


async def test_another_scheme_host_or_port_is_not_the_operators() -> None:
    for setting in [
        "",
        "https://127.0.0.1:{port}",
        "http://localhost:{port}",
        "http://127.0.0.1:1",
        "http://me@127.0.0.1:{port}",
    ]:
        async with site({"": answer()}) as here, client_of(setting.format(port=here.port)) as http:
            with pytest.raises(FetchError) as refused:
                await http.get(here.url)
        assert refused.value.code == "NOT_PUBLIC"
        assert here.heads == []


async def test_an_address_of_others_never_leads_to_the_operators() -> None:
    """Not by a public request, and not by a redirect from elsewhere, were it another of theirs."""
    async with site({"": answer(b"inside")}) as inside:
        pages = {"/away": redirect(inside.url), "/on": redirect("/end"), "/end": answer(b"end")}
        async with site(pages) as here, client_of(here.url, inside.url) as http:
            sync = InThread(http, THREAD_SECONDS)
            asked = [
                lambda: http.get(f"{here.url}/away"),
                lambda: http.get(inside.url, public=True),
                lambda: http.post(inside.url, json={}, public=True),
                lambda: asyncio.to_thread(lambda: sync.get(inside.url, public=True)),
                lambda: asyncio.to_thread(lambda: sync.post(inside.url, public=True)),
            ]
            for ask in asked:
                with pytest.raises(FetchError) as refused:
                    await ask()
                assert refused.value.code == "NOT_PUBLIC"
            assert (await http.get(f"{here.url}/on")).body == b"end"
    assert inside.heads == []
