"""The same job as a turn, done by other loops, each in a process of its own and storing nothing.

    python -m bench.loops <name> <job.json>

job.json holds the addresses `model` and `graph`, the classifier's messages as `classify`, and `messages` and
`tools` of the first call. A line "<turns> <at once>" on stdin runs so many turns; a JSON list of their
seconds comes back on stdout.
"""

import asyncio
import importlib.util
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from bench.frameworks import FRAMEWORKS, Job, Turn
from bench.gauges import tools_source

Post = Callable[[str, bytes], Awaitable[bytes]]


def tool_functions(folder: Path) -> dict[str, Callable[..., Awaitable[Any]]]:
    """The gauges, as functions."""
    path = folder / "bench_gauges.py"
    path.write_text(tools_source(), "utf-8")
    spec = importlib.util.spec_from_file_location("bench_gauges", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_gauges"] = module
    spec.loader.exec_module(module)
    return {name: function for name, function in vars(module).items() if name.startswith("read_gauge")}


async def raw_turn(job: Job, functions: dict[str, Any], post: Post) -> None:
    """A turn with nothing but HTTP calls: as many, and of the same size, as the server's."""
    import orjson

    async def ask(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        body = {"model": "stand-in", "messages": messages, **({"tools": tools} if tools else {})}
        answer = orjson.loads(await post(f"{job['model']}/chat/completions", orjson.dumps(body)))
        return dict(answer["choices"][0]["message"])

    async def run(call: dict[str, Any]) -> dict[str, str]:
        arguments = orjson.loads(call["function"]["arguments"])
        result = await functions[call["function"]["name"]](**arguments)
        return {"role": "tool", "tool_call_id": call["id"], "content": orjson.dumps(result).decode()}

    graph = f"{job['graph']}/v25.0/1/messages"
    typing = asyncio.create_task(post(graph, orjson.dumps({"status": "read", "message_id": "wamid.1"})))
    await ask(job["classify"], [])
    messages = list(job["messages"])
    while calls := (answer := await ask(messages, job["tools"])).get("tool_calls"):
        messages += [answer, *await asyncio.gather(*(run(call) for call in calls))]
    await post(graph, orjson.dumps({"to": "1", "type": "text", "text": {"body": answer["content"]}}))
    await typing


@asynccontextmanager
async def raw_httpx2(job: Job, functions: dict[str, Any]) -> AsyncIterator[Turn]:
    import httpx2

    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=200)
    async with httpx2.AsyncClient(trust_env=False, limits=limits, timeout=30) as client:

        async def post(url: str, body: bytes) -> bytes:
            response = await client.post(url, content=body, headers={"Content-Type": "application/json"})
            return response.content

        yield lambda: raw_turn(job, functions, post)


@asynccontextmanager
async def raw_aiohttp(job: Job, functions: dict[str, Any]) -> AsyncIterator[Turn]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=200)
    async with aiohttp.ClientSession(connector=connector) as client:

        async def post(url: str, body: bytes) -> bytes:
            async with client.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                return await response.read()

        yield lambda: raw_turn(job, functions, post)


LOOPS: dict[str, Callable[..., AbstractAsyncContextManager[Turn]]] = {
    "raw httpx2": raw_httpx2,
    "raw aiohttp": raw_aiohttp,
    **FRAMEWORKS,
}


async def serve(name: str, job_file: Path) -> None:
    """Runs what stdin asks for, until it ends."""
    job = json.loads(job_file.read_text("utf-8"))
    async with LOOPS[name](job, tool_functions(job_file.parent)) as turn:
        while line := await asyncio.to_thread(sys.stdin.readline):
            turns, at_once = map(int, line.split())
            print(json.dumps(await run_turns(turn, turns, at_once)), flush=True)


async def run_turns(turn: Turn, turns: int, at_once: int) -> list[float]:
    """Seconds of every turn, so many of them at a time."""
    times: list[float] = []
    left = iter(range(turns))

    async def lane() -> None:
        for _ in left:
            started = time.perf_counter()
            await turn()
            times.append(time.perf_counter() - started)

    await asyncio.gather(*(lane() for _ in range(at_once)))
    return times


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
