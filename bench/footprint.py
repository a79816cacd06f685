"""What the server needs to be there at all: memory, the CPU of its start, and what a thousand turns add."""

from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path

from bench.conversations import Talk
from bench.measure import Plan, Row, memory_mb, ratio
from bench.process import Measured, Release, bare
from bench.seed import seed
from bench.standin import StandIn

OFFLINE = "12% of 3450"
TURNS = 1_000
BEFORE = 200
AT_ONCE = 10
PEOPLE = 100


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    async with StandIn().running() as world:
        return [*await idle(folder, release, plan, world), await _growth(folder, release, plan, world)]


async def idle(folder: Path, release: Release, plan: Plan, world: StandIn) -> list[Row]:
    """What it takes to start, to be at rest, and to have answered once."""
    started: dict[str, list[float]] = {"ours": [], "bare": []}
    rested: dict[str, list[float]] = {"ours": [], "bare": []}
    resting: dict[str, list[float]] = {"ours": [], "bare": []}
    used: list[float] = []
    for n in range(plan.rounds + 1):
        ours = folder / f"ours{n}"
        seed(ours / "recado.db", range(1), 1)
        sides: dict[str, Callable[[], Measured]] = {
            "bare": lambda n=n: bare(folder / f"bare{n}", "with_sqlite"),
            "ours": lambda ours=ours: release.server(ours, world.url),
        }
        for name, start in sides.items():
            with start() as process:
                await process.answers()
                started[name].append(process.cpu * 1000)
                await process.settled()
                rested[name].append(process.cpu * 1000)
                resting[name].append(memory_mb(process.pid))
                if name == "ours":
                    await Talk(process, world, OFFLINE).turns([0])
                    await process.settled()
                    used.append(memory_mb(process.pid))
    for figures in (*started.values(), *rested.values(), *resting.values(), used):
        del figures[0]  # the first start fills the caches of the disk
    named = "bare FastAPI + aiosqlite"
    return [
        ratio("CPU until healthy", started["ours"], started["bare"], "ms", goal=2.5, named=named),
        ratio("CPU until at rest", rested["ours"], rested["bare"], "ms", named=named),
        ratio(
            "memory before the first message", resting["ours"], resting["bare"], "MB", goal=1.5, named=named
        ),
        ratio("memory after a turn, offline model", used, resting["bare"], "MB", goal=1.9, named=named),
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
