"""What tests of servers ask for by name."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mcp.house import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A manager without servers; ends those that the test gives it."""
    made = House(tmp_path)
    yield made
    await made.servers.stop()
