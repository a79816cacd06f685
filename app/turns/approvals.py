"""Which calls of a round may run, which are refused, and which a person is asked about."""

import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from sqlite3 import Connection
from typing import Protocol

from app.errors import RecadoError
from app.llm.model import ToolCall
from app.messages import JSON
from app.routing.tool_catalog import ToolCatalog
from app.store import approvals
from app.store.approvals import Approval, Question
from app.store.database import Database, new_id
from app.store.journal import UncertainCall
from app.tools import ExecutionEngine, Tool, ToolContext, ToolResult
from app.turns.cards import CALL, ONCE, Card, call_card, call_title, question_draft, shipped_card
from app.turns.state import TurnContext
from app.turns.taint import foreign_addresses, own_addresses

MOST_OPEN = 20
"""Questions of one conversation: what a model that goes on asking can put on a phone and into prompts."""


@dataclass(frozen=True, slots=True)
class Agreed:
    """A person's yes to a call: the choice, the hashes of the arguments and of the tool that it was given
    for, and what it was about beyond them."""

    choice: str
    arguments_hash: str
    tool_hash: str
    subject: str = ""


@dataclass(slots=True)
class Decisions:
    """What is decided of a round's calls; one that is not named here needs no yes."""

    agreed: dict[str, Agreed] = field(default_factory=dict)
    """A person's yes, by call id."""
    refused: dict[str, ToolResult] = field(default_factory=dict)
    """Calls that do not run, with what the model is told."""
    must_ask: set[str] = field(default_factory=set)
    """Calls that need a yes whatever the policy says, if they come to run: the engine sees to it."""
    laid_aside: set[str] = field(default_factory=set)
    """Calls that wait for an answer."""
    questions: list[Question] = field(default_factory=list)
    """Those of them that are asked now; the others were asked before."""
    repeats: dict[str, str] = field(default_factory=dict)
    """Calls that do not run, for each is the very same as an earlier one of the round, by that one's id."""


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A call that needs a yes."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, JSON]
    once: bool
    """The yes is for this call alone: no "always here" covers it, nor may be said to it."""

    @property
    def hashes(self) -> tuple[str, str]:
        return arguments_hash(self.arguments), self.tool.definition_hash


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked already: for the turn, and what is open in the conversation."""

    of_turn: tuple[Approval, ...]
    open: tuple[Approval, ...]
    standing: frozenset[str]
    """Tools with an "always here" that still holds."""

    def about(self, key: str) -> list[Approval]:
        """The questions about a call, the oldest first."""
        return [one for one in self.of_turn if _first_key(one.call_key) == key]


class _Unreadable(Exception):
    """What a call would do cannot be told."""


class Refused(RecadoError):
    """A call is not to be done, and nobody need be asked about it. Holds its result."""

    def __init__(self, result: ToolResult) -> None:
        super().__init__(result.code)
        self.result = result


class MakesCard(Protocol):
    """Makes the card of a call that always asks: an install shows what it would bring."""

    async def __call__(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        """Raises Refused."""


Guard = Callable[[Mapping[str, JSON], TurnContext], Awaitable[None]]
"""Looks at a call before anything is done about it. Raises Refused."""


class Authorizer:
    """Asks in the conversation itself: the question is a message, and nothing runs while it is open.

    Without `asks` every call goes to the engine as it is: in a dry run, and where somebody is asked at the
    terminal. `cards` are for the tools that ask in every mode, with a card of their own; `guards` refuse
    calls whoever is asked. `on_question(person)` is told of a question to be sent.
    """

    def __init__(
        self,
        store: Database,
        abilities: ToolCatalog,
        engine: ExecutionEngine,
        cards: Mapping[str, MakesCard],
        on_question: Callable[[str], None],
        *,
        asks: bool,
        guards: Mapping[str, Guard] | None = None,
    ) -> None:
        self._store = store
        self._abilities = abilities
        self._engine = engine
        self._policy = engine.policy
        self._cards = cards
        self._on_question = on_question
        self._asks = asks
        self._guards = guards or {}

    async def authorize(
        self, run: TurnContext, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
    ) -> Decisions:
        """Decides of calls of round `number` that have no result yet; `begun` are those with an intent."""
        offered = run.offered_by(number)
        own = cache(lambda: own_addresses(run.own_words, run.found))
        verdicts = Decisions(refused=await self._refused(run, calls, offered))
        verdicts.repeats = self._repeats(run, number, calls, {*begun, *verdicts.refused})
        touchy: list[NeedsApproval] = []
        for call in calls:
            if call.id in verdicts.repeats:
                continue
            try:
                found = self._touchy(run, call, offered, call.id in begun, own)
            except _Unreadable:  # the engine refuses it, or nobody has looked at what it lets through
                verdicts.must_ask.add(call.id)
                continue
            if found is not None and call.id not in verdicts.refused:
                touchy.append(found)
        if not self._asks:
            verdicts.must_ask.update(one.call.id for one in touchy)
        elif touchy:
            asked = await self._store.tx(lambda conn: _asked(conn, run, touchy))
            for one in touchy:
                try:
                    await self._decide(run, f"{number}:{one.call.id}", one, asked, verdicts)
                except Refused as refused:
                    verdicts.refused[one.call.id] = refused.result
        return verdicts

    async def _refused(
        self, run: TurnContext, calls: Sequence[ToolCall], offered: frozenset[str]
    ) -> dict[str, ToolResult]:
        """The calls that a guard refuses, by call id."""
        refused: dict[str, ToolResult] = {}
        for call in calls:
            guard = self._guards.get(call.name)
            tool = self._abilities.tool(call.name) if guard is not None else None
            if guard is None or tool is None or call.name not in offered:
                continue
            try:
                await guard(tool.validate_args(call.arguments), run)
            except Refused as reason:
                refused[call.id] = reason.result
            except ValueError:  # the engine says what is wrong with the arguments
                continue
        return refused

    def _repeats(
        self, run: TurnContext, number: int, calls: Sequence[ToolCall], apart: Collection[str]
    ) -> dict[str, str]:
        """The calls that repeat an earlier one of their round, each with its id; not those `apart`.

        What is harmless may be done as often as it is asked for.
        """
        firsts: dict[UncertainCall, str] = {}
        repeats: dict[str, str] = {}
        rounds = run.transcript.rounds
        of_round = rounds[number].calls if number < len(rounds) else calls
        if len({call.name for call in of_round}) == len(of_round):
            return repeats  # no two of one name: none repeats another
        for call in of_round:
            tool = self._abilities.tool(call.name)
            if tool is None or tool.harmless:
                continue
            first = firsts.setdefault(call_identity(tool, call), call.id)
            if first != call.id and call.id not in apart:
                repeats[call.id] = first
        return repeats

    async def park(self, run: TurnContext, verdicts: Decisions) -> None:
        """Sends the questions and lays the turn aside until one of them is answered."""
        await run.recorded()  # no question is asked on top of a step that may yet be lost
        turn, where, now, sources = run.opened.id, run.opened.conversation, time.time(), run.sources
        run.keep_trace(self._store)
        await self._store.tx(
            lambda conn: approvals.park(conn, turn, where, verdicts.questions, now, sources),
            then=lambda _: self._on_question(where.person_id),
        )

    def _touchy(
        self,
        run: TurnContext,
        call: ToolCall,
        offered: frozenset[str],
        begun: bool,
        own: Callable[[], frozenset[str]],
    ) -> NeedsApproval | None:
        """The call where it needs a yes; None where the engine may have it as it is. Raises _Unreadable."""
        tool = self._abilities.tool(call.name)
        if tool is None or (tool.audience == "owners" and not run.person.is_owner):
            raise _Unreadable  # the engine does not know it either, unless it is another one by then
        if tool.harmless or tool.name not in offered or (begun and not tool.idempotent):
            return None
        always_asks = tool.name in self._cards or run.is_uncertain(lambda: call_identity(tool, call))
        is_tainted = bool(run.sources)
        asks = always_asks or self._policy.should_confirm(tool)
        if not asks and (not is_tainted or self._policy.mode == "yolo"):
            return None
        try:
            arguments = tool.validate_args(call.arguments)
            tool.check(arguments, ToolContext(person=run.person))
        except Exception as error:  # whatever it is, the engine meets it too, and answers for it
            raise _Unreadable from error
        if not asks and not foreign_addresses(arguments, own()):
            return None  # text of others is in the prompt, but it led the call to no address of theirs
        return NeedsApproval(call, tool, arguments, once=always_asks or is_tainted)

    async def _decide(
        self, run: TurnContext, key: str, one: NeedsApproval, asked: _Asked, verdicts: Decisions
    ) -> None:
        """Agreed to, laid aside, or asked about now. Raises Refused."""
        about = asked.about(key)
        last = about[-1] if about else None
        if last is None:
            if one.tool.name in asked.standing:
                verdicts.agreed[one.call.id] = Agreed("always", *one.hashes)
                return
            if (declined := _declined_before(one, asked)) is not None:
                raise Refused(_refusal(one.tool, declined))
            if _is_open_elsewhere(one, asked):
                raise Refused(_asked_already(one.tool))
            if len(asked.open) + len(verdicts.questions) >= MOST_OPEN:
                raise Refused(_too_many_open(one.tool))
        elif last.state == "open":
            verdicts.laid_aside.add(one.call.id)
            return
        elif last.state != "yes":
            raise Refused(_refusal(one.tool, last))
        elif (last.arguments_hash, last.tool_hash) == one.hashes:
            verdicts.agreed[one.call.id] = Agreed(last.choice, *one.hashes, last.subject)
            return
        too_often = self._engine.too_often(one.tool, ToolContext(person=run.person))
        if too_often is not None:
            raise Refused(too_often)
        card = await self._card(run, one)
        verdicts.laid_aside.add(one.call.id)
        verdicts.questions.append(_question(run, _numbered_key(key, len(about) + 1), one, card))

    async def _card(self, run: TurnContext, one: NeedsApproval) -> Card:
        make = self._cards.get(one.tool.name)
        if make is not None:
            return await make(one.arguments, run)
        language, name, choices = run.person.language, one.tool.name, CALL if _may_stand(one) else ONCE
        if run.is_bundled(name):
            return Card(*shipped_card(language, name, one.arguments, run.sources, run.is_bundled), choices)
        text = call_card(language, name, one.arguments, run.sources, one.tool.description, run.is_bundled)
        return Card(text, call_title(name, one.arguments), choices)


def _asked(conn: Connection, run: TurnContext, touchy: Sequence[NeedsApproval]) -> _Asked:
    conversation = run.opened.conversation
    standing = [
        one.tool.name
        for one in touchy
        if _may_stand(one)
        and approvals.has_standing_consent(conn, conversation, one.tool.name, one.tool.definition_hash)
    ]
    return _Asked(
        approvals.of_turn(conn, run.opened.id), approvals.open_in(conn, conversation.id), frozenset(standing)
    )


def _may_stand(one: NeedsApproval) -> bool:
    """Whether "always here" may be said to it."""
    return not (one.once or one.tool.audience == "owners")


def _is_open_elsewhere(one: NeedsApproval, asked: _Asked) -> bool:
    return any(_is_same(one, waiting) for waiting in asked.open)


def _declined_before(one: NeedsApproval, asked: _Asked) -> Approval | None:
    """The person's no to the very same call in this turn, or a question about it that came to nothing."""
    over = [past for past in asked.of_turn if past.state not in ("open", "yes") and _is_same(one, past)]
    return over[-1] if over else None


def _is_same(one: NeedsApproval, other: Approval) -> bool:
    return (other.tool, other.arguments_hash, other.tool_hash) == (one.tool.name, *one.hashes)


def _numbered_key(key: str, number: int) -> str:
    """The key of the `number`-th question about a call: "0:id", then "0#2:id" and so on. It stands before the
    colon, for in an id of the model's anything may occur."""
    turns_round, _, call = key.partition(":")
    return key if number == 1 else f"{turns_round}#{number}:{call}"


def _first_key(key: str) -> str:
    """The key of the first question about the same call."""
    turns_round, _, call = key.partition(":")
    return f"{turns_round.partition('#')[0]}:{call}"


def _question(run: TurnContext, key: str, one: NeedsApproval, card: Card) -> Question:
    arguments_hash, tool_hash = one.hashes
    draft, buttons = question_draft(run.channel, run.person.language, card)
    return Question(
        id=new_id("approval"),
        call_key=key,
        tool=one.tool.name,
        arguments=_canonical(one.arguments).decode(),
        arguments_hash=arguments_hash,
        tool_hash=tool_hash,
        subject=card.subject,
        title=card.title,
        choices=buttons,
        draft=draft,
    )


def _refusal(tool: Tool, last: Approval) -> ToolResult:
    said = {
        "no": f"the person said no to {tool.name}",
        "expired": f"nobody answered the question about {tool.name} in time, so it did not run",
        "failed": f"the question about {tool.name} could not be delivered, so it did not run",
    }
    hint = "do not call it again with the same arguments; ask what to do instead"
    return ToolResult.failure("DENIED", said.get(last.state, f"{tool.name} was not agreed to"), hint)


def _asked_already(tool: Tool) -> ToolResult:
    return ToolResult.failure(
        "DENIED",
        f"the person was asked about this very call of {tool.name} already and has not answered yet",
        "say that the question above still waits for an answer; do not call it again",
        waits=True,
    )


def _too_many_open(tool: Tool) -> ToolResult:
    return ToolResult.failure(
        "DENIED",
        f"{tool.name} did not run: {MOST_OPEN} questions wait for this person's answer already",
        "tell the person to answer those first",
    )


def call_identity(tool: Tool | None, call: ToolCall) -> UncertainCall:
    """A call by its tool and its checked arguments, however the model wrote them."""
    try:
        arguments: JSON = call.arguments if tool is None else tool.validate_args(call.arguments)
    except Exception:  # whatever it is, the engine meets it too, and runs nothing
        arguments = call.arguments
    return call.name, arguments_hash(arguments)


def arguments_hash(arguments: JSON) -> str:
    """sha256 of arguments in their one spelling."""
    return sha256(_canonical(arguments)).hexdigest()


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
"""Takes any integer and any text."""


def _canonical(arguments: JSON) -> bytes:
    return _ENCODER.encode(arguments).encode()
