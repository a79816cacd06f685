"""Memory at rest: `make bench` has the goals, this sees when it grows."""

from pathlib import Path

import pytest

from bench import footprint
from bench.measure import Plan
from bench.process import Release
from bench.standin import StandIn

pytestmark = pytest.mark.slow

MEGABYTES = {"memory at rest, built-in model": 100, "memory at rest, with a model": 125}


async def test_memory_at_rest_does_not_grow(tmp_path: Path) -> None:
    async with StandIn().running() as world:
        rows = await footprint.idle(tmp_path, Release(tmp_path / "release"), Plan(rounds=1), world)
    measured = {row.what: row.value for row in rows if row.what in MEGABYTES}
    assert measured.keys() == MEGABYTES.keys()
    assert all(measured[what] <= most for what, most in MEGABYTES.items()), measured
