"""Several endpoints in order: where one fails, the next one answers the same call."""

import time
from collections.abc import Callable, Mapping

import structlog

from app.llm.client import ChatModel
from app.llm.errors import ModelError
from app.llm.model import ModelAnswer, ModelRequest
from app.llm.vision import PictureSource, Vision
from app.settings import Settings
from app.text import Private

log = structlog.get_logger(__name__)

COOLDOWN_SECONDS = 60.0  # an endpoint that failed is asked last for so long


class ModelChain:
    """The endpoints by name, in order. A call goes to each at most once, those that failed lately last.

    `on_answer` is told who answered.
    """

    def __init__(self, models: Mapping[str, ChatModel], on_answer: Callable[[str], None]) -> None:
        self._models = models
        self._cooling_until = dict.fromkeys(models, 0.0)
        self._on_answer = on_answer
        self.failure = ""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the first answer. Raises the ModelError of the endpoint that was asked last."""
        now = time.monotonic()
        order = sorted(self._models, key=lambda name: self._cooling_until[name] > now)
        for name in order:
            try:
                answer = await self._models[name].complete(request)
            except ModelError as error:
                self.failure = str(error)
                if name == order[-1] or not _may_fail_over(error):
                    raise
                self._cooling_until[name] = time.monotonic() + COOLDOWN_SECONDS
                log.warning("the next model is asked", failed=name, said=Private(str(error)))
            else:
                self.failure = ""
                self._on_answer(name)
                return answer
        raise AssertionError("there is no endpoint")

    async def close(self) -> None:
        for model in self._models.values():
            await model.close()


def build_model(settings: Settings, pictures: PictureSource, on_answer: Callable[[str], None]) -> ModelChain:
    """Build the model of the settings: one endpoint, or those of `MODELS` in order."""
    each = [settings.with_endpoint(endpoint) for endpoint in settings.models] or [settings]
    models: dict[str, ChatModel] = {}
    for one in each:
        name = one.llm_model if one.llm_model not in models else f"{one.llm_model} ({len(models) + 1})"
        models[name] = ChatModel(one, Vision(one, pictures))
    return ModelChain(models, on_answer)


def _may_fail_over(error: ModelError) -> bool:
    """Tell whether another endpoint may answer: not where the call itself is at fault."""
    return not error.is_too_long and error.status not in (400, 413, 422)
