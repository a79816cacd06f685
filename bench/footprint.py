"""What the server needs to be there at all: memory, the CPU of its start, and what a thousand turns add."""

from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from bench.conversations import Talk
from bench.measure import Plan, Row, absolute, memory_mb, ratio
from bench.process import Measured, Release, bare
from bench.seed import seed
from bench.standin import StandIn

TURNS = 1_000
BEFORE = 200
AT_ONCE = 10
PEOPLE = 100


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    async with StandIn().running() as world:
        return [*await idle(folder, release, plan, world), await _growth(folder, release, plan, world)]


async def idle(folder: Path, release: Release, plan: Plan, world: StandIn) -> list[Row]:
    """Measure the CPU of a start, and the memory at rest without and with a model."""
    started: dict[str, list[float]] = {"ours": [], "bare": []}
    resting: dict[str, list[float]] = {"ours": [], "bare": [], "model": []}
    for n in range(plan.rounds + 1):
        for name in ("ours", "model"):
            seed(folder / f"{name}{n}" / "recado.db", range(1), 1)
        sides: dict[str, Callable[[], Measured]] = {
            "bare": lambda n=n: bare(folder / f"bare{n}", "with_sqlite"),
            "ours": lambda n=n: release.server(folder / f"ours{n}", world.url),
            "model": lambda n=n: release.server(folder / f"model{n}", world.url, model=f"{world.url}/0/v1"),
        }
        for name, start in sides.items():
            with start() as process:
                await process.answers()
                if name in started:
                    started[name].append(process.cpu * 1000)
                await process.settled()
                resting[name].append(memory_mb(process.pid))
    for figures in (*started.values(), *resting.values()):
        del figures[0]  # the first start fills the caches of the disk
    named = "bare FastAPI + aiosqlite"
    return [
        ratio("CPU until healthy", started["ours"], started["bare"], "ms", named=named),
        ratio("memory at rest", resting["ours"], resting["bare"], "MB", named=named),
        absolute("memory at rest, built-in model", resting["ours"], "MB", 85),
        absolute("memory at rest, with a model", resting["model"], "MB", 115),
    ]


async def _growth(folder: Path, release: Release, plan: Plan, world: StandIn) -> Row:
    seed(folder / "growth" / "recado.db", range(PEOPLE), 1)
    people = cycle(range(PEOPLE))
    with release.server(folder / "growth", world.url, model=f"{world.url}/0/v1") as server:
        await server.answers()
        talk = Talk(server, world)
        await talk.turns(islice(people, BEFORE), AT_ONCE)
        before = memory_mb(server.pid)
        count = plan.of(TURNS)
        await talk.turns(islice(people, count), AT_ONCE)
        after = memory_mb(server.pid)
    what = f"memory that {count:,} turns add"
    return Row(
        what, f"{after:.0f} MB", f"{before:.0f} MB (after {BEFORE} turns)", after - before, 10, unit=" MB"
    )
