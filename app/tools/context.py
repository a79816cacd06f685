"""The context of one tool call."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from app.messages import JSON
from app.people import Person


class PersonStore(Protocol):
    """This person's rows for this skill. Synchronous for `def` tools, awaitable for `async def` ones."""

    def get(self, key: str, default: JSON = None) -> JSON: ...

    def put(self, key: str, value: JSON) -> JSON: ...

    def list(self, prefix: str = "", limit: int = 1000) -> JSON: ...

    def delete(self, key: str) -> JSON: ...


class InThread:
    """The face of a part for a `def` tool: `async` methods run on the loop while the tool's thread waits."""

    def __init__(self, part: object, seconds: float) -> None:
        self._part = part
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._part, name)

        def call(*args: Any, **named: Any) -> Any:
            acts = asyncio.run_coroutine_threadsafe(method(*args, **named), self._loop)
            return acts.result(self._seconds)

        return call


class Services(dict[str, object]):
    """Services by name, as `context.services.search` or `context.services["search"]`."""

    def __getattr__(self, name: str) -> object:
        try:
            return self[name]
        except KeyError:
            known = ", ".join(sorted(self)) or "none"
            raise AttributeError(
                f"no service is named {name!r}; only skills of the release have services, here: {known}"
            ) from None


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The context that a tool function's parameter named `context` receives.

    `sources` say where text of others in the turn's prompt came from, none when all of it is the person's.
    `subject` and `choice` belong to a call that was asked about with a card of its own: the hash of what the
    card showed, and what the person chose. `message` is what the person wrote just now, and `own_words` all
    that they wrote in the turns that the prompt shows; both stay in the server's own process. `shown_again`
    are the answers to the call's earlier cards that decided nothing, such as "details".
    """

    person: Person | None = None
    conversation: str = ""
    store: PersonStore | None = None
    http: object | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    channel: str = ""
    services: Services = field(default_factory=Services)
    sources: Collection[str] = ()
    subject: str = ""
    choice: str = ""
    chosen: Collection[str] = ()  # the skills in use in the turn
    message: str = ""
    own_words: Sequence[str] = ()
    shown_again: Collection[str] = ()

    @property
    def language(self) -> str:
        """Return the person's language, English when there is no person."""
        return self.person.language if self.person is not None else "en"
