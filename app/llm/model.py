"""The interface of a model: a request in, an answer out; what a refusal means, and retrying."""

import asyncio
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import yaml

from app.errors import RecadoError
from app.messages import JSON
from app.people import Person
from app.store.journal import Tokens
from app.store.turn_state import Exchange

RETRY_SECONDS = 15.0
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 4.0
_REFUSALS = (400, 404, 413, 422)


def _written(name: str) -> Any:
    return yaml.safe_load(Path(__file__).with_name(name).read_text("utf-8"))


PROMPTS: Mapping[str, Any] = _written("prompts.yaml")
_SAYS = {
    name: re.compile("|".join(said), re.IGNORECASE | re.DOTALL)
    for name, said in _written("refusals.yaml").items()
}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asked for.

    `arguments` is what it wrote: a dict, or text that may not be JSON. `attached` must go back to the server
    with the call: Gemini refuses a call that comes without its signature.
    """

    id: str
    name: str
    arguments: dict[str, JSON] | str
    attached: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    A real model reads only `messages` and `tools`, both in the chat-completions form. The built-in model
    works from `said` (the person's bare words), `person`, `earlier` (the last few turns, the newest last)
    and, in a classifier call, `categories` (name, description).
    """

    purpose: Literal["classify", "answer"]
    messages: list[dict[str, JSON]]
    tools: list[dict[str, JSON]] = field(default_factory=list)
    said: str = ""
    person: Person | None = None
    categories: tuple[tuple[str, str], ...] = ()
    earlier: tuple[Exchange, ...] = ()
    max_tokens: int = 0  # of the answer, so that a budget holds; 0: the server's own limit
    waits: bool = False  # a question to the person is open; the messages name it


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer: text, tool calls, or neither (a fault that the turn survives).

    `attached` must go back to the server with the answer's calls: Moonshot and DeepSeek refuse calls that
    come without the thoughts before them. `cut`: the server ended the answer at its length limit.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    model: str = ""
    attached: Mapping[str, JSON] = field(default_factory=dict)
    cut: bool = False


class Model(Protocol):
    """A model, real or built in. `failure` says why the last call failed, "" if it did not."""

    failure: str

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer. Raises ModelError."""

    async def close(self) -> None:
        """Close the connections."""


# not_sent: nothing left this machine; timed_out: it took too long; no_answer: the connection broke off;
# no_completion: what came back is no chat completion; status: the server refused with an HTTP status;
# used_up: no endpoint has anything left of its limits
Cause = Literal["not_sent", "timed_out", "no_answer", "no_completion", "status", "used_up"]


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

    def _says(self, name: str) -> bool:
        return _SAYS[name].search(self.reason) is not None

    @property
    def retryable(self) -> bool:
        may_pass = self.cause in ("not_sent", "no_answer") or self.status == 429 or self.status >= 500
        return may_pass and not self.is_too_long

    @property
    def is_too_long(self) -> bool:
        """Tell whether the prompt does not fit into the model's window."""
        return self.status in (*_REFUSALS, 500) and self._says("too_long")

    @property
    def refuses_tools(self) -> bool:
        """Tell whether the same call may pass with its tools and calls written as text."""
        names_tools = self.status in _REFUSALS and self._says("on_tools")
        return (names_tools or self.refuses_all_tools) and not self.is_too_long

    @property
    def refuses_all_tools(self) -> bool:
        """Tell whether no call with tools will ever pass. llama.cpp says that with 500."""
        if self.status == 500:
            return self._says("no_tools_of_llama_cpp")
        return self.status in _REFUSALS and self._says("no_tools") and not self._says("on_one_part")

    @property
    def may_refuse_pictures(self) -> bool:
        """Tell whether the same call may pass with words in place of its pictures."""
        return self.status in (*_REFUSALS, 415, 500) and not self.is_too_long

    @property
    def refuses_pictures(self) -> bool:
        """Tell whether no picture will ever be taken, rather than this one."""
        return self.may_refuse_pictures and self._says("no_pictures")


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
