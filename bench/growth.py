"""Whether a turn costs the same with ten thousand messages of history, and among a million of others'."""

from itertools import cycle, islice
from pathlib import Path

from bench.conversations import Talk
from bench.measure import Plan, Row, interleaved, ratio
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


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    small, large = folder / "small", folder / "large"
    seed(small / "recado.db", range(PEOPLE), FEW)
    seed(large / "recado.db", range(PEOPLE), FEW)
    seed(large / "recado.db", OLD_FRIENDS, plan.of(MANY))
    seed(large / "recado.db", REGULARS, WINDOW_FULL)
    seed(large / "recado.db", CROWD, plan.of(EACH))
    count = plan.of(TURNS)
    async with StandIn().running() as world:
        model = f"{world.url}/0/v1"
        with (
            release.server(small, world.url, model=model) as small_server,
            release.server(large, world.url, model=model) as large_server,
        ):
            few, many = Talk(small_server, world), Talk(large_server, world)
            for talk in (few, many):
                await talk.server.answers()
                await talk.server.settled()
                await talk.turns(range(20))
            people, friends, regulars = cycle(range(PEOPLE)), cycle(OLD_FRIENDS), cycle(REGULARS)
            figures = await interleaved(
                plan.rounds,
                {
                    "small": lambda: few.cpu(islice(people, count)),
                    "large": lambda: many.cpu(islice(people, count)),
                    "old": lambda: many.cpu(islice(friends, count)),
                    "regular": lambda: many.cpu(islice(regulars, count)),
                },
            )
    return _rows(figures, plan)


def _rows(figures: dict[str, list[float]], plan: Plan) -> list[Row]:
    others = len(CROWD) * plan.of(EACH) + len(OLD_FRIENDS) * plan.of(MANY) + len(REGULARS) * WINDOW_FULL
    stored, alone = (f"{2 * (PEOPLE * FEW + more):,} messages" for more in (others, 0))
    history = f"CPU of a turn, {2 * plan.of(MANY):,} messages of history"
    few, full = f"{2 * FEW} messages", f"{2 * WINDOW_FULL} messages"
    crowded = f"CPU of a turn, {stored} stored"
    return [
        ratio(history, figures["old"], figures["large"], "ms", goal=FLAT, named=few),
        ratio(history, figures["old"], figures["regular"], "ms", named=full),
        ratio(crowded, figures["large"], figures["small"], "ms", goal=FLAT, named=alone),
    ]
