"""The interface of a model: a request in, an answer out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import yaml

from app.messages import JSON
from app.people import Person
from app.store.journal import Tokens
from app.store.turn_state import Exchange

PROMPTS: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("prompts.yaml").read_text("utf-8"))


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
    works from `said` (the person's bare words), `person`, `earlier` (the last few turns, the newest last),
    `facts` (what the person asked to be remembered) and, in a classifier call, `categories` (name,
    description).
    """

    purpose: Literal["classify", "answer"]
    messages: list[dict[str, JSON]]
    tools: list[dict[str, JSON]] = field(default_factory=list)
    said: str = ""
    person: Person | None = None
    categories: tuple[tuple[str, str], ...] = ()
    earlier: tuple[Exchange, ...] = ()
    max_tokens: int = 0  # of the answer, so that a budget holds; 0: the server's own limit
    facts: tuple[str, ...] = ()
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
