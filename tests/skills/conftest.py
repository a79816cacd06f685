"""What the tests of workers share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.skills.folders import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path)
    yield made
    await made.workers.close()
