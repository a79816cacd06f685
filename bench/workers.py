"""Several workers on PostgreSQL: turns a second by their number, beside SQLite and bare jobs."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import procrastinate

from bench.client import SAID, Connection, new_message, phone
from bench.conversations import TURN_SECONDS
from bench.measure import Plan, Row, interleaved, quantile, ratio
from bench.postgres import postgres
from bench.process import START_SECONDS, Measured, Release
from bench.standin import StandIn

CONVERSATIONS = 100
MODEL_MS = 50
TURNS = 600
KNOWN = {"ALLOWED_PHONE_NUMBERS": ",".join(phone(number) for number in range(CONVERSATIONS))}
JOBS = 3_000
JOBS_AT_ONCE = 100


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    async with StandIn().running() as world:
        model = f"{world.url}/{MODEL_MS}/v1"
        with ExitStack() as stack:
            server = stack.enter_context(postgres(folder / "postgres"))
            made = (server.new_database(f"bench{number}") for number in range(10))
            webs = {
                "SQLite": stack.enter_context(
                    release.server(folder / "sqlite", world.url, model=model, **KNOWN)
                ),
                "one process": _cluster(stack, release, folder / "0", world, next(made), 0),
                "1 worker": _cluster(stack, release, folder / "1", world, next(made), 1),
                "2 workers": _cluster(stack, release, folder / "2", world, next(made), 2),
            }
            acknowledged: dict[str, list[float]] = {}

            async def turns(name: str) -> float:
                return await _turns(webs[name], world, plan.of(TURNS), acknowledged.setdefault(name, []))

            for name, web in webs.items():
                web.start_seconds = 4 * START_SECONDS  # all start at the same time
                await web.answers()
                await turns(name)
            sides = {name: lambda name=name: turns(name) for name in webs}
            jobs = next(made)
            figures = await interleaved(plan.rounds, {**sides, "jobs": lambda: _jobs(jobs, plan.of(JOBS))})
    return [*_rows(figures), *_acknowledged(acknowledged)]


def _cluster(
    stack: ExitStack, release: Release, folder: Path, world: StandIn, database: str, workers: int
) -> Measured:
    """Start a process that takes webhooks, and its workers; without any it does all by itself."""
    env = {**KNOWN, "DATABASE_URL": database, "DATA_DIR": str(folder / "data")}
    model = f"{world.url}/{MODEL_MS}/v1"
    for number in range(workers):
        place = folder / f"worker{number}"
        stack.enter_context(release.server(place, world.url, model=model, ROLE="worker", **env))
    role = "web" if workers else "all"
    return stack.enter_context(release.server(folder / "web", world.url, model=model, ROLE=role, **env))


def _rows(figures: dict[str, list[float]]) -> Iterator[Row]:
    what = f"turns a second, {CONVERSATIONS} conversations at {MODEL_MS} ms"
    for name in ("one process", "1 worker", "2 workers"):
        yield ratio(f"{what}, PostgreSQL, {name}", figures[name], figures["SQLite"], "/s", named="SQLite")
    yield ratio(f"{what}, 2 workers", figures["2 workers"], figures["1 worker"], "/s", named="1 worker")
    jobs = "procrastinate, jobs that do nothing"
    yield ratio(f"{what}, 2 workers", figures["2 workers"], figures["jobs"], "/s", named=jobs)


def _acknowledged(times: dict[str, list[float]]) -> Iterator[Row]:
    beside = [1000 * quantile(times["SQLite"], 0.99)]
    for name in ("one process", "2 workers"):
        ours = [1000 * quantile(times[name], 0.99)]
        yield ratio(f"webhooks under that load, p99, PostgreSQL, {name}", ours, beside, "ms", named="SQLite")


async def _turns(web: Measured, world: StandIn, count: int, acknowledged: list[float]) -> float:
    """Have people write so often, each again once they are answered; return the turns of a second."""
    left = iter(range(count))
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for person in range(CONVERSATIONS):
            group.create_task(_write(web, world, person, left, acknowledged))
    return count / (time.perf_counter() - began)


async def _write(
    web: Measured, world: StandIn, person: int, left: Iterator[int], acknowledged: list[float]
) -> None:
    connection = await Connection.open(web.url)
    for _ in left:
        answered = world.sent_to(phone(person))
        _, request = new_message(phone(person), SAID)
        started = time.perf_counter()
        async with asyncio.timeout(TURN_SECONDS):
            await connection.send(request)
            acknowledged.append(time.perf_counter() - started)
            await answered
    connection.close()


async def _jobs(address: str, count: int) -> float:
    """Return how many jobs of a second procrastinate does that do nothing, each with a lock of its own."""
    async with _app(address) as app:
        task = app.tasks["nothing"]
        await task.batch_defer_async(*({"number": number} for number in range(count)))
        began = time.perf_counter()
        await app.run_worker_async(
            wait=False, concurrency=JOBS_AT_ONCE, delete_jobs="always", install_signal_handlers=False
        )
        return count / (time.perf_counter() - began)


@asynccontextmanager
async def _app(address: str) -> AsyncIterator[procrastinate.App]:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=address))

    @app.task(name="nothing")
    async def nothing(number: int) -> None: ...

    async with app.open_async():
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        yield app
