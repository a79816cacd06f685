"""The context of one tool call."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from app.messages import JSON
from app.people import Person

if TYPE_CHECKING:
    from app.tools.result import ToolResult
    from app.tools.tool import Tool


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


class Recorder(Protocol):
    """Keeps what a turn did. The engine awaits both; what they raise stops the call or marks it unknown."""

    async def intent(self, tool: "Tool", args: dict[str, JSON]) -> None:
        """Commit that the call is about to run, before it does."""

    async def result(self, result: "ToolResult", tool: str, seconds: float | None) -> "ToolResult":
        """Record the result of a call; a call that was refused before an intent has one too.

        `tool`: its name, "unknown" where there is none for the caller; `seconds`: from the intent on, None
        without one.
        Gives what was written: another result where what the tool stored could not be kept.
        """


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


@dataclass(frozen=True, kw_only=True, slots=True)
class CallTerms:
    """The engine's terms of one call, which the tool need not know."""

    offered: Collection[str] | None = None  # names of the tools offered in the turn; None: no limit
    approved: "Tool | None" = None  # the very tool of which the person already said yes to this call
    must_ask: bool = False  # it needs a yes whatever the policy says
    note: str = ""  # stands under a question at the terminal
    recorder: Recorder | None = None  # keeps intent and result
