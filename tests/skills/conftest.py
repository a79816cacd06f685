"""What tests of skills share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.tools import ToolContext
from tests.skills.folders import House
from tests.skills.tools import Rows, context


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    made = House(tmp_path)
    yield made
    await made.workers.close()


@pytest.fixture
def ana() -> ToolContext:
    """A person who speaks Spanish, and of whom a skill has kept nothing yet."""
    return context("es", store=Rows())
