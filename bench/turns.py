"""What a whole turn costs the server's process: classify, two rounds of four tool calls, the answer."""

import subprocess
import sys
from contextlib import ExitStack
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from bench.conversations import Loop, Talk, record_job
from bench.frameworks import MODULES
from bench.measure import Plan, Row, Side, interleaved, ratio
from bench.process import Release
from bench.seed import seed
from bench.standin import StandIn

TURNS = 120
FRAMEWORK_TURNS = 30
PEOPLE = 1_000
SHORT, LONG = 1, 20
"""Exchanges of the past."""
TOOLS = 20
AT_ONCE = 10
RAW = {"raw httpx2": 2.2, "raw aiohttp": None}  # loops without a framework, and the goal beside each


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    short_data, long_data, job = folder / "short", folder / "long", folder / "job.json"
    seed(short_data / "recado.db", range(PEOPLE), SHORT)
    seed(long_data / "recado.db", range(PEOPLE), LONG)
    async with StandIn().running() as world:
        model = f"{world.url}/0/v1"
        with (
            release.server(short_data, world.url, model=model) as short_server,
            release.server(long_data, world.url, model=model, MAX_TOOLS_PER_CALL=str(TOOLS)) as long_server,
        ):
            short, long = Talk(short_server, world), Talk(long_server, world)
            for talk in (short, long):
                await talk.server.answers()
                await talk.server.settled()
                await talk.turns(range(10))
            await record_job(short, world, 0, 0, job)
            with ExitStack() as stack:
                loops = {
                    name: stack.enter_context(Loop(name, job, world, python))
                    for name, python in _installed(plan).items()
                }
                for loop in loops.values():
                    await loop.turns(5)
                figures = await _measured(short, long, loops, plan)
    return [*_own_rows(figures), *_beside(figures)]


def _installed(plan: Plan) -> dict[str, str]:
    """The loops that can be run, with the interpreter of each."""
    found = {name: plan.frameworks for name, module in MODULES.items() if _can(plan.frameworks, module)}
    return {**dict.fromkeys(RAW, sys.executable), **found}


def _can(python: str, module: str) -> bool:
    """Whether an interpreter can import a module."""
    return not subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode


async def _measured(short: Talk, long: Talk, loops: dict[str, Loop], plan: Plan) -> dict[str, list[float]]:
    """CPU milliseconds a turn."""
    count, few, people = plan.of(TURNS), plan.of(FRAMEWORK_TURNS), cycle(range(PEOPLE))
    sides: dict[str, Side] = {
        **{name: partial(loops[name].cpu, count) for name in RAW},
        "short": lambda: short.cpu(islice(people, count)),
        "long": lambda: long.cpu(islice(people, count)),
        **{f"{name} together": partial(loops[name].cpu, count, AT_ONCE) for name in RAW},
        "together": lambda: short.cpu(islice(people, count), AT_ONCE),
        **{name: partial(loop.cpu, few) for name, loop in loops.items() if name not in RAW},
    }
    return await interleaved(plan.rounds, sides)


def _own_rows(figures: dict[str, list[float]]) -> list[Row]:
    together = f"CPU of a turn, {AT_ONCE} conversations at once"
    longer = f"CPU of a turn with {2 * LONG} messages of history and {TOOLS} tools"
    short = "short history, 8 tools"
    return [
        *_raw_rows("CPU of a turn", figures["short"], figures, ""),
        *_raw_rows(together, figures["together"], figures, " together"),
        ratio(longer, figures["long"], figures["short"], "ms", named=short),
    ]


def _raw_rows(what: str, ours: list[float], figures: dict[str, list[float]], side: str) -> list[Row]:
    return [
        ratio(what, ours, figures[f"{name}{side}"], "ms", goal=goal, named=f"{name} loop, stores nothing")
        for name, goal in RAW.items()
    ]


def _beside(figures: dict[str, list[float]]) -> list[Row]:
    """Compare our turn with each framework's."""
    return [
        ratio("CPU of a turn", figures["short"], figures[name], "ms", named=name)
        for name in MODULES
        if name in figures
    ]
