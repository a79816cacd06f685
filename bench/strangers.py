"""How long a member waits beside a thousand strangers a minute, and how many messages a turn sends."""

import asyncio
from itertools import cycle, islice
from pathlib import Path

from bench.client import Connection, new_message, phone
from bench.conversations import Talk
from bench.measure import Plan, Row, quantile, ratio
from bench.process import Release
from bench.seed import seed
from bench.standin import StandIn

LATENCY_MS = 50
MEMBERS = 20
TURNS = 40
STRANGERS_A_SECOND = 1_000 / 60
FIRST_STRANGER = 100_000


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    seed(folder / "recado.db", range(MEMBERS), 1)
    alone: list[float] = []
    beside: list[float] = []
    strangers = 0
    async with StandIn().running() as world:
        model = f"{world.url}/{LATENCY_MS}/v1"
        with release.server(folder, world.url, model=model, ACCESS="everyone") as server:
            await server.answers()
            await server.settled()
            talk, members = Talk(server, world), cycle(range(MEMBERS))
            await talk.turns(range(MEMBERS))
            sends = world.sends
            for _ in range(plan.rounds):
                alone += await talk.turns(islice(members, plan.of(TURNS)))
            each = (world.sends - sends) / len(alone)
            for _ in range(plan.rounds):
                crowd = asyncio.create_task(_crowd(server.url, strangers))
                beside += await talk.turns(islice(members, plan.of(TURNS)))
                crowd.cancel()
                strangers += 1_000
    return [
        ratio(
            "a member's turn while 1,000 strangers a minute write", _ms(beside), _ms(alone), "ms", goal=1.5
        ),
        ratio(
            "p90 of these turns", [quantile(_ms(beside), 0.9)], [quantile(_ms(alone), 0.9)], "ms", goal=1.5
        ),
        ratio("messages that a plain turn sends", [each], [1.0], "", goal=1.0, named="one"),
    ]


async def _crowd(url: str, since: int) -> None:
    """Have strangers write, one after the other, until this is cancelled; none of them twice."""
    connection = await Connection.open(url)
    for n in range(FIRST_STRANGER + since, FIRST_STRANGER + since + 1_000):
        await connection.send(new_message(phone(n), "hola")[1])
        await asyncio.sleep(1 / STRANGERS_A_SECOND)


def _ms(times: list[float]) -> list[float]:
    return [seconds * 1000 for seconds in times]
