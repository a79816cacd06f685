"""Settings of a folder of its own, and a server that answers as it is told."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from tests.standins import meta
from tests.standins.answers import AnsweringServer, Told


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    server = AnsweringServer()
    yield server
    server.stop()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """Makes settings that the shell's variables do not reach, by their names or the variables'."""
    monkeypatch.chdir(tmp_path)
    for name, field in Settings.model_fields.items():
        monkeypatch.delenv(str(field.alias or name).upper(), raising=False)

    def make(**changes: Any) -> Settings:
        usual = {"database_url": f"sqlite:///{tmp_path}/data/recado.db", "port": 1}
        return Settings(**{**usual, **changes})

    return make


@pytest.fixture
def connected(settings: Callable[..., Settings], server: AnsweringServer) -> Callable[..., Settings]:
    """Makes settings with credentials for the stand-in of Meta, whose answers `broken` changes."""

    def make(broken: dict[str, Told] | None = None, **changes: Any) -> Settings:
        server.answers = {**meta.account(f"{server.url}/webhook"), **(broken or {})}
        credentials = {name.lower(): value for name, value in meta.CREDENTIALS.items()}
        return settings(**{**credentials, "WHATSAPP_API_URL": f"{server.url}/v25.0", **changes})

    return make
