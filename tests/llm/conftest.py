"""What the tests of the built-in model share."""

import asyncio

import pytest

from app.routing.abilities import Abilities
from app.skills import SkillLoader
from app.skills.skill import RELEASE_SKILLS
from app.tools import ToolRegistry


@pytest.fixture(scope="session")
def abilities() -> Abilities:
    """The skills of the release with their own phrases; no test changes them."""
    found = Abilities(SkillLoader(RELEASE_SKILLS), ToolRegistry(), {})
    asyncio.run(found.refresh())
    return found
