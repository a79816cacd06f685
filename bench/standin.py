"""The outside world on one port: a model server and the Graph API, as lean as they can be.

    /<ms>/v1/chat/completions     a model that answers after so many milliseconds, and whose tool calls
                                  ask the tools to take as long
    /v25.0/<number>/messages      the Graph API: accepts every send and every typing sign

The model plays one job: a classifier's answer, two rounds of four tool calls each, a final text. Beside the
turns it is asked now and then to sum up what was said; that is no call of a turn.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from bench.gauges import SKILL

CALLS = 4
ROUNDS = 2
MODEL_CALLS = 1 + ROUNDS + 1
"""Of a turn: the classifier's, one a round, the final text."""
DONE = "Both places were looked at: four gauges each, and nothing is out of the ordinary."

SUMMARY = '{"who": ["Ana"], "facts": ["reads the gauges of two places"]}'


class StandIn:
    """Serves both; tells who was sent something, and keeps the bodies of the model calls if asked to."""

    def __init__(self) -> None:
        self.url = ""
        self.keep = False
        self.kept: list[dict[str, Any]] = []
        self.model_calls = 0
        self.sends = 0
        self._ids = itertools.count()
        self._waiting: dict[str, asyncio.Future[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator["StandIn"]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            server.close()

    def sent_to(self, phone: str) -> "asyncio.Future[None]":
        """Is done with the next message that goes to a phone."""
        return self._waiting.setdefault(phone, asyncio.get_running_loop().create_future())

    def expect_turns(self, turns: int, *, since: int) -> None:
        """Raises where the model was not called as often as so many whole turns call it."""
        calls = self.model_calls - since
        if calls != turns * MODEL_CALLS:
            raise RuntimeError(f"{turns} turns called the model {calls} times, not {MODEL_CALLS} times each")

    def answer(self, path: str, body: bytes) -> tuple[bytes, float]:
        """The answer to a request, and the seconds until it may be given."""
        request = orjson.loads(body)
        if path.endswith("/chat/completions"):
            seconds = int(path.split("/")[1]) / 1000
            if _wants_summary(request):
                return _completion({"content": SUMMARY}), seconds
            self.model_calls += 1
            if self.keep:
                self.kept.append(request)
            return _completion(_play(request, seconds)), seconds
        waiting = self._waiting.pop(request.get("to", ""), None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        if "to" not in request:
            return b'{"success":true}', 0.0
        self.sends += 1
        return b'{"messaging_product":"whatsapp","messages":[{"id":"wamid.out%d"}]}' % next(self._ids), 0.0


def _wants_summary(request: dict[str, Any]) -> bool:
    return str(request["messages"][0]["content"]).startswith("You keep the memory of a chat")


def _play(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """What the model says next, by how many tool results it was shown in this turn."""
    if not request.get("tools"):
        return {"content": orjson.dumps({"categories": [SKILL], "phrases": ["read gauges"]}).decode()}
    messages = request["messages"]
    done = next((n for n, one in enumerate(reversed(messages)) if one["role"] == "user"), len(messages))
    results = sum(one["role"] == "tool" for one in messages[len(messages) - done :])
    names = [tool["function"]["name"] for tool in request["tools"]]
    gauges = [name for name in names if name.startswith("read_gauge")][:CALLS]
    if results >= CALLS * ROUNDS or not gauges:
        return {"content": DONE}
    arguments = orjson.dumps({"place": f"place {results}", "wait": seconds}).decode()
    calls = [
        {"id": f"call_{results + n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, name in enumerate(gauges)
    ]
    return {"content": None, "tool_calls": calls}


def _completion(message: dict[str, Any]) -> bytes:
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return orjson.dumps(
        {
            "id": "completion",
            "object": "chat.completion",
            "created": 0,
            "model": "stand-in",
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    )


class _Connection(asyncio.Protocol):
    """HTTP/1.1 as far as the clients of this benchmark speak it: Content-Length, kept alive."""

    def __init__(self, world: StandIn) -> None:
        self._world = world
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            total = end + 4 + content_length(head)
            if len(self._buffer) < total:
                return
            body, self._buffer = self._buffer[end + 4 : total], self._buffer[total:]
            answer, seconds = self._world.answer(head.split(b" ", 2)[1].decode(), body)
            if seconds:
                asyncio.get_running_loop().call_later(seconds, self._write, answer)
            else:
                self._write(answer)

    def _write(self, body: bytes) -> None:
        assert self._transport is not None
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


def content_length(head: bytes) -> int:
    """What a message's head says of its body, 0 where it says nothing."""
    lower = head.lower()
    at = lower.find(b"content-length:")
    return int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
