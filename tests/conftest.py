"""Worlds that tests ask for by name."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.standins.model import ModelServer, Play
from tests.world import Graph, Server, world


@pytest.fixture
def samples() -> Path:
    """The folder with real payloads and catalogues."""
    folder = os.environ.get("RECADO_SAMPLES")
    if not folder:
        pytest.skip("RECADO_SAMPLES is unset: the folder with real samples is not here")
    return Path(folder)


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
