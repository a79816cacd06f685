"""How long one model call keeps the event loop from everything else, ours and the openai package's.

    python -m bench.block <base URL> <calls>

Prints the longest gaps between two passes of the loop, in milliseconds.
"""

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from app.llm.client import ChatModel
from app.llm.model import ModelRequest
from app.settings import Settings

MESSAGES = 100
TOOLS = 40


async def blocks(url: str, calls: int) -> dict[str, list[float]]:
    from openai import AsyncOpenAI, DefaultAioHttpClient

    messages, tools = _messages(), _tools()
    os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none", LLM_MODEL="stand-in")
    ours = ChatModel(Settings())
    client = AsyncOpenAI(base_url=url, api_key="none", http_client=DefaultAioHttpClient())
    completions: Any = client.chat.completions
    sides: dict[str, Callable[[], Awaitable[object]]] = {
        "ours": lambda: ours.complete(ModelRequest("answer", messages, tools)),
        "create": lambda: completions.create(model="stand-in", messages=messages, tools=tools),
    }
    gc.disable()  # a collection would hit one side or the other by chance
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(calls + 2):
        for name, call in sides.items():
            longest = await _longest_gap(call())
            if number >= 2:  # the first ones import and connect
                figures[name].append(longest * 1000)
    await ours.close()
    await client.close()
    return figures


async def _longest_gap(call: Awaitable[object]) -> float:
    """The longest time in seconds between two passes of the loop while the call runs."""
    task = asyncio.ensure_future(call)
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await task
    return longest


def _messages() -> list[dict[str, Any]]:
    """A conversation in which half of the answers called a tool."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an assistant. " * 40}]
    for n in range(MESSAGES // 4):
        function = {"name": "read_gauge_00", "arguments": json.dumps({"place": f"place {n}"})}
        messages += [
            {
                "role": "user",
                "content": f"Please read the gauges of place {n}, and tell me what is new. " * 3,
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"call_{n}", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": f"call_{n}", "content": json.dumps({"value": n, "unit": "bar"})},
            {"role": "assistant", "content": f"Gauge {n} says {n} bar, and nothing is out of the ordinary."},
        ]
    return messages[:MESSAGES]


def _tools() -> list[dict[str, Any]]:
    place = {"type": "string", "description": "Name of the place."}
    wait = {"type": "number", "description": "Seconds that the gauge takes.", "default": 0}
    parameters = {"type": "object", "properties": {"place": place, "wait": wait}, "required": ["place"]}
    return [
        {
            "type": "function",
            "function": {
                "name": f"read_gauge_{n:02}",
                "description": f"Reads gauge {n} of a place.",
                "parameters": parameters,
            },
        }
        for n in range(TOOLS)
    ]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(blocks(sys.argv[1], int(sys.argv[2])))))
