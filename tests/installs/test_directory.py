"""Servers found by what people call them: a mirror that outlives the registry, and Smithery beside it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from app.http.transport import Transport
from app.installs.directory import FRESH_SECONDS, Directory, RegistryError, resolve, resolve_local
from app.installs.entries import Entry, Remote, read_entry
from app.settings import Settings
from tests.standins.registry import GITHUB, OFFICIAL, RegistryServer, entry, own_entries, sample_entries
from tests.standins.smithery import KEY, SmitherySite, hosted
from tests.test_cli import House
from tests.world import until

PROJECT = "io.github.modelcontextprotocol"
TIME = f"{PROJECT}/mcp-server-time"
NOW = 1_795_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    server = RegistryServer(own_entries())
    yield server
    server.stop()


@pytest.fixture
async def opened(
    registry: RegistryServer, tmp_path: Path, clock: Clock
) -> AsyncIterator[Callable[..., Directory]]:
    """Opens the directory of the data folder, as a start of the server does."""
    transport = Transport()
    made: list[Directory] = []

    def open_directory(url: str = registry.url) -> Directory:
        made.append(Directory(settings_of(tmp_path, MCP_REGISTRY_URL=url), transport, clock))
        return made[-1]

    yield open_directory
    for directory in made:
        await directory.close()
    await transport.close()


@pytest.fixture
def directory(opened: Callable[..., Directory]) -> Directory:
    return opened()


async def names(directory: Directory, words: str) -> list[str]:
    return [found.name for found in await directory.search(words)]


def lists(registry: RegistryServer) -> list[str]:
    return [asked for asked in registry.asked if asked.startswith("/v0.1/servers?")]


CALLED = [
    ("instalá el server de la hora", TIME),
    ("servidor da hora", TIME),
    ("time", TIME),
    ("mcp-server-time", TIME),
    ("server de archivos", f"{PROJECT}/server-filesystem"),
    ("arquivos", f"{PROJECT}/server-filesystem"),
    ("files", f"{PROJECT}/server-filesystem"),
    ("memoria", f"{PROJECT}/server-memory"),
    ("pensamento sequencial", f"{PROJECT}/server-sequential-thinking"),
    ("sqlite", f"{PROJECT}/mcp-server-sqlite"),
    ("el de GitHub", GITHUB),
    (GITHUB, GITHUB),
    ("mercado pago", "com.docker.registry/mercado-pago"),
    ("tablas de mareas tide", "com.example.tides/tide-tables"),
]


async def test_servers_are_found_by_what_people_call_them(
    registry: RegistryServer, directory: Directory, samples: Path
) -> None:
    registry.entries += sample_entries(samples)
    found = [(words, (await names(directory, words))[0]) for words, _ in CALLED]
    assert found == CALLED


async def test_all_servers_of_a_name_are_listed_those_that_can_be_installed_and_are_the_projects_first(
    registry: RegistryServer, directory: Directory
) -> None:
    found = await names(directory, "github")
    assert found[:3] == [GITHUB, f"{PROJECT}/server-github", "com.docker.registry/github-official"]
    posing = "dev.modelcontextprotocol/time"
    registry.entries.append(entry(posing, "time time clock timezone", at="2027-01-01T00:00:00Z"))
    await directory.refresh()
    found = await names(directory, "time")
    assert found.index(TIME) < found.index(posing)


async def test_deleted_server_is_found_by_its_very_name_only_and_nothing_where_nothing_fits(
    directory: Directory,
) -> None:
    deleted = "com.example.coupons/coupon-finder"
    assert deleted not in await names(directory, "coupon finder")
    assert (await names(directory, deleted))[0] == deleted
    for words in ("xyzzyx qwrtzu", '"', ""):
        assert await directory.search(words) == []


async def test_list_is_fetched_in_pages_once_and_after_six_hours_what_changed_in_the_background(
    registry: RegistryServer, directory: Directory, clock: Clock
) -> None:
    registry.entries += [entry(f"com.example/s{n:03}", f"thing number {n}") for n in range(250)]
    first, second = await asyncio.gather(names(directory, "thing 249"), names(directory, "thing 7"))
    assert (first[0], second[0]) == ("com.example/s249", "com.example/s007")
    clock.now += FRESH_SECONDS - 1
    assert (await names(directory, "time"))[0] == TIME
    assert len(lists(registry)) == 3
    registry.entries.append(entry("com.example/weather", "Forecasts", at="2026-11-18T20:00:00Z"))
    for one in registry.entries:
        if one["server"]["name"] == TIME:
            one["_meta"][OFFICIAL] |= {"status": "deleted", "updatedAt": "2026-11-20T00:00:00Z"}
    clock.now += 1
    await directory.search("clima")
    await until(lambda: len(lists(registry)) == 4, "the second fetching")
    await directory.refresh()
    assert "updated_since=2026-11-18T10%3A06%3A40Z" in lists(registry)[3]  # an hour before the first
    assert await names(directory, "clima") == ["com.example/weather"]
    assert TIME not in await names(directory, "time")


async def test_mirror_outlives_a_restart_and_the_registry(
    registry: RegistryServer, directory: Directory, opened: Callable[..., Directory], clock: Clock
) -> None:
    await directory.refresh()
    await directory.close()
    registry.failing = Response(status_code=503)
    clock.now += 10 * FRESH_SECONDS
    later = opened()
    assert (await names(later, "time"))[0] == TIME
    with pytest.raises(RegistryError, match="status 503"):
        await later.refresh()
    assert "status 503" in later.trouble
    found = await later.get(TIME)
    assert found is not None
    assert found.version == "2026.10.19"


async def test_without_any_list_the_reason_is_said_and_the_next_search_tries_again(
    registry: RegistryServer, directory: Directory
) -> None:
    for answer in (
        Response(status_code=500),
        Response("<html>"),
        JSONResponse([]),
        Response(b"x" * 5_000_000),
    ):
        registry.failing = answer
        with pytest.raises(RegistryError, match="the registry"):
            await directory.search("time")
    registry.failing = None
    assert (await names(directory, "time"))[0] == TIME


async def test_odd_entries_do_not_spoil_the_list(registry: RegistryServer, directory: Directory) -> None:
    huge = entry("com.example/huge", packages=[{"identifier": "x" * 70_000}])
    good = entry("com.example/good", "a good one")
    page: list[Any] = [None, 5, {}, {"server": {"name": "no slash"}}, huge, {"server": good["server"]}]
    registry.failing = JSONResponse({"servers": page, "metadata": {"nextCursor": 7}})
    assert await names(directory, "good one") == ["com.example/good"]


async def test_name_that_is_none_is_not_asked_for(registry: RegistryServer, directory: Directory) -> None:
    for name in ("time", "../../admin/x", "a/b/../c", "a b/c", "", "x/y?z=1", "a/%2e%2e"):
        assert await directory.get(name) is None
    assert registry.asked == []


async def test_another_server_than_the_one_asked_for_is_no_answer_and_a_failure_is_not_none(
    registry: RegistryServer, directory: Directory
) -> None:
    for answer in (JSONResponse(entry("com.example/other")), JSONResponse({"status": 404}, 404)):
        registry.failing = answer
        assert await directory.get("com.example/asked") is None
    registry.failing = JSONResponse({"status": 503}, 503)
    with pytest.raises(RegistryError, match="status 503"):
        await directory.get(TIME)


async def test_registry_leads_nowhere_else(registry: RegistryServer, directory: Directory) -> None:
    elsewhere = RegistryServer(own_entries())
    for host in ("127.0.0.1", "localhost"):
        registry.failing = RedirectResponse(f"http://{host}:{elsewhere.port}/v0.1/servers")
        with pytest.raises(RegistryError):
            await directory.search("time")
    elsewhere.stop()
    assert elsewhere.asked == []


async def test_another_registry_starts_another_mirror(opened: Callable[..., Directory]) -> None:
    await opened().refresh()
    other = RegistryServer([entry("com.example/only", "the only one")])
    try:
        directory = opened(other.url)
        assert await names(directory, "time") == []
        assert await names(directory, "only one") == ["com.example/only"]
    finally:
        other.stop()


async def test_broken_mirror_is_begun_anew(directory: Directory, tmp_path: Path) -> None:
    await directory.refresh()
    (mirror,) = (tmp_path / "mcp").glob("registry-*.db")
    mirror.write_bytes(b"no database at all" * 500)
    with pytest.raises(RegistryError, match="ask again"):
        await directory.search("time")
    assert (await names(directory, "time"))[0] == TIME


async def test_words_mean_a_server_as_the_registry_has_it_now(
    registry: RegistryServer, opened: Callable[..., Directory]
) -> None:
    directory = opened()
    registry.entries[:] = [entry("com.example/tides")]
    assert [one.version for one in await directory.search("tides")] == ["1.0.0"]
    registry.entries[:] = [entry("com.example/tides", version="2.0.0")]
    found = await resolve(directory, "tides")
    assert isinstance(found, Entry)
    assert found.version == "2.0.0"
    registry.entries.clear()
    assert await resolve(directory, "tides") == []
    registry.stop()
    away = await resolve(directory, "tides")
    assert isinstance(away, Entry)
    assert away.version == "1.0.0"


GITHUBS = ("io.github.github/github-mcp-server", "io.github.ana/github-issues-mcp")


class Shelf:
    """A directory of these entries that finds all of them."""

    def __init__(self, *names: str) -> None:
        self.entries = [read_entry(entry(name)) for name in names]

    async def search(self, words: str) -> Any:
        return self.entries

    async def get(self, name: str) -> Any:
        return next((one for one in self.entries if one is not None and one.name == name), None)


async def test_words_mean_the_server_of_that_name_else_there_is_a_choice() -> None:
    for said, meant in [
        *(
            (said, [TIME])
            for said in ("time", "la hora", "de la hora?", "el servidor de tempo", f"el {TIME}.")
        ),
        *((said, [*GITHUBS]) for said in ("github", "el server de GitHub")),
        ("reloj mundial", [TIME, *GITHUBS]),
        *((said, []) for said in ("https://evil.example/mcp", "io.github.ana/other", f"{TIME} {GITHUBS[0]}")),
    ]:
        found = await resolve(Shelf(TIME, *GITHUBS), said)  # type: ignore[arg-type]
        assert isinstance(found, Entry) == (len(meant) == 1)
        chosen = [found] if isinstance(found, Entry) else found
        assert sorted(one.name for one in chosen) == sorted(meant)


def test_a_server_here_is_meant_by_its_name_or_words_for_it() -> None:
    for said, name in [
        ("time", "time"),
        ("Time", "time"),
        ("el de la hora", "time"),
        ("de github", "github"),
        ("weather", ""),
        ("", ""),
    ]:
        assert resolve_local(said, ["time", "github", "github-issues"]) == name


SERVERS = [
    hosted("tides", "Tides", "https://tides.run.tools"),
    hosted("@ana/harbours", "Harbour tides", "https://server.smithery.ai/@ana/harbours"),
    hosted("eva/piers", "Pier heights", "https://piers.run.tools", required=["apiKey"]),
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
def tides() -> Iterator[RegistryServer]:
    server = RegistryServer([entry(f"com.example/tides-{number}", "Tide tables") for number in range(8)])
    yield server
    server.stop()


@pytest.fixture
def smithery() -> Iterator[SmitherySite]:
    site = SmitherySite([dict(one) for one in SERVERS])
    yield site
    site.stop()


@pytest.fixture
async def both(
    tides: RegistryServer, smithery: SmitherySite, tmp_path: Path
) -> AsyncIterator[Callable[..., Directory]]:
    transport, made = Transport(), list[Directory]()

    def open_directory(**variables: str) -> Directory:
        settings = settings_of(tmp_path, **{**tides.settings, **smithery.settings, **variables})
        made.append(Directory(settings, transport))
        return made[-1]

    yield open_directory
    for directory in made:
        await directory.close()
    await transport.close()


async def test_with_a_key_its_servers_stand_below_those_of_the_registry(
    both: Callable[..., Directory], smithery: SmitherySite
) -> None:
    listed = [f"com.example/tides-{number}" for number in range(8)]
    assert await names(both(SMITHERY_API_KEY=""), "tides") == listed
    assert smithery.asked == []
    hosted_there = ["ai.smithery/tides", "ai.smithery.ana/harbours", "ai.smithery.bob/moon"]
    assert await names(both(), "tides") == [*listed[:5], *hosted_there]


async def test_what_fails_there_takes_nothing_from_the_registry(
    both: Callable[..., Directory], smithery: SmitherySite
) -> None:
    for failing in (
        PlainTextResponse("down", 500),
        JSONResponse({"error": "Unauthorized"}, 401),
        PlainTextResponse("not json"),
        JSONResponse([]),
        JSONResponse({"servers": [None, {}, {"qualifiedName": "a b"}, {"qualifiedName": ["x"]}]}),
    ):
        smithery.failing = failing
        assert await names(both(), "tides") == [f"com.example/tides-{number}" for number in range(8)]


async def reason(directory: Directory, name: str) -> str:
    found = await directory.get(name)
    return found.reason.code if found is not None and found.reason is not None else ""


async def test_a_name_of_theirs_may_be_in_the_registry_and_a_failure_is_not_none(
    both: Callable[..., Directory], tides: RegistryServer, smithery: SmitherySite
) -> None:
    directory = both()
    smithery.failing = PlainTextResponse("down", 500)
    tides.entries.append(entry("ai.smithery/listed"))
    assert await directory.get("ai.smithery/listed") is not None
    with pytest.raises(RegistryError, match="Smithery answered with status 500"):
        await directory.get("ai.smithery/tides")


async def test_a_server_there_gets_the_owners_key_as_a_secret_and_one_that_runs_elsewhere_gets_none(
    both: Callable[..., Directory],
) -> None:
    directory = both()
    found = [await directory.get(f"ai.smithery.{name}") for name in ("ana/harbours", "bob/moon")]
    there, elsewhere = (one.choice if one is not None else None for one in found)
    assert isinstance(there, Remote)
    assert isinstance(elsewhere, Remote)
    assert there.url == "https://server.smithery.ai/@ana/harbours/mcp"
    key = ("Authorization", "Bearer ${SERVER_SMITHERY_API_KEY}")
    assert [(header.name, header.value) for header in there.headers] == [key]
    assert [(one.required, one.secret) for header in there.headers for one in header.inputs] == [(True, True)]
    assert elsewhere.headers == ()
    assert await reason(directory, "ai.smithery.local/shells") == "OTHER_KIND"
    assert await reason(directory, "ai.smithery.eva/piers") == "OTHER_KIND"
    assert await directory.get("ai.smithery/nothing-there") is None


@pytest.mark.slow
def test_in_the_shell_it_is_found_and_installed_without_the_key_of_the_settings(
    tides: RegistryServer, smithery: SmitherySite, tmp_path: Path
) -> None:
    house = House(tmp_path, {**tides.settings, **smithery.settings})
    assert "ai.smithery/tides  latest" in house.call("mcp", "search", "tides").output
    said = house.call("mcp", "add", "tides", "--registry", "ai.smithery/tides", "--yes").output
    assert "Installed tides" in said
    assert "It needs SERVER_SMITHERY_API_KEY: recado mcp secret tides SERVER_SMITHERY_API_KEY" in said
    kept = [path.read_text(errors="replace") for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert not [text for text in (said, *kept) if KEY in text]
