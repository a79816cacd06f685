"""What a server keeps in memory, beside a bare one: `make bench` measures it, this sees when it grows."""

from pathlib import Path

import pytest

from bench import footprint
from bench.measure import Plan
from bench.process import Release
from bench.standin import StandIn

pytestmark = pytest.mark.slow


async def test_memory_stays_within_the_goals(tmp_path: Path) -> None:
    async with StandIn().running() as world:
        rows = await footprint.idle(tmp_path, Release(tmp_path / "release"), Plan(rounds=1), world)
    memory = {row.what: row for row in rows if row.what.startswith("memory")}
    assert len(memory) == 2
    assert all(row.met for row in memory.values()), memory
