"""Memory at rest stays within the goals of `make bench`."""

from pathlib import Path

import pytest

from bench import footprint
from bench.measure import Plan
from bench.process import Release
from bench.standin import StandIn

pytestmark = pytest.mark.slow


async def test_memory_at_rest_stays_within_the_goals(tmp_path: Path) -> None:
    async with StandIn().running() as world:
        rows = await footprint.idle(tmp_path, Release(tmp_path / "release"), Plan(rounds=1), world)
    goals = {row.what: row for row in rows if row.goal is not None}
    assert len(goals) == 2
    assert all(row.met for row in goals.values()), goals
