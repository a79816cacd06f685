"""How long people wait where the model and the tools take 50 ms each, alone and a hundred at once."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from bench.conversations import Loop, Talk, record_job
from bench.measure import Plan, Row, quantile, ratio
from bench.process import ROOT, Release
from bench.seed import seed
from bench.standin import StandIn

LATENCY_MS = 50
IDEAL_MS = 6.0 * LATENCY_MS
"""Classify, model, tools, model, tools, model."""
ALONE = 10
TOGETHER = 2_000
AT_ONCE = 100
PEOPLE = 1_000
PROBES = 300
PROBE_SECONDS = 0.015
"""What one takes at most, its pause included."""
MODEL_CALLS = 15


@dataclass(frozen=True, slots=True)
class Figures:
    """Of every round: milliseconds of single turns, turns a second, p99 milliseconds."""

    alone: list[float] = field(default_factory=list)
    raw_alone: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    raw_rates: list[float] = field(default_factory=list)
    turn_p99: list[float] = field(default_factory=list)
    busy_p99: list[float] = field(default_factory=list)
    idle_p99: list[float] = field(default_factory=list)


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    seed(folder / "recado.db", range(PEOPLE), 1)
    job = folder / "job.json"
    figures = Figures()
    async with StandIn().running() as world:
        model = f"{world.url}/{LATENCY_MS}/v1"
        with release.server(folder, world.url, model=model) as server:
            await server.answers()
            await server.settled()
            talk = Talk(server, world)
            await talk.turns(range(20), 20)
            await record_job(talk, world, 0, LATENCY_MS, job)
            people = cycle(range(PEOPLE))
            with Loop("raw aiohttp", job, world) as raw:
                await raw.turns(20, 20)
                for _ in range(plan.rounds):
                    await _round(figures, talk, raw, people, plan)
        blocks = await _blocks(world)
    return [*_waits(figures), _block(blocks)]


async def _round(figures: Figures, talk: Talk, raw: Loop, people: Iterator[int], plan: Plan) -> None:
    """One of each, the baselines first."""
    few, many = plan.of(ALONE), max(plan.of(TOGETHER), 2 * AT_ONCE)
    figures.raw_alone.extend(seconds * 1000 for seconds in await raw.turns(few))
    figures.alone.extend(seconds * 1000 for seconds in await talk.turns(islice(people, few)))
    idle = _Probe(talk.server.url, PROBES)
    await asyncio.sleep(PROBES * PROBE_SECONDS)
    figures.idle_p99.append(await idle.p99())
    started = time.perf_counter()
    await raw.turns(many, AT_ONCE)
    figures.raw_rates.append(many / (time.perf_counter() - started))
    busy = _Probe(talk.server.url, sys.maxsize)
    started = time.perf_counter()
    times = await talk.turns(islice(people, many), AT_ONCE)
    figures.rates.append(many / (time.perf_counter() - started))
    figures.busy_p99.append(await busy.p99())
    figures.turn_p99.append(quantile(times, 0.99) * 1000)


def _waits(figures: Figures) -> list[Row]:
    beside = f"ideal; a raw aiohttp loop: {median(figures.raw_alone) / IDEAL_MS:.2f}×"
    each = f"a turn, model and tools {LATENCY_MS} ms each"
    together = f"turns, {AT_ONCE} conversations at once"
    raw, idle = "raw aiohttp loop, stores nothing", "the same, idle"
    return [
        ratio(each, figures.alone, [IDEAL_MS], "ms", named=beside),
        ratio(together, figures.rates, figures.raw_rates, "/s", goal=0.4, bound="least", named=raw),
        ratio("p99 of these turns", figures.turn_p99, [IDEAL_MS], "ms", named="ideal"),
        ratio("p99 of a webhook meanwhile", figures.busy_p99, figures.idle_p99, "ms", named=idle),
    ]


def _block(blocks: dict[str, list[float]]) -> Row:
    what = "longest block of the loop by a model call, 100 messages, 40 tools"
    return ratio(what, blocks["ours"], blocks["create"], "ms", goal=0.5, named="create() of openai")


class _Probe:
    """A process that posts webhooks beside whatever else runs: see bench/probe.py."""

    def __init__(self, url: str, count: int) -> None:
        command = [sys.executable, "-m", "bench.probe", url, str(count)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    async def p99(self) -> float:
        """Ends it; milliseconds."""
        told, _ = await asyncio.to_thread(self._process.communicate, timeout=30)
        return quantile(json.loads(told), 0.99)


async def _blocks(world: StandIn) -> dict[str, list[float]]:
    """Longest blocks in milliseconds, measured by bench/block.py in a process of its own."""
    command = [sys.executable, "-m", "bench.block", f"{world.url}/0/v1", str(MODEL_CALLS)]
    run = await asyncio.to_thread(
        subprocess.run, command, cwd=ROOT, capture_output=True, check=True, timeout=60
    )
    return dict(json.loads(run.stdout))
