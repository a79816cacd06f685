"""Retrying a model within what a turn may wait."""

import asyncio
import random
import time

from app.llm.model import Model, ModelAnswer, ModelError, ModelRequest

PATIENCE_SECONDS = 15.0


class Patience:
    """The time one turn may spend waiting for a model to recover, over all its calls."""

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._left = seconds

    async def complete(self, model: Model, request: ModelRequest) -> ModelAnswer:
        """The model's answer; passing faults are tried again. Raises ModelError when patience ends."""
        delay = 0.5
        while True:
            started = time.monotonic()
            try:
                return await model.complete(request)
            except ModelError as error:
                self._left -= time.monotonic() - started
                jittered = delay * random.uniform(0.8, 1.2)  # noqa: S311 (spreads retries, guards nothing)
                wait = error.retry_after or jittered
                if not error.retryable or wait >= self._left:
                    raise
                self._left -= wait
                await asyncio.sleep(wait)
                delay = min(delay * 2, 4.0)
