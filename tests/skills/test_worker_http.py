"""`context.http` of a skill in a process of its own: asked over the pipe, done by the server."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.http.address import origins
from app.http.transport import HttpClient, Transport
from app.skills.frames import Ask
from app.skills.frames import answer_ask as answered
from app.tools import ToolContext
from tests.skills.folders import House
from tests.standins.site import Site, answer, site

CODE = '''
"""Asks the internet."""


def ask(url: str, context=None) -> dict:
    """Asks in a thread."""
    found = context.http.get(url, params={"q": "ñ"}, headers={"X-Key": "k"})
    return {"text": found.text, "status": found.status, "type": found.content_type}


async def ask_async(url: str, context=None) -> object:
    """Asks on a loop."""
    return (await context.http.post(url, json={"a": 1})).json()


def ask_public(url: str, context=None) -> str:
    """Asks only what is public."""
    return context.http.get(url, public=True).text


async def send_public(url: str, context=None) -> str:
    """Sends only to what is public."""
    return (await context.http.post(url, public=True)).text


def send(url: str, context=None) -> int:
    """Sends bytes, and takes many."""
    return len(context.http.post(url, body=bytes(500_000)).body)
'''


@pytest.fixture
async def here() -> AsyncIterator[Site]:
    pages = {
        "/text?q=%C3%B1": answer("señal".encode(), content_type="text/plain"),
        "/json": answer(b'{"a": [1]}'),
        "/long": answer(bytes(2_000_000)),
        "": answer(status="404 Not Found"),
    }
    async with site(pages) as made:
        yield made


@pytest.fixture
async def context(here: Site) -> AsyncIterator[ToolContext]:
    transport = Transport(allowed_hosts={here.host})
    yield ToolContext(http=HttpClient(transport))
    await transport.close()


@pytest.fixture
def house(house: House) -> House:
    house.drop("asker", CODE)
    return house


async def test_the_server_asks_for_it(house: House, here: Site, context: ToolContext) -> None:
    text = await house.call("ask", context, url=f"{here.url}/text")
    assert text.data == {"text": "señal", "status": 200, "type": "text/plain"}
    assert "X-Key: k" in here.heads[0]
    assert (await house.call("ask_async", context, url=f"{here.url}/json")).data == {"a": [1]}
    assert here.heads[1].endswith(json.dumps({"a": 1}, separators=(",", ":")))
    assert (await house.call("send", context, url=f"{here.url}/long")).data == 2_000_000
    missing = await house.call("ask", context, url=f"{here.url}/nothing")
    assert missing.data["status"] == 404


async def test_an_address_in_its_settings_may_be_private(house: House, here: Site) -> None:
    transport = Transport()
    context = ToolContext(http=HttpClient(transport, trusted=origins([here.url])))
    assert (await house.call("ask", context, url=f"{here.url}/text")).data["text"] == "señal"
    assert (await house.call("ask_async", context, url=f"{here.url}/json")).data == {"a": [1]}
    for tool in ("ask_public", "send_public"):
        assert (await house.call(tool, context, url=here.url)).code == "BAD_REQUEST"
    await transport.close()
    assert len(here.heads) == 2


async def test_what_is_not_fetched_has_a_code_that_the_tool_need_not_know(
    house: House, context: ToolContext
) -> None:
    for url, code in [
        ("http://127.0.0.1:9/", "BAD_REQUEST"),
        ("file:///etc/passwd", "BAD_REQUEST"),
        ("https://nowhere.invalid/", "UPSTREAM_ERROR"),
    ]:
        assert (await house.call("ask", context, url=url)).code == code


OPTIONS = {"seconds": 1, "limit_bytes": 10}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["URL", {**OPTIONS, "seconds": math.nan}],
        ["URL", {**OPTIONS, "limit_bytes": 10**9}],
        ["URL", {**OPTIONS, "headers": {"Host": "x"}}],
        ["URL", {**OPTIONS, "trusted": [["http", "127.0.0.1", 80]]}],
        ["URL", {**OPTIONS, "body": "no base64"}],
        [None, OPTIONS],
    ],
)
async def test_a_worker_that_lies_gets_an_error(
    arguments: list[Any], here: Site, context: ToolContext
) -> None:
    arguments = [here.url if one == "URL" else one for one in arguments]
    async with asyncio.timeout(5):
        got = await answered(Ask(1, "http.get", arguments), None, context.http)
    assert got.error.startswith("http.get")
    assert here.heads == []
