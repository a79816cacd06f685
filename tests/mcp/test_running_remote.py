"""Servers behind an address: reached over HTTP, never further than they may be."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from app.mcp.definitions import Origin
from app.mcp.transports import GuardedTransport
from tests.mcp.manager import QUICK, Manager
from tests.standins.mcp_site import McpSite
from tests.world import until

pytestmark = pytest.mark.slow

MakeSite = Callable[..., McpSite]


@pytest.fixture
def make_site() -> Iterator[MakeSite]:
    made: list[McpSite] = []

    def make(**options: object) -> McpSite:
        made.append(McpSite(**options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for site in made:
        site.stop()


@pytest.mark.parametrize(("legacy", "as_json"), [(False, False), (True, True)])
async def test_a_server_behind_an_address_is_used(
    manager: Manager, make_site: MakeSite, legacy: bool, as_json: bool
) -> None:
    site = make_site(legacy=legacy, as_json=as_json)
    headers = (("Authorization", "Bearer s3cret-0f-its-own"),)
    state = await manager.start("one", command="", args=(), url=site.url, headers=headers)
    assert (state.phase, state.reason) == ("ready", "")
    assert state.revision == ("2025-11-25" if legacy else "2026-07-28")
    assert (await manager.call("mcp_one_add", a=2, b=3)).data == {"result": 5}
    assert all(sent["authorization"] == "Bearer s3cret-0f-its-own" for sent in site.headers)


async def test_tool_changes_are_heard_over_http(manager: Manager, make_site: MakeSite) -> None:
    site = make_site()
    await manager.start("one", command="", args=(), url=site.url)
    await manager.call("mcp_one_grow", name="late")
    held = await until(lambda: manager.state("one").held_back, "the new tool")
    assert held[0].tool == "late"


async def test_an_answer_over_http_that_is_too_long_fails_alone(
    manager: Manager, make_site: MakeSite
) -> None:
    await manager.start("one", command="", args=(), url=make_site().url)
    assert not (await manager.call("mcp_one_big", megabytes=9)).ok
    assert (await manager.call("mcp_one_add", a=2, b=3)).ok


@pytest.mark.parametrize("origin", ["installed", "skill"])
async def test_only_the_operator_names_addresses_that_are_not_public(
    manager: Manager, make_site: MakeSite, origin: Origin
) -> None:
    site = make_site()
    state = await manager.start("one", command="", args=(), url=site.url, origin=origin)
    assert state.phase == "broken"
    assert "not on the public internet" in state.reason
    assert site.asked == []


async def test_a_redirect_to_another_place_is_not_followed(manager: Manager, make_site: MakeSite) -> None:
    site, other = make_site(), make_site()
    site.spoil = lambda *_: (307, {"location": other.url}, b"")
    state = await manager.start("one", command="", args=(), url=site.url)
    assert state.phase == "broken"
    assert other.asked == []


PACKED = {"content-type": "application/json", "content-encoding": "gzip"}


@pytest.mark.parametrize(("answer", "reason"), [
    ((401, {"content-type": "text/plain"}, b"who are you?"), "it answers with status 401"),
    ((200, PACKED, gzip.compress(bytes(2**20))), "it compresses its answers"),
])  # fmt: skip
async def test_an_answer_that_is_not_read_is_the_reason(
    manager: Manager, make_site: MakeSite, answer: tuple[int, dict[str, str], bytes], reason: str
) -> None:
    site = make_site()
    site.spoil = lambda *_: answer
    assert reason in (await manager.start("one", command="", args=(), url=site.url)).reason


async def test_a_session_that_the_server_forgot_is_opened_anew_for_the_call(
    manager: Manager, make_site: MakeSite
) -> None:
    site = make_site(legacy=True)
    await manager.start("one", command="", args=(), url=site.url)
    spoiled: list[object] = []

    def forget(
        method: str, message: dict[str, object], scope: object
    ) -> tuple[int, dict[str, str], bytes] | None:
        if message.get("method") != "tools/call" or spoiled:
            return None
        spoiled.append(message)
        return 404, {"content-type": "application/json"}, json.dumps({"error": "no such session"}).encode()

    site.spoil = forget
    assert (await manager.call("mcp_one_add", a=2, b=3)).data == {"result": 5}
    assert spoiled


async def test_a_server_that_was_set_aside_is_used_again_soon_after_it_is_back(
    tmp_path: Path, make_site: MakeSite
) -> None:
    site = make_site()
    site.spoil = lambda *_: (503, {}, b"")
    manager = Manager(tmp_path, replace(QUICK, broken=0.05))
    await manager.start("one", command="", args=(), url=site.url)
    await until(lambda: manager.troubles, "its being set aside")
    site.spoil = None
    await until(lambda: manager.state("one").phase == "ready", "its being there again")
    assert (await manager.call("mcp_one_add", a=2, b=3)).data == {"result": 5}
    await until(lambda: manager.troubles[-1] == ("one", ""), "the news of it")
    await manager.servers.stop()


class Wire(httpx2.AsyncBaseTransport):
    """Takes the requests that would be sent."""

    def __init__(self) -> None:
        self.sent: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        return httpx2.Response(202)


async def resolve(host: str, port: int) -> list[str]:
    if host == "nobody.test":
        raise OSError("no such name")
    return {"public.test": ["93.184.215.14"], "both.test": ["93.184.215.14", "10.0.0.1"]}.get(
        host, ["127.0.0.1"]
    )


async def test_a_name_is_resolved_and_its_address_kept() -> None:
    for host, said in [
        ("inside.test", "the name leads to an address that is not on the public internet"),
        ("both.test", "the name leads to an address that is not on the public internet"),
        ("nobody.test", "no machine of that name was found"),
        ("public.test", ""),
    ]:
        wire = Wire()
        guard = GuardedTransport(wire, is_guarded=True, resolve=resolve)
        async with httpx2.AsyncClient(transport=guard, trust_env=False) as client:
            await client.post(f"https://{host}/mcp", json={})
        assert guard.link.fault == said
        assert guard.link.ended.is_set() == bool(said)
        pinned = [(str(r.url), r.headers["Host"], r.extensions["sni_hostname"]) for r in wire.sent]
        assert pinned == ([] if said else [("https://93.184.215.14/mcp", host, host)])
