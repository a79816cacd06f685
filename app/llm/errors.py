"""Faults of model calls: what a server's refusal means, and retrying within a turn's budget."""

import asyncio
import random
import re
import time
from pathlib import Path
from typing import Literal

import yaml

from app.errors import RecadoError
from app.llm.model import Model, ModelAnswer, ModelRequest

# not_sent: nothing left this machine; timed_out: it took too long; no_answer: the connection broke off;
# no_completion: what came back is no chat completion; status: the server refused with an HTTP status;
# used_up: no endpoint has anything left of its limits
Cause = Literal["not_sent", "timed_out", "no_answer", "no_completion", "status", "used_up"]
RETRY_SECONDS = 15.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 4.0

_REFUSALS = (400, 404, 413, 422)
_SAYS = {
    name: re.compile("|".join(said), re.IGNORECASE | re.DOTALL)
    for name, said in yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text("utf-8")).items()
}


class ModelError(RecadoError):
    """A model call that failed. `reason` is the server's own words; `retry_after` is in seconds."""

    def __init__(
        self,
        message: str,
        cause: Cause,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def retryable(self) -> bool:
        if self.is_too_long:
            return False
        return self.cause in ("not_sent", "no_answer") or self.status == 429 or self.status >= 500

    @property
    def is_too_long(self) -> bool:
        """Tell whether the prompt does not fit into the model's window."""
        return self.status in (*_REFUSALS, 500) and bool(_SAYS["too_long"].search(self.reason))

    @property
    def refuses_tools(self) -> bool:
        """Tell whether the same call may pass with its tools and calls written as text."""
        if self.is_too_long:
            return False
        return self.refuses_all_tools or (
            self.status in _REFUSALS and bool(_SAYS["on_tools"].search(self.reason))
        )

    @property
    def refuses_all_tools(self) -> bool:
        """Tell whether no call with tools will ever pass. llama.cpp says that with 500."""
        if self.status == 500:
            return bool(_SAYS["no_tools_of_llama_cpp"].search(self.reason))
        if self.status not in _REFUSALS or _SAYS["on_one_part"].search(self.reason):
            return False
        return bool(_SAYS["no_tools"].search(self.reason))

    @property
    def may_refuse_pictures(self) -> bool:
        """Tell whether the same call may pass with words in place of its pictures."""
        return (self.status in (*_REFUSALS, 415) or self.status == 500) and not self.is_too_long

    @property
    def refuses_pictures(self) -> bool:
        """Tell whether no picture will ever be taken, rather than this one."""
        return self.may_refuse_pictures and bool(_SAYS["no_pictures"].search(self.reason))


class RetryBudget:
    """The seconds that one turn may spend waiting for a model to recover, over all its calls."""

    def __init__(self, seconds: float = RETRY_SECONDS) -> None:
        self._left = seconds

    async def complete(self, model: Model, request: ModelRequest) -> ModelAnswer:
        """Return the answer, retrying faults that may pass. Raises ModelError when the budget ends."""
        delay = _FIRST_DELAY
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
                delay = min(delay * 2, _LONGEST_DELAY)
