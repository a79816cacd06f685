"""What a model is to the rest of the house: a request in, an answer out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from app.errors import RecadoError
from app.llm.refused import is_too_long
from app.messages import JSON
from app.people import Person

Cause = Literal["not_sent", "timed_out", "no_answer", "no_completion", "status"]
"""Why there is no answer: nothing was sent, it took too long, nothing whole came back, what came back is no
chat completion, or the server refused with an HTTP status."""


class ModelError(RecadoError):
    """The model gave no answer. `reason` is the server's own words, `retry_after` seconds, as it asked."""

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
    def is_too_long(self) -> bool:
        """Whether the prompt has no room in the model's window."""
        return is_too_long(self.status, self.reason)

    @property
    def retryable(self) -> bool:
        """Whether the fault may pass soon."""
        if self.is_too_long:
            return False
        return self.cause in ("not_sent", "no_answer") or self.status == 429 or self.status >= 500


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call a model asked for. `arguments` is what it wrote: a dict, or text that may not be JSON.

    `attached` is what the server wants back with the call: Gemini refuses one that comes without.
    """

    id: str
    name: str
    arguments: dict[str, JSON] | str
    attached: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the server counted them (estimated where it does not)."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call.

    `messages` and `tools` have the chat-completions form. `said` is what the person wrote, bare, and
    `person` who it was: the built-in model works from these; a real one reads only messages and tools.
    `categories` is set for a classifier call: names and descriptions of what exists now; so is `recent`:
    what the person wrote before, the newest last.
    """

    purpose: Literal["classify", "answer"]
    messages: list[dict[str, JSON]]
    tools: list[dict[str, JSON]] = field(default_factory=list)
    said: str = ""
    person: Person | None = None
    categories: tuple[tuple[str, str], ...] = ()
    recent: tuple[str, ...] = ()
    max_tokens: int = 0
    """The longest answer that may be paid for; 0: the server's own limit."""
    catalog: str = ""
    """Hash of the catalogue that the tools, or the categories, were chosen from."""
    facts: tuple[str, ...] = ()
    """What the person asked to be remembered, in their own words; in the messages too."""
    waits: bool = False
    """Whether a question to the person is open; the messages name it."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered: text, tool calls, or (a fault to be survived) neither; `cut` by its server.

    `attached` is what the server wants back with the calls of this answer: Moonshot's and DeepSeek's refuse a
    message with calls that comes without the thoughts before them.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    attached: Mapping[str, JSON] = field(default_factory=dict)
    cut: bool = False


class Model(Protocol):
    """A model, real or built in."""

    failure: str
    """Why the last call failed, "" once one succeeded."""

    async def warm(self) -> None:
        """Loads what the first call needs."""

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Answers, or raises ModelError."""

    async def close(self) -> None:
        """Ends what it holds open."""
