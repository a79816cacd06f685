"""Growth: a turn costs the same with ten thousand messages of history, and among a million of others'."""

from itertools import cycle, islice
from pathlib import Path

from app.store.database import Location
from bench.conversations import Talk
from bench.measure import Plan, Row, interleaved, ratio
from bench.postgres import PostgresServer, postgres
from bench.process import Release
from bench.seed import seed
from bench.standin import StandIn

TURNS = 100
PEOPLE = 100
"""Who write; each has the same few messages of the past, where it is not said otherwise."""
FEW = 5
OLD_FRIENDS = range(PEOPLE, PEOPLE + 4)
MANY = 5_000
"""Exchanges, that is ten and ten thousand messages."""
REGULARS = range(PEOPLE + 4, PEOPLE + 8)
WINDOW_FULL = 50
"""Exchanges that fill the prompt's window just as ten thousand do."""
CROWD = range(1_000, 2_000)
EACH = 480
FLAT = 1.2
SETTLE_SECONDS = 120.0
"""A server that finds a million messages is busy for a while."""


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    files = (folder / "small" / "recado.db", folder / "large" / "recado.db")
    found = _rows(await _measured(folder, files, release, plan), plan)
    with postgres(folder / "server") as server:
        databases = (server.new_database("small"), server.new_database("large"))
        figures = await _measured(folder / "postgres", databases, release, plan, server)
    return [*found, *_rows(figures, plan, " on PostgreSQL, whose own counts too")]


async def _measured(
    folder: Path,
    databases: tuple[Location, Location],
    release: Release,
    plan: Plan,
    postgres: PostgresServer | None = None,
) -> dict[str, list[float]]:
    """CPU milliseconds a turn."""
    small, large = databases
    seed(small, range(PEOPLE), FEW)
    seed(large, range(PEOPLE), FEW)
    seed(large, OLD_FRIENDS, plan.of(MANY))
    seed(large, REGULARS, WINDOW_FULL)
    seed(large, CROWD, plan.of(EACH))
    count = plan.of(TURNS)
    async with StandIn().running() as world:
        model = f"{world.url}/0/v1"
        own = [{"DATABASE_URL": one} if isinstance(one, str) else {} for one in databases]
        with (
            release.server(folder / "small", world.url, model=model, **own[0]) as small_server,
            release.server(folder / "large", world.url, model=model, **own[1]) as large_server,
        ):
            few, many = (Talk(one, world, database=postgres) for one in (small_server, large_server))
            for talk in (few, many):
                talk.server.start_seconds = SETTLE_SECONDS
                await talk.server.answers()
                await talk.server.settled()
                await talk.turns(range(20))
            people, friends, regulars = cycle(range(PEOPLE)), cycle(OLD_FRIENDS), cycle(REGULARS)
            return await interleaved(
                plan.rounds,
                {
                    "small": lambda: few.cpu(islice(people, count)),
                    "large": lambda: many.cpu(islice(people, count)),
                    "old": lambda: many.cpu(islice(friends, count)),
                    "regular": lambda: many.cpu(islice(regulars, count)),
                },
            )


def _rows(figures: dict[str, list[float]], plan: Plan, where: str = "") -> list[Row]:
    others = len(CROWD) * plan.of(EACH) + len(OLD_FRIENDS) * plan.of(MANY) + len(REGULARS) * WINDOW_FULL
    stored, alone = (f"{2 * (PEOPLE * FEW + more):,} messages" for more in (others, 0))
    history = f"CPU of a turn{where}, {2 * plan.of(MANY):,} messages of history"
    few, full = f"{2 * FEW} messages", f"{2 * WINDOW_FULL} messages"
    crowded = f"CPU of a turn{where}, {stored} stored"
    return [
        ratio(history, figures["old"], figures["large"], "ms", goal=FLAT, named=few),
        ratio(history, figures["old"], figures["regular"], "ms", named=full),
        ratio(crowded, figures["large"], figures["small"], "ms", goal=FLAT, named=alone),
    ]
