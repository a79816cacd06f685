"""A stand-in for an OpenAI-compatible server, played by a function that each test brings."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.simulator.graph import canned_clip
from tests.standins.listener import Listener

Play = Callable[[dict[str, Any]], "Awaitable[Any] | Any"]
"""Body of a request → a message ("text", or a dict with `tool_calls`), or a whole `Response`."""


Hear = Callable[[bytes], "Awaitable[Any] | Any"]


class ModelServer:
    """Serves `/v1/chat/completions` and `/v1/audio/transcriptions` on a port of its own.

    It keeps every request it saw. `hear` plays the second: the bytes of a file → its text, or a `Response`.
    """

    def __init__(self, play: Play, hear: Hear | None = None) -> None:
        self.play, self.hear = play, hear
        self.requests: list[dict[str, Any]] = []
        self.heard: list[dict[str, Any]] = []
        self.spoken: list[dict[str, Any]] = []
        routes = [
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
            Route("/v1/audio/transcriptions", self._transcribe, methods=["POST"]),
            Route("/v1/audio/speech", self._speak, methods=["POST"]),
        ]
        self._listener = Listener(Starlette(routes=routes))
        self.port = self._listener.port
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def stop(self) -> None:
        self._listener.stop()

    @property
    def main_calls(self) -> list[dict[str, Any]]:
        """The requests that were not the classifier's."""
        return [body for body in self.requests if not is_classifier(body)]

    async def _complete(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests.append(body)
        answer = self.play(body)
        if asyncio.iscoroutine(answer):
            try:
                answer = await answer
            except asyncio.CancelledError:  # the test is over
                return Response(status_code=503)
        if isinstance(answer, Response):
            return answer
        return Response(json.dumps(completion(answer)), media_type="application/json")

    async def _speak(self, request: Request) -> Response:
        self.spoken.append(json.loads(await request.body()))
        return Response(canned_clip(), media_type="audio/ogg")

    async def _transcribe(self, request: Request) -> Response:
        async with request.form() as form:
            file = form["file"]
            assert isinstance(file, UploadFile)
            data = await file.read()
            self.heard.append({**form, "file": file.filename, "size": len(data)})
        answer = self.hear(data) if self.hear is not None else Response("Not Found", 404)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Response):
            return answer
        return Response(json.dumps({"text": answer}), media_type="application/json")


def is_classifier(body: dict[str, Any]) -> bool:
    return "tools" not in body and "You route messages" in str(body["messages"][0]["content"])


def completion(answer: Any) -> dict[str, Any]:
    """A chat-completions body around a text or a message."""
    message = {"role": "assistant", "content": answer} if isinstance(answer, str) else answer
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "stand-in",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def calls(*wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A message that asks for tool calls."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{position}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for position, (name, arguments) in enumerate(wanted)
        ],
    }


def routed(*categories: str, phrases: Sequence[str] = ()) -> Callable[[Play], Play]:
    """Decorates what plays the main calls: the classifier names these categories and phrases."""
    route = json.dumps({"categories": categories, "phrases": phrases})
    return lambda play: lambda body: route if is_classifier(body) else play(body)


def caller(*wanted: tuple[str, dict[str, Any]], to: str, then: str = "done") -> Play:
    """Plays a model that is routed to a skill, makes these calls for each message, and then says this."""
    return routed(to)(lambda body: then if body["messages"][-1]["role"] == "tool" else calls(*wanted))


def results(body: dict[str, Any]) -> list[Any]:
    """What a request says of the calls before it, in their order."""
    return [json.loads(one["content"]) for one in body["messages"] if one["role"] == "tool"]


def last_user_text(body: dict[str, Any]) -> str:
    users = [message["content"] for message in body["messages"] if message["role"] == "user"]
    last = users[-1]
    return last if isinstance(last, str) else "\n".join(part["text"] for part in last if "text" in part)


def none_needed(body: dict[str, Any]) -> str | None:
    """The classifier's "nothing fits", None for any other request."""
    return '{"categories": [], "phrases": []}' if is_classifier(body) else None


def echo(body: dict[str, Any]) -> str:
    """Plays a model that needs no tool and repeats the last line it was told."""
    return none_needed(body) or f"you said: {last_user_text(body).splitlines()[-1]}"


def slow_until(event: threading.Event) -> Play:
    """Plays a model that echoes, what is called slow only once `event` is set."""

    async def play(body: dict[str, Any]) -> str:
        if not is_classifier(body) and "slow" in last_user_text(body):
            await asyncio.to_thread(event.wait, 30)
        return echo(body)

    return play


def keeper(body: dict[str, Any]) -> Any:
    """Keeps what it is told to, and says what it kept."""
    if is_classifier(body):
        return '{"categories": ["notes"], "phrases": ["note"]}'
    last = body["messages"][-1]
    if last["role"] == "tool":
        return f"here: {last['content']}"
    said = last_user_text(body)
    if "keep" in said:
        return calls(("save_note", {"text": said.splitlines()[-1]}))
    return calls(("list_notes", {}))
