"""What tests of servers ask for by name."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mcp.house import House
from tests.mcp.written import Written


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A manager without servers; ends those that the test gives it."""
    made = House(tmp_path)
    yield made
    await made.servers.stop()


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A folder without any server."""
    return Written(tmp_path)
