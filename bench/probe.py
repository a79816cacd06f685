"""Posts a small webhook every 10 ms, in a process of its own: only the server's work delays it.

    python -m bench.probe <base URL> <count>

Prints the milliseconds of each as a JSON list once its input closes, or after so many.
"""

import asyncio
import json
import sys

import uvloop

from bench.client import Connection, new_status

EVERY_SECONDS = 0.01
LIMIT_SECONDS = 120.0


async def probe(url: str, count: int) -> list[float]:
    """Milliseconds of each webhook."""
    times: list[float] = []
    connection = await Connection.open(url)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    async with asyncio.timeout(LIMIT_SECONDS):
        while len(times) < count and not ended.done():
            times.append(await connection.send(new_status()) * 1000)
            await asyncio.sleep(EVERY_SECONDS)
    connection.close()
    return times


if __name__ == "__main__":
    print(json.dumps(uvloop.run(probe(sys.argv[1], int(sys.argv[2])))), flush=True)
