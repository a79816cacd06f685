"""Several endpoints in order: where one fails, the next one answers the same call."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from app.llm.client import ChatModel, PictureSource, Vision
from app.llm.errors import ModelError
from app.llm.model import ModelAnswer, ModelRequest
from app.settings import ModelEndpoint, Settings, TokenPrice
from app.store import billing
from app.store.database import Connection, Database
from app.store.journal import Tokens
from app.text import Private

log = structlog.get_logger(__name__)

COOLDOWN_SECONDS = 60.0  # an endpoint that failed is asked last for so long


@dataclass(slots=True)
class Endpoint:
    """An endpoint that can be asked; `listed` is its entry in `MODELS`, None for that of the variables."""

    name: str
    model: ChatModel
    listed: ModelEndpoint | None
    cooling_until: float = 0.0

    def may_be_asked(self, conn: Connection, now: float) -> bool:
        one = self.listed
        return one is None or billing.may_ask_model(conn, self.name, one.limit, one.budget, now)


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
            lambda conn: [one for one in self._endpoints if one.may_be_asked(conn, now)]
        )

    async def _count(self, endpoint: Endpoint, tokens: Tokens) -> None:
        if endpoint.listed is None:
            return
        price = endpoint.listed.price or TokenPrice()
        cost, now = price.of(tokens.prompt, tokens.completion), time.time()
        await self._store.tx(lambda conn: billing.count_model(conn, endpoint.name, tokens.total, cost, now))


def build_model(
    settings: Settings, pictures: PictureSource, store: Database, on_answer: Callable[[str], None]
) -> ModelChain:
    """Build the model of the settings: one endpoint, or those of `MODELS` in order."""
    endpoints: list[Endpoint] = []
    for own in settings.by_endpoint():
        listed = own.models[0] if own.models else None
        is_new = all(one.name != own.llm_model for one in endpoints)
        name = own.llm_model if is_new else f"{own.llm_model} ({len(endpoints) + 1})"
        endpoints.append(Endpoint(name, ChatModel(own, Vision(own, pictures)), listed))
    return ModelChain(endpoints, store, on_answer)
