"""Three workers over a long time, and what grows meanwhile: python -m bench.soak [MESSAGES].

People write again once they are answered. Each tenth of the messages is followed by a line with the memory,
descriptors and connections of all processes, and with the database's size and dead rows; so a run that is cut
short tells too. It ends with 1 where something grew that should not.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import uvloop

from bench.client import SAID, Connection, new_message, phone
from bench.postgres import postgres
from bench.process import START_SECONDS, Measured, Release
from bench.standin import StandIn

MESSAGES = 100_000
CONVERSATIONS = 2_000
AT_ONCE = 100
"""People who wait for an answer at the same time."""
WORKERS = 3
MODEL_MS = 50
ANSWER_SECONDS = 300.0
STEPS = 10
SETTLED_STEP = 2
"""What is compared with the end: until then caches and pools fill."""
MOST_GROWTH = 1.1
MOST_MORE = 10
"""Descriptors or connections that may come and go."""
MOST_DEAD = 0.5
"""Of the rows of a large table; autovacuum begins at a fifth, and looks once a minute."""
LARGE = 10_000
SIZES = """
SELECT relname, pg_total_relation_size(relid) AS bytes, n_live_tup, n_dead_tup, autovacuum_count
FROM pg_stat_user_tables ORDER BY 2 DESC
"""


@dataclass(frozen=True)
class State:
    """All processes and the database at one moment; `tables`: name, bytes, rows, dead rows, autovacuums.

    `descriptors` are without `kept_open`, the connections to the stand-in: as many as sends and model calls
    lately ran at the same time.
    """

    memory: float
    descriptors: int
    kept_open: int
    connections: int
    tables: list[tuple[str, int, int, int, int]]

    def __str__(self) -> str:
        bytes, dead = (sum(table[column] for table in self.tables) for column in (1, 3))
        vacuums = sum(table[4] for table in self.tables)
        return (
            f"{self.memory:7.1f} MB  {self.descriptors:4} descriptors (and {self.kept_open} to the stand-in)"
            f"  {self.connections:3} connections  {bytes / 1e6:7.1f} MB of tables"
            f"  {dead:7,} dead rows  {vacuums:3} autovacuums"
        )


async def run(messages: int) -> bool:
    """Return True if nothing grew that should not."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        server = stack.enter_context(postgres(folder / "postgres"))
        database = server.new_database("soak")
        async with StandIn().running() as world:
            members = _start(stack, Release(folder / "release"), folder, world, database)
            for member in members:
                await member.answers()
            people, states = iter(range(messages)), []
            for step in range(1, STEPS + 1):
                began, share = time.monotonic(), _next(people, messages // STEPS)
                await _write(members[0], world, share)
                seconds = time.monotonic() - began
                states.append(_look(members, world, database))
                speed = messages // STEPS / seconds
                print(f"{step * messages // STEPS:7,}  {speed:5.1f}/s  {states[-1]}", flush=True)
        for table, size, rows, _, _ in states[-1].tables[:8]:
            print(f"{table}: {size / 1e6:.1f} MB, {rows:,} rows, {size / messages:,.0f} bytes a message")
        return _is_steady(states[SETTLED_STEP - 1], states[-1])


def _start(stack: ExitStack, release: Release, folder: Path, world: StandIn, database: str) -> list[Measured]:
    env = {
        "ALLOWED_PHONE_NUMBERS": ",".join(map(phone, range(CONVERSATIONS))),
        "DATABASE_URL": database,
        "DATA_DIR": str(folder / "data"),
    }
    model, members = f"{world.url}/{MODEL_MS}/v1", []
    for number, role in enumerate(("web", *["worker"] * WORKERS)):
        member = release.server(folder / f"{role}{number}", world.url, model=model, ROLE=role, **env)
        member.start_seconds = 4 * START_SECONDS  # all start at the same time
        members.append(stack.enter_context(member))
    return members


def _next(numbers: Iterator[int], count: int) -> Iterator[int]:
    return iter([next(numbers) for _ in range(count)])


async def _write(web: Measured, world: StandIn, share: Iterator[int]) -> None:
    async def person() -> None:
        for number in share:
            to = phone(number % CONVERSATIONS)
            answered = world.sent_to(to)
            async with asyncio.timeout(ANSWER_SECONDS):
                await _post(web, new_message(to, SAID)[1])
                await answered

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(person())


async def _post(web: Measured, request: bytes) -> None:
    """Post a webhook until it is taken, as Meta does."""
    while True:
        connection = await Connection.open(web.url)
        try:
            await connection.send(request)
            return
        except (ConnectionError, RuntimeError):  # 503: the commit took too long
            await asyncio.sleep(1)
        finally:
            connection.close()


def _look(members: list[Measured], world: StandIn, database: str) -> State:
    processes = [psutil.Process(member.pid) for member in members]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        tables = connection.execute(SIZES).fetchall()
        open_now = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        connections = connection.execute(open_now).fetchall()[0][0] - 1
    memory = sum(process.memory_info().rss for process in processes) / 2**20
    port = urlsplit(world.url).port
    peers = [one.raddr.port for each in processes for one in each.net_connections("tcp") if one.raddr]
    kept_open = peers.count(port)
    descriptors = sum(process.num_fds() for process in processes) - kept_open
    return State(memory, descriptors, kept_open, connections, tables)


def _is_steady(before: State, after: State) -> bool:
    """Tell whether memory, descriptors and connections stayed, and dead rows are vacuumed."""
    dead = [name for name, _, rows, gone, _ in after.tables if gone > max(MOST_DEAD * rows, LARGE)]
    faults = {
        f"memory grew by {after.memory / before.memory - 1:.0%}": after.memory > MOST_GROWTH * before.memory,
        "descriptors leak": after.descriptors > before.descriptors + MOST_MORE,
        "connections to the stand-in leak": after.kept_open > WORKERS * AT_ONCE,
        "connections leak": after.connections > before.connections + MOST_MORE,
        f"dead rows stay in {', '.join(dead)}": bool(dead),
    }
    found = [fault for fault, is_true in faults.items() if is_true]
    growth = after.memory / before.memory - 1
    print("; ".join(found) or f"steady: memory {growth:+.1%} from a fifth of the messages on")
    return not found


if __name__ == "__main__":
    sys.exit(not uvloop.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else MESSAGES)))
