"""A model behind an OpenAI-compatible chat-completions endpoint, through the `openai` package."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from app.llm.completions import read_completion, tools_as_text
from app.llm.errors import ModelError
from app.llm.model import ModelAnswer, ModelRequest
from app.llm.vision import Vision, has_pictures, in_words
from app.messages import JSON
from app.settings import OPENAI_URL, Settings

if TYPE_CHECKING:
    from app.llm.connection import Connection

# The longest answer asked for when a budget bounds it: nearly all models can write that much.
ANSWER_TOKENS = 4_096


class ChatModel:
    """Chat completions: `LLM_MODEL` answers, `CLASSIFIER_MODEL` classifies."""

    def __init__(self, settings: Settings, vision: Vision | None = None) -> None:
        self._settings = settings
        self._vision = vision or Vision(settings)
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._url = settings.openai_base_url or OPENAI_URL
        # whose models refuse the older name
        is_openai = any(host in self._url for host in ("api.openai.com", "openai.azure.com"))
        self._limit_name = "max_completion_tokens" if is_openai else "max_tokens"
        # then tools are written into the prompt
        self.tools_refused = bool(settings.models) and not settings.models[0].tools

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer to one call; the caller retries. Raises ModelError."""
        if not has_pictures(request.messages):
            return await self._with_tools_or_text(request)
        words = replace(request, messages=in_words(request.messages))
        if not self._vision.sees:
            return await self._with_tools_or_text(words)
        shown = await self._vision.filled(request.messages, request.person)
        try:
            return await self._with_tools_or_text(replace(request, messages=shown))
        except ModelError as error:
            if not error.may_refuse_pictures:
                raise
            answer = await self._with_tools_or_text(words)
            if error.refuses_pictures:
                self._vision.refuse()
            return answer

    async def _with_tools_or_text(self, request: ModelRequest) -> ModelAnswer:
        if self.tools_refused:
            return await self._ask(request, tools_as_text(request), [])
        try:
            return await self._ask(request, request.messages, request.tools)
        except ModelError as error:
            if not _has_tools(request) or not error.refuses_tools:
                raise
            answer = await self._ask(request, tools_as_text(request), [])
            self.tools_refused = bool(request.tools) and error.refuses_all_tools
            return answer

    async def _ask(
        self, request: ModelRequest, messages: Sequence[JSON], tools: Sequence[JSON]
    ) -> ModelAnswer:
        classify = request.purpose == "classify"
        settings = self._settings
        model = settings.classifier_model if classify else settings.llm_model
        body: dict[str, JSON] = {"model": model, "messages": messages}
        if tools:
            body["tools"] = tools
        if request.max_tokens:
            body[self._limit_name] = min(request.max_tokens, ANSWER_TOKENS)
        seconds = settings.classifier_timeout if classify else settings.llm_timeout
        connection = await self._connect()
        answer = await connection.post(model, orjson.dumps(body), seconds)
        return read_completion(answer, request, model)

    async def _connect(self) -> "Connection":
        async with self._opening:
            if self._connection is None:
                key = self._settings.openai_api_key.get_secret_value()
                self._connection = await asyncio.to_thread(_open, self._url, key)
        return self._connection


def _open(url: str, key: str) -> "Connection":
    """Import the package, which takes a quarter of a second, and prepare its client."""
    from app.llm.connection import Connection

    return Connection(url, key)


def _has_tools(request: ModelRequest) -> bool:
    return bool(request.tools) or any(message.get("tool_calls") for message in request.messages)
