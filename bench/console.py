"""The console beside 100,000 stored messages: how soon each page is there, and what it costs the webhook."""

import asyncio
import time
from contextlib import AsyncExitStack, closing
from pathlib import Path

import httpx

from app.store.database import engine_of
from bench.client import Connection, new_message, phone
from bench.measure import Plan, Row, interleaved, quantile
from bench.process import Measured, Release
from bench.seed import last_message, load, seed

PEOPLE = 2_000
EACH = 20
TODAY = 10_000
"""Turns of the last day, with two messages each."""
PAGES = (
    *("", "/conversations", "/conversations?words=zzz", "/conversations?words=menu"),
    *("/conversations?show=failed", "/conversations/conversation7", "/turns/{turn}", "/decisions"),
    *("/abilities", "/knowledge", "/people", "/people?words=0042", "/people/person7", "/schedules"),
    *("/costs", "/log", "/audit", "/setup", "/sessions"),
)
LOOKS = 40
MESSAGES = 400
OPEN = 5
"""Pages that are open beside the webhook, each with its part that changes."""
MILLISECONDS, SLOWER = 200, 1.5


async def rows(folder: Path, release: Release, plan: Plan) -> list[Row]:
    database = folder / "recado.db"
    seed(database, range(PEOPLE), plan.of(EACH))
    turn = _today(database, plan.of(TODAY))
    with release.server(
        folder, "http://127.0.0.1:9", BURST_QUIET_SECONDS="3600", BURST_MAX_SECONDS="3600"
    ) as server:
        server.start_seconds = 120.0
        await server.answers()
        token = (folder / "admin_token").read_text().strip()
        async with httpx.AsyncClient(base_url=f"{server.url}/console", timeout=30, trust_env=False) as http:
            assert (await http.post("/sign-in", data={"token": token})).status_code == 303
            found = [await _page(server, http, page.format(turn=turn), plan) for page in PAGES]
            return [*found, await _webhook(server, http, plan)]


def _today(database: Path, turns: int) -> str:
    """Write turns of the last day, and return the id of one."""
    engine, now = engine_of(database), time.time()
    with closing(engine.connect()) as connection:
        number = last_message(connection)
        parts = []
        for n in range(turns):
            at = now - 80_000 * (turns - n) / turns
            id, where = f"turn_{int(at * 1000):012x}{n:016x}", n % PEOPLE
            owner = {"person_id": f"person{where}", "conversation_id": f"conversation{where}"}
            said = {**owner, "kind": "text", "turn_id": id, "at": at, "text": "what is on the menu today?"}
            ended = {"state": "done", "outcome": "answered", "attempts": 1, "traced": 1}
            journal = {"turn_id": id, "person_id": owner["person_id"], "at": at}
            parts.append(
                {
                    "turns": [{"id": id, **owner, **ended, "created_at": at, "done_at": at + 1}],
                    "messages": [
                        {**said, "id": number + 2 * n + 1, "direction": "in"},
                        {**said, "id": number + 2 * n + 2, "direction": "out"},
                    ],
                    "journal": [
                        {**journal, "key": "route", "kind": "route", "payload": "{}"},
                        {**journal, "key": "llm:0", "kind": "llm", "payload": '{"text":"soup","calls":[]}'},
                    ],
                }
            )
        load(connection, parts)
    return id


async def _page(server: Measured, http: httpx.AsyncClient, page: str, plan: Plan) -> Row:
    took, used = [], server.cpu
    for _ in range(plan.of(LOOKS)):
        started = time.perf_counter()
        (await http.get(page)).raise_for_status()
        took.append(time.perf_counter() - started)
    slow = quantile(took, 0.95)
    return Row(
        f"console{page[:40] or ' of today'}, p95",
        f"{1000 * slow:.0f} ms",
        f"{1000 * (server.cpu - used) / len(took):.0f} ms of CPU",
        1000 * slow,
        MILLISECONDS,
        unit=" ms",
    )


async def _webhook(server: Measured, http: httpx.AsyncClient, plan: Plan) -> Row:
    """Compare the webhook's p99 with pages of the console open, and without."""

    async def post() -> float:
        connection = await Connection.open(server.url)
        took = [await connection.send(new_message(phone(n % PEOPLE))[1]) for n in range(plan.of(MESSAGES))]
        connection.close()
        return quantile(took, 0.99)

    async def post_beside() -> float:
        async with AsyncExitStack() as stack:
            for page in ("", "/conversations", "/conversations/conversation7", "/log", "/decisions")[:OPEN]:
                await stack.enter_async_context(http.stream("GET", page, params={"live": "0"}))
            await asyncio.sleep(1)
            return await post()

    figures = await interleaved(plan.rounds, {"closed": post, "open": post_beside})
    beside, alone = sorted(figures["open"]), sorted(figures["closed"])
    middle = len(alone) // 2
    value = beside[middle] / alone[middle]
    ours, base = f"{1000 * beside[middle]:.2f} ms", f"{1000 * alone[middle]:.2f} ms"
    return Row(f"webhook, p99 with {OPEN} pages open", ours, base, value, SLOWER)
