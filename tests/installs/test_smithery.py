"""Smithery beside the registry: found with the owner's key, which goes to Smithery's machines alone."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from app.http.transport import Transport
from app.installs.directory import Directory, build_directory
from app.installs.errors import RegistryError
from app.mcp.configuration import Configuration
from app.mcp.installed import InstalledServer, with_smithery_key
from app.settings import Settings
from tests.standins.registry import RegistryServer, entry
from tests.standins.smithery import KEY, SmitherySite, hosted
from tests.test_cli import House

CONFIGURED = {
    "required": ["apiKey", "max-rows", "region"],
    "properties": {
        "apiKey": {"type": "string", "description": "Of the harbour", "x-from": {"header": "X-Harbour-Key"}},
        "max-rows": {"type": "number", "default": 10, "x-from": {"query": "rows"}},
        "region": {"type": "string", "enum": ["north", "south"]},
        "color": {"type": "string"},
    },
}
SERVERS = [
    hosted("tides", "Tides", "https://tides.run.tools"),
    hosted("@ana/harbours", "Harbour tides", "https://server.smithery.ai/@ana/harbours", **CONFIGURED),
    hosted("bob/moon", "Moon tides", "https://mcp.example.com/moon"),
    {
        **hosted("local/shells", "Shell tides", ""),
        "connections": [{"type": "stdio", "bundleUrl": "https://x.example/a.mcpb", "runtime": "node"}],
    },
]


def settings_of(data_dir: Path, **variables: str) -> Settings:
    written: dict[str, Any] = {name.lower(): value for name, value in variables.items()}
    database, servers = f"sqlite:///{data_dir}/recado.db", data_dir / "mcp_servers.json"
    return Settings(_env_file=None, database_url=database, mcp_config_path=servers, **written)


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    server = RegistryServer([entry(f"com.example/tides-{number}", "Tide tables") for number in range(8)])
    yield server
    server.stop()


@pytest.fixture
def smithery() -> Iterator[SmitherySite]:
    site = SmitherySite([dict(one) for one in SERVERS])
    yield site
    site.stop()


@pytest.fixture
async def opened(
    registry: RegistryServer, smithery: SmitherySite, tmp_path: Path
) -> AsyncIterator[Callable[..., Directory]]:
    transport, made = Transport(), list[Directory]()

    def open_directory(**variables: str) -> Directory:
        settings = settings_of(tmp_path, **{**registry.settings, **smithery.settings, **variables})
        made.append(build_directory(settings, transport))
        return made[-1]

    yield open_directory
    for directory in made:
        await directory.close()
    await transport.close()


async def names(directory: Directory, words: str = "tides") -> list[str]:
    return [found.name for found in await directory.search(words)]


async def test_with_a_key_its_servers_stand_below_those_of_the_registry(
    opened: Callable[..., Directory], smithery: SmitherySite
) -> None:
    listed = [f"com.example/tides-{number}" for number in range(8)]
    assert await names(opened(SMITHERY_API_KEY="")) == listed
    assert smithery.asked == []
    hosted_there = ["ai.smithery/tides", "ai.smithery.ana/harbours", "ai.smithery.bob/moon"]
    assert await names(opened()) == [*listed[:5], *hosted_there]


@pytest.mark.parametrize(
    "failing",
    [
        PlainTextResponse("down", 500),
        JSONResponse({"error": "Unauthorized"}, 401),
        PlainTextResponse("not json"),
        JSONResponse([]),
        JSONResponse({"servers": [None, {}, {"qualifiedName": "a b"}, {"qualifiedName": ["x"]}]}),
    ],
)
async def test_what_fails_there_takes_nothing_from_the_registry(
    failing: Response, opened: Callable[..., Directory], smithery: SmitherySite
) -> None:
    smithery.failing = failing
    assert await names(opened()) == [f"com.example/tides-{number}" for number in range(8)]


@pytest.mark.parametrize("url", ["https://[", "https://a\uff0fb.run.tools", "http://[::1", "no address"])
async def test_an_address_that_cannot_be_read_takes_nothing_from_the_others(
    url: str, opened: Callable[..., Directory], smithery: SmitherySite
) -> None:
    smithery.servers.insert(0, hosted("odd", "Tides, odd ones", url))
    directory = opened()
    assert "ai.smithery/tides" in await names(directory)
    odd = await directory.get("ai.smithery/odd")
    assert odd is not None
    assert odd.reason is not None
    assert odd.reason.code == "BAD_ADDRESS"


async def test_it_answers_where_the_registry_is_away(
    opened: Callable[..., Directory], registry: RegistryServer, smithery: SmitherySite
) -> None:
    registry.failing = PlainTextResponse("down", 500)
    directory = opened()
    assert (await names(directory))[0] == "ai.smithery/tides"
    smithery.failing = registry.failing
    with pytest.raises(RegistryError, match="the registry answered with status 500"):
        await directory.search("tides")


async def test_a_server_that_the_registry_lists_too_is_found_while_smithery_is_away(
    opened: Callable[..., Directory], registry: RegistryServer, smithery: SmitherySite
) -> None:
    registry.entries.append(entry("ai.smithery/listed"))
    smithery.failing = PlainTextResponse("down", 500)
    directory = opened()
    found = await directory.get("ai.smithery/listed")
    assert found is not None
    with pytest.raises(RegistryError, match="Smithery answered with status 500"):
        await directory.get("ai.smithery/tides")


async def test_a_server_says_what_it_is_given_and_where(opened: Callable[..., Directory]) -> None:
    found = await opened().get("ai.smithery.ana/harbours")
    assert found is not None
    assert found.reason is None
    (remote,) = found.remotes
    assert remote.url == "https://server.smithery.ai/@ana/harbours/mcp?rows={max_rows}&region={region}"
    assert [(header.name, header.value) for header in remote.headers] == [
        ("Authorization", "Bearer {SMITHERY_API_KEY}"),
        ("X-Harbour-Key", "{apiKey}"),
    ]
    told = {one.key: (one.required, one.secret, one.default, one.choices) for one in remote.inputs}
    assert told == {
        "max_rows": (True, False, "10", ()),
        "region": (True, False, "", ("north", "south")),
        "SERVER_SMITHERY_API_KEY": (True, True, "", ()),
        "apiKey": (True, True, "", ()),
    }


async def test_one_that_runs_elsewhere_gets_no_key_and_a_bundle_is_not_installed(
    opened: Callable[..., Directory],
) -> None:
    directory = opened()
    elsewhere, bundle = (
        await directory.get("ai.smithery.bob/moon"),
        await directory.get("ai.smithery.local/shells"),
    )
    assert elsewhere is not None
    assert elsewhere.remotes[0].headers == ()
    assert bundle is not None
    assert bundle.reason is not None
    assert (bundle.reason.code, bundle.reason.detail) == ("OTHER_KIND", "mcpb")
    assert await directory.get("ai.smithery/nothing-there") is None


BEARER = ("Authorization", "Bearer ${SERVER_SMITHERY_API_KEY}")
AS_LISTED = ("authorization", "Bearer ${SERVER_smithery_api_key}")
"""As the registry's own entries of Smithery's servers ask for it."""


@pytest.mark.parametrize(
    ("url", "headers", "own", "given"),
    [
        ("https://tides.run.tools", (BEARER,), (), [f"Bearer {KEY}"]),
        ("https://server.smithery.ai/x/mcp", (AS_LISTED,), (), [f"Bearer {KEY}"]),
        ("https://server.smithery.ai/x/mcp", (BEARER,), ("SERVER_SMITHERY_API_KEY",), [BEARER[1]]),
        ("https://tides.run.tools", (("X-Upstream", BEARER[1]),), (), [BEARER[1]]),
        ("https://run.tools.example.com", (BEARER,), (), [BEARER[1]]),
        ("https://notrun.tools", (BEARER,), (), [BEARER[1]]),
        ("http://tides.run.tools", (BEARER,), (), [BEARER[1]]),
        ("https://tides.run.tools@example.com/", (BEARER,), (), [BEARER[1]]),
    ],
)
def test_the_key_goes_nowhere_but_to_its_machines(
    url: str, headers: Any, own: tuple[str, ...], given: list[str]
) -> None:
    record = InstalledServer("tides", "ai.smithery/tides", "latest", "x", url=url, headers=headers)
    assert [value for _, value in with_smithery_key(record, KEY, own).headers] == given


@pytest.mark.slow
def test_in_the_shell_it_is_found_and_installed_without_asking_for_the_key_again(
    registry: RegistryServer, smithery: SmitherySite, tmp_path: Path
) -> None:
    house = House(tmp_path, {**registry.settings, **smithery.settings})
    assert "ai.smithery/tides  latest" in house.call("mcp", "search", "tides").output
    said = house.call("mcp", "add", "tides", "--registry", "ai.smithery/tides", "--yes").output
    assert "Installed tides" in said
    assert "It needs" not in said
    written = (tmp_path / "data" / "mcp_servers.json").read_text()
    assert json.loads(written)["mcpServers"]["tides"]["headers"] == {BEARER[0]: BEARER[1]}
    kept = [path.read_text(errors="replace") for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert not [text for text in (said, *kept) if KEY in text]
    settings = settings_of(tmp_path / "data", SMITHERY_API_KEY=KEY)
    (tides,) = Configuration(settings, {}).look()
    assert dict(tides.headers) == {"Authorization": f"Bearer {KEY}"}
    assert not tides.missing
