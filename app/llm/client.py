"""Models behind OpenAI-compatible chat-completions endpoints, through the `openai` package; several in order.

A prompt names a picture by a part of its own form, `{"type": "picture", "path": …}`; the bytes join it when
the request is posted, so that neither the journal nor a trace holds them. A model that cannot see gets words.
"""

import asyncio
import base64
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import orjson
import structlog

from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.llm.reading import read_completion, tools_as_text
from app.messages import JSON
from app.people import Person
from app.settings import OPENAI_URL, ModelEndpoint, Settings, TokenPrice
from app.store import limits
from app.store.database import Database
from app.store.journal import Tokens
from app.text import Private

if TYPE_CHECKING:
    from app.llm.connection import Connection

log = structlog.get_logger(__name__)

# The longest answer asked for when a budget bounds it: nearly all models can write that much.
ANSWER_TOKENS = 4_096
COOLDOWN_SECONDS = 60.0  # an endpoint that failed is asked last for so long
MOST_PICTURES = 6  # of one request, the newest
UNSEEN = "[a picture that you cannot see: say so kindly, and ask what it shows or says]"
_GONE = "[a picture that is no longer there]"


class PictureSource(Protocol):
    """The pictures that people sent."""

    def read_bytes(self, person: Person | None, path: str) -> bytes:
        """Return a JPEG of this person. Blocks. Raises OSError or ValueError."""


class ChatModel:
    """Chat completions: `LLM_MODEL` answers, `CLASSIFIER_MODEL` classifies.

    It `sees` what `pictures` has, until the model refuses a picture; unless VISION says.
    """

    def __init__(self, settings: Settings, pictures: PictureSource | None = None) -> None:
        self._settings = settings
        self._pictures = pictures
        self.sees = pictures is not None and settings.vision != "off"
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._url = settings.openai_base_url or OPENAI_URL
        self._key = settings.openai_api_key.get_secret_value()
        # whose models refuse the older name
        is_openai = any(host in self._url for host in ("api.openai.com", "openai.azure.com"))
        self._limit_name = "max_completion_tokens" if is_openai else "max_tokens"
        # then tools are written into the prompt
        self._tools_refused = bool(settings.models) and not settings.models[0].tools

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer to one call; the caller retries. Raises ModelError."""
        if not any(_pictures(request.messages)):
            return await self._with_tools_or_text(request)
        words = replace(request, messages=_in_words(request.messages))
        if self._pictures is None or not self.sees:
            return await self._with_tools_or_text(words)
        shown = await asyncio.to_thread(_filled, request, self._pictures)
        try:
            return await self._with_tools_or_text(replace(request, messages=shown))
        except ModelError as error:
            if not error.may_refuse_pictures:
                raise
            answer = await self._with_tools_or_text(words)
            if error.refuses_pictures and self._settings.vision == "auto":
                log.warning("the model takes no pictures")
                self.sees = False
            return answer

    async def _with_tools_or_text(self, request: ModelRequest) -> ModelAnswer:
        if self._tools_refused:
            return await self._ask(request, tools_as_text(request), [])
        try:
            return await self._ask(request, request.messages, request.tools)
        except ModelError as error:
            has_tools = request.tools or any(message.get("tool_calls") for message in request.messages)
            if not has_tools or not error.refuses_tools:
                raise
            answer = await self._ask(request, tools_as_text(request), [])
            self._tools_refused = bool(request.tools) and error.refuses_all_tools
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
        return read_completion(answer, request, model, self._key)

    async def _connect(self) -> "Connection":
        async with self._opening:
            if self._connection is None:
                self._connection = await asyncio.to_thread(_open, self._url, self._key)
        return self._connection


def _open(url: str, key: str) -> "Connection":
    """Import the package, which takes a quarter of a second, and prepare its client."""
    from app.llm.connection import Connection

    return Connection(url, key)


@dataclass(slots=True)
class Endpoint:
    """An endpoint that can be asked; `listed` is its entry in `MODELS`, None for that of the variables."""

    name: str
    model: ChatModel
    listed: ModelEndpoint | None
    cooling_until: float = 0.0


class ModelChain:
    """Endpoints in order. A call goes to each at most once, those that failed lately last.

    Endpoints whose limit or budget is used up are not asked. `on_answer` is told who answered.
    """

    def __init__(
        self, endpoints: Sequence[Endpoint], store: Database, on_answer: Callable[[str], None]
    ) -> None:
        self._endpoints = endpoints
        self._store = store
        self._on_answer = on_answer
        self.failure = ""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the first answer. Raises the ModelError of the endpoint that was asked last."""
        now = time.monotonic()
        order = sorted(await self._within_limits(), key=lambda one: one.cooling_until > now)
        for endpoint in order:
            try:
                answer = await endpoint.model.complete(request)
            except ModelError as error:
                self.failure = str(error)
                if endpoint is order[-1]:
                    raise
                if not error.is_too_long:
                    endpoint.cooling_until = time.monotonic() + COOLDOWN_SECONDS
                log.warning("the next model is asked", failed=endpoint.name, said=Private(str(error)))
            else:
                self.failure = ""
                self._on_answer(endpoint.name)
                await self._count(endpoint, answer.tokens)
                return answer
        self.failure = "the limits of all MODELS are used up"
        log.warning(self.failure)
        raise ModelError(self.failure, "used_up")

    async def close(self) -> None:
        for endpoint in self._endpoints:
            await endpoint.model.close()

    async def _within_limits(self) -> list[Endpoint]:
        if not any(one.listed and (one.listed.limit or one.listed.budget) for one in self._endpoints):
            return list(self._endpoints)
        now = time.time()
        return await self._store.read(
            lambda conn: [
                one
                for one in self._endpoints
                if (own := one.listed) is None
                or limits.may_ask_model(conn, one.name, own.limit, own.budget, now)
            ]
        )

    async def _count(self, endpoint: Endpoint, tokens: Tokens) -> None:
        if endpoint.listed is None:
            return
        price = endpoint.listed.price or TokenPrice()
        cost, now = price.of(tokens.prompt, tokens.completion), time.time()
        await self._store.tx(lambda conn: limits.count_model(conn, endpoint.name, tokens.total, cost, now))


def build_model(
    settings: Settings, pictures: PictureSource, store: Database, on_answer: Callable[[str], None]
) -> ModelChain:
    """Build the model of the settings: one endpoint, or those of `MODELS` in order."""
    endpoints: list[Endpoint] = []
    for own in settings.by_endpoint():
        listed = own.models[0] if own.models else None
        is_new = all(one.name != own.llm_model for one in endpoints)
        name = own.llm_model if is_new else f"{own.llm_model} ({len(endpoints) + 1})"
        endpoints.append(Endpoint(name, ChatModel(own, pictures), listed))
    return ModelChain(endpoints, store, on_answer)


def _pictures(messages: Sequence[JSON]) -> Iterator[JSON]:
    """Yield the parts that are pictures."""
    for message in messages:
        if isinstance(content := message.get("content"), list):
            yield from (part for part in content if part.get("type") == "picture")


def _filled(request: ModelRequest, source: PictureSource) -> list[JSON]:
    """Return the messages with their newest pictures as `data:` addresses. Blocks."""
    shown: dict[int, JSON] = {}  # by the part's own id: one picture may come twice
    for part in list(_pictures(request.messages))[-MOST_PICTURES:]:
        try:
            data = base64.b64encode(source.read_bytes(request.person, part["path"])).decode()
        except (OSError, ValueError):
            shown[id(part)] = {"type": "text", "text": _GONE}
        else:
            shown[id(part)] = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
    return [
        {**message, "content": [shown.get(id(part), _as_words(part)) for part in content]}
        if isinstance(content := message.get("content"), list)
        else message
        for message in request.messages
    ]


def _as_words(part: JSON) -> JSON:
    return {"type": "text", "text": UNSEEN} if part.get("type") == "picture" else part


def _in_words(messages: Sequence[JSON]) -> list[JSON]:
    """Return the messages with words in place of pictures."""
    return [
        {**message, "content": "\n".join(_as_words(part)["text"] for part in content)}
        if isinstance(content := message.get("content"), list)
        else message
        for message in messages
    ]
