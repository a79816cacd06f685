"""Faults of model calls: what a server's refusal means, and retrying within a turn's budget."""

import asyncio
import random
import re
import time
from typing import Literal

from app.errors import RecadoError
from app.llm.model import Model, ModelAnswer, ModelRequest

# not_sent: nothing left this machine; timed_out: it took too long; no_answer: the connection broke off;
# no_completion: what came back is no chat completion; status: the server refused with an HTTP status;
# used_up: no endpoint has anything left of its limits
Cause = Literal["not_sent", "timed_out", "no_answer", "no_completion", "status", "used_up"]
RETRY_SECONDS = 15.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 4.0

# Words of OpenAI, Gemini, DeepSeek, Moonshot, OpenRouter, LiteLLM, vLLM, llama.cpp, Ollama (see the tests)
_REFUSALS = (400, 404, 413, 422)
_ON_TOOLS = re.compile(r"\b(?:tool|function)", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"(support|unsupported|allow|enabl|requires|unknown|unrecogni).*\b(tools?|functions?)\b"
    r"|\b(tools?|functions?)\b.*(support|allow|enabl|requires|unknown|unrecogni)",
    re.IGNORECASE | re.DOTALL,
)
_LLAMA_CPP_NO_TOOLS = re.compile(r"tools param requires|unsupported param: tools", re.IGNORECASE)
# a fault of one tool's schema or of one message: the next call may pass
_ON_ONE_PART = re.compile(
    r"schema|propert|declaration|\bwithout\b|\bmissing\b|reasoning_content|thought_signature", re.IGNORECASE
)
_SIGHT = r"(images?|image_url|vision|multi-?modal|pictures?|mmproj)"
_NO_PICTURES = re.compile(
    rf"(\bnot?\b|n't|unsupported|unknown|unrecogni|only|at most 0|missing).{{0,80}}{_SIGHT}"
    rf"|{_SIGHT}.{{0,80}}(\bnot?\b|n't|unsupported|unknown|only|requires)",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    r"context.{0,20}(length|size|window)|maximum.{0,60}\btokens|exceed.{0,60}\btokens?\b|token limit"
    r"|(prompt|input|request).{0,40}too (long|large)",
    re.IGNORECASE | re.DOTALL,
)


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
        return self.status in (*_REFUSALS, 500) and bool(_TOO_LONG.search(self.reason))

    @property
    def refuses_tools(self) -> bool:
        """Tell whether the same call may pass with its tools and calls written as text."""
        if self.is_too_long:
            return False
        return self.refuses_all_tools or (self.status in _REFUSALS and bool(_ON_TOOLS.search(self.reason)))

    @property
    def refuses_all_tools(self) -> bool:
        """Tell whether no call with tools will ever pass. llama.cpp says that with 500."""
        if self.status == 500:
            return bool(_LLAMA_CPP_NO_TOOLS.search(self.reason))
        if self.status not in _REFUSALS or _ON_ONE_PART.search(self.reason):
            return False
        return bool(_NO_TOOLS.search(self.reason))

    @property
    def may_refuse_pictures(self) -> bool:
        """Tell whether the same call may pass with words in place of its pictures."""
        return (self.status in (*_REFUSALS, 415) or self.status == 500) and not self.is_too_long

    @property
    def refuses_pictures(self) -> bool:
        """Tell whether no picture will ever be taken, rather than this one."""
        return self.may_refuse_pictures and bool(_NO_PICTURES.search(self.reason))


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
