"""How fast messages are acknowledged, each of them parsed, committed and on the disk.

The turns of these messages are held back (a long BURST_QUIET_SECONDS), as a burst holds them back in
everyday use, so that what is measured is taking in, with the look that each lane takes at its messages.
"""

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median

from bench.client import Connection, new_message, phone
from bench.measure import Plan, Row, interleaved, quantile, ratio
from bench.process import Measured, Release, bare
from bench.seed import seed

CONNECTIONS = 64
WARM_UP = 200
MESSAGES = 8_000
ALONE = 500
PEOPLE = 2_000
"""So many that nobody's messages fill a burst: a full one would become a turn."""
STORM_SECONDS = 60.0


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    held = {"BURST_QUIET_SECONDS": "3600", "BURST_MAX_SECONDS": "3600"}
    seed(folder / "ours" / "recado.db", range(PEOPLE), 0)
    posted: set[str] = set()
    alone: dict[str, list[float]] = {"bare": [], "ours": [], "commit": []}
    cpu: dict[str, list[float]] = {"bare": [], "ours": []}
    with (
        bare(folder / "bare") as baseline,
        release.server(folder / "ours", "http://127.0.0.1:9", **held) as server,
    ):
        for process in (baseline, server):
            await process.answers()
            await process.settled()
        sides = {
            "bare": lambda: _storm(baseline, plan.of(MESSAGES), set(), cpu["bare"]),
            "ours": lambda: _storm(server, plan.of(MESSAGES), posted, cpu["ours"]),
        }
        await _storm(baseline, WARM_UP, set(), [])
        await _storm(server, WARM_UP, posted, [])
        figures = await interleaved(plan.rounds, sides)
        for _ in range(plan.rounds):
            alone["bare"].append(await _alone(baseline, plan.of(ALONE), set()))
            alone["commit"].append(_commit(folder / "commit.db", plan.of(ALONE)))
            alone["ours"].append(await _alone(server, plan.of(ALONE), posted))
    stored = _stored(folder / "ours" / "recado.db")
    if stored != len(posted):
        raise RuntimeError(f"{len(posted)} messages were acknowledged, {stored} are stored")
    floor = [(one + commit) for one, commit in zip(alone["bare"], alone["commit"], strict=True)]
    busy = median(cpu["bare"]) * median(figures["bare"]) / 1000
    return [
        ratio(
            f"webhooks acknowledged, {CONNECTIONS} connections",
            figures["ours"],
            figures["bare"],
            "/s",
            named=f"bare FastAPI, stores nothing, {busy:.0%} of a core busy",
        ),
        ratio("CPU of an acknowledgement", cpu["ours"], cpu["bare"], "ms", named="bare FastAPI"),
        ratio(
            "p50 of one, one connection", alone["ours"], floor, "ms", named="bare FastAPI + one FULL commit"
        ),
        Row(
            "messages stored",
            f"{stored:,}",
            f"{len(posted):,} (ids posted)",
            stored / len(posted),
            1.0,
            "least",
        ),
    ]


async def _storm(process: Measured, count: int, posted: set[str], cpu: list[float]) -> float:
    """Acknowledgements a second; notes the milliseconds of CPU that one took."""
    messages = [new_message(phone(n % PEOPLE)) for n in range(count)]
    posted.update(wamid for wamid, _ in messages)
    requests = iter([request for _, request in messages])
    connections = [await Connection.open(process.url) for _ in range(CONNECTIONS)]
    before, started = process.cpu, time.perf_counter()
    async with asyncio.timeout(STORM_SECONDS), asyncio.TaskGroup() as group:
        for connection in connections:
            group.create_task(_drain(connection, requests))
    seconds = time.perf_counter() - started
    cpu.append((process.cpu - before) * 1000 / count)
    for connection in connections:
        connection.close()
    return count / seconds


async def _drain(connection: Connection, requests: Iterator[bytes]) -> None:
    for request in requests:
        await connection.send(request)


async def _alone(process: Measured, count: int, posted: set[str]) -> float:
    """Median milliseconds of an acknowledgement."""
    connection = await Connection.open(process.url)
    times = []
    for n in range(count):
        wamid, request = new_message(phone(n % PEOPLE))
        posted.add(wamid)
        times.append(await connection.send(request) * 1000)
    connection.close()
    return quantile(times, 0.5)


def _commit(path: Path, count: int) -> float:
    """Median milliseconds of an INSERT and its commit, WAL and synchronous=FULL, on the same disk."""
    times = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, body TEXT)")
        for _ in range(count):
            started = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO messages (body) VALUES (?)", ("x" * 500,))
            connection.execute("COMMIT")
            times.append((time.perf_counter() - started) * 1000)
    return quantile(times, 0.5)


def _stored(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM messages WHERE direction = 'in'").fetchone()[0])
