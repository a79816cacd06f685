"""Worlds that tests ask for by name."""

import gc
import logging
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.store.database import Database
from tests.databases import database_at
from tests.mailer import post_office
from tests.standins.model import ModelServer, Play, echo
from tests.tides import Web, obeys
from tests.world import Graph, Server, Town, open_work, standing, wait_for, world


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No test is begun after RECADO_TESTS_UNTIL (seconds since 1970): the others are skipped, and counted."""
    if time.time() > float(os.environ.get("RECADO_TESTS_UNTIL", "inf")):
        pytest.skip("no time was left for it")


RUNS = "SELECT 1 FROM turns WHERE state IN ('queued', 'running')"
SLOW_FOLDERS = {"browser", "chaos", "conformance"}
SLOW_FILE = b"\npytestmark = pytest.mark.slow\n"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where slow tests are left out, do not even import the folders and files that hold nothing else."""
    if config.option.markexpr != "not slow":
        return None
    if collection_path.parent == Path(__file__).parent and collection_path.name in SLOW_FOLDERS:
        return True
    return True if collection_path.suffix == ".py" and SLOW_FILE in collection_path.read_bytes() else None


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of every later search for garbage: it stays to the end."""
    gc.freeze()


@pytest.fixture(autouse=True)
def usual_log_level() -> Iterator[None]:
    """A command that runs in this process sets the level of our log for good."""
    logger = logging.getLogger("app")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture
def samples() -> Path:
    """The folder with real payloads and catalogues."""
    folder = os.environ.get("RECADO_SAMPLES")
    if not folder:
        pytest.skip("RECADO_SAMPLES is unset: the folder with real samples is not here")
    return Path(folder)


@pytest.fixture
def sandboxed(tmp_path: Path) -> Sandbox:
    """The sandbox of a server; where it does not work the test is skipped."""
    sandbox = Sandbox(Settings(_env_file=None, DATA_DIR=tmp_path / "data"))
    if fault := sandbox.probe():
        pytest.skip(f"the sandbox does not work here: {fault}")
    return sandbox


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Database]:
    """An open database of its own."""
    database = Database(database_at(tmp_path / "recado.db"))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def model() -> Iterator[Callable[[Play], ModelServer]]:
    """Makes model servers that a function plays; ends them with the test."""
    made: list[ModelServer] = []

    def make(play: Play) -> ModelServer:
        made.append(ModelServer(play))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., tuple[Server, Graph]]]:
    """Makes a server with a stand-in Graph API; `start=False` leaves the server for the test to start."""
    running: list[Any] = []

    def make(*, start: bool = True, model: ModelServer | None = None, **options: Any) -> tuple[Server, Graph]:
        if model is not None:
            options |= {"OPENAI_BASE_URL": model.url, "LLM_MODEL": "stand-in"}
        folder = tmp_path / f"world{len(running)}"
        folder.mkdir()
        pieces = world(folder, **options)
        running.append(pieces)
        server, graph = next(pieces)
        if start:
            server.start()
        return server, graph

    yield make
    for pieces in running:
        pieces.close()


@pytest.fixture(scope="session")
def _standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    window = {"window_open": True}  # for bodies that do not come through the stand-in
    yield from standing(tmp_path_factory.mktemp("town"), crowd=400, graph=window)


@pytest.fixture
def town(_standing: Town) -> Town:
    """A server that stands for all tests that need no other, and speak as a newcomer each; its model echoes
    until a test plays it."""
    wait_for(lambda: not open_work(_standing.server), "the end of what the test before began")
    _standing.model.play = echo
    _standing.model.requests.clear()
    return _standing


@pytest.fixture(scope="session")
def _standing_offline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    yield from standing(tmp_path_factory.mktemp("offline"), crowd=400, OPENAI_BASE_URL="", LLM_MODEL="")


@pytest.fixture
def offline_town(_standing_offline: Town) -> Town:
    """A server like `town`, with the built-in model."""
    wait_for(lambda: not open_work(_standing_offline.server), "the end of what the test before began")
    return _standing_offline


@pytest.fixture(scope="session")
def _post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Town, Path]]:
    yield from post_office(tmp_path_factory.mktemp("post"))


@pytest.fixture
def office(_post: tuple[Town, Path]) -> tuple[Town, Path, str]:
    """A server like `town` with the skill mailer, the folder of its skills without a mark, and a newcomer."""
    town, skills = _post
    runs = f"{RUNS} UNION ALL SELECT 1 FROM outbox WHERE state IN ('ready', 'sending')"
    wait_for(lambda: not town.server.rows(runs), "the end of what the test before began")
    for mark in skills.parent.glob("*.jsonl"):
        mark.unlink()
    return town, skills, town.newcomer()


@pytest.fixture
def deep_ground(tmp_path: Path) -> Iterator[Path]:
    """pytest itself cannot remove what a failed test leaves there."""
    yield tmp_path
    subprocess.run(["rm", "-rf", tmp_path], check=True)


@pytest.fixture
def web() -> Iterator[Web]:
    """An https site that may have skills to install."""
    made = Web()
    yield made
    made.stop()


@pytest.fixture
def house(
    make_world: Callable[..., tuple[Server, Graph]], model: Callable[[Play], ModelServer], web: Web
) -> tuple[Server, Graph]:
    """A server that reaches the site, and the stand-in Graph API; p0 owns, p1 does not."""
    server, graph = make_world(start=False, model=model(obeys))
    web.start(server)
    return server, graph
