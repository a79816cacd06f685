"""Fixtures of the tests of servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mcp.config_folder import Config
from tests.mcp.manager import Manager


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[Manager]:
    """A manager without servers; ends those that the test gives it."""
    made = Manager(tmp_path)
    yield made
    await made.servers.stop()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A folder without any server."""
    return Config(tmp_path)
