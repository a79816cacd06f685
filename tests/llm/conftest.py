"""What the tests of the built-in model share."""

import asyncio

import pytest

from app.routing.tool_catalog import ToolCatalog
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import ToolRegistry


@pytest.fixture(scope="session")
def abilities() -> ToolCatalog:
    """The skills of the release with their own phrases; no test changes them."""
    found = ToolCatalog(SkillLoader(RELEASE_SKILLS), ToolRegistry(), {})
    asyncio.run(found.refresh())
    return found
