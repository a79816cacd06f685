"""Decide which calls of a round may run, which are refused, and which a person is asked about."""

import json
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal

from app.llm.model import ToolCall
from app.messages import JSON
from app.store import approvals
from app.store.approvals import Approval, Question
from app.store.database import new_id
from app.store.journal import UncertainCall
from app.tools import Tool, ToolContext, ToolResult
from app.tools.result import Refused
from app.turns.cards import CALL, ONCE, Card, call_card, question_draft, with_sources
from app.turns.state import TurnContext
from app.turns.taint import leads_elsewhere, own_addresses

# the key of a later question about a call, "0#2:id": an id of the model's may hold anything
_NUMBERED = re.compile(r"^(\d+)#\d+")
MOST_OPEN = 20  # questions of one conversation: a model that goes on asking would fill phone and prompts


@dataclass(frozen=True, slots=True)
class Agreed:
    """A person's yes to a call, with the hashes of the arguments and of the tool that it was given for."""

    choice: str
    arguments_hash: str
    tool_hash: str
    subject: str = ""  # what the card showed beyond the arguments


@dataclass(slots=True)
class Decisions:
    """The decisions on a round's calls, by call id; a call that is not named here needs no yes."""

    agreed: dict[str, Agreed] = field(default_factory=dict)
    refused: dict[str, ToolResult] = field(default_factory=dict)
    must_ask: set[str] = field(default_factory=set)  # the engine asks, whatever the policy says
    laid_aside: set[str] = field(default_factory=set)  # wait for an answer
    questions: list[Question] = field(default_factory=list)  # those that are asked now


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A call that needs a yes; after `once` no "always here" covers it, nor may be offered."""

    call: ToolCall
    tool: Tool
    arguments: dict[str, JSON]
    once: bool

    @property
    def hashes(self) -> tuple[str, str]:
        return arguments_hash(self.arguments), self.tool.consent_hash(self.arguments)

    @property
    def may_stand(self) -> bool:
        """Tell whether "always here" may be said to it."""
        return not (self.once or self.tool.audience == "owners")

    def is_about(self, other: Approval) -> bool:
        """Tell whether a question is about the very same call."""
        return (other.tool, other.arguments_hash, other.tool_hash) == (self.tool.name, *self.hashes)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The questions that were asked in the turn and in the conversation, and what is always allowed here."""

    of_turn: tuple[Approval, ...]
    open: tuple[Approval, ...]
    standing: frozenset[tuple[str, str]]  # by name and hash


async def authorize(
    turn: TurnContext, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
) -> Decisions:
    """Decide about calls of round `number` that have no result yet; the `begun` ones have an intent.

    A tool's guard refuses calls whoever is asked; a tool with a card of its own asks in every mode. In a dry
    run the engine gets every other call as it is.
    """
    own = own_addresses(turn.own_words, turn.found) if turn.sources else frozenset()
    decisions = Decisions(refused=await _refused_by_guards(turn, number, calls))
    found: list[NeedsApproval] = []
    for call in calls:
        need = _needs_approval(turn, number, call, own, is_begun=call.id in begun)
        if need == "engine asks":
            decisions.must_ask.add(call.id)
        elif need is not None and call.id not in decisions.refused:
            found.append(need)
    if turn.services.settings.dry_run:
        decisions.must_ask.update(one.call.id for one in found)
    elif found:
        where = turn.state.conversation
        asked = await turn.services.store.tx(
            lambda conn: _Asked(
                approvals.of_turn(conn, turn.id),
                approvals.open_in(conn, where.id),
                approvals.standing_consents(conn, where),
            )
        )
        for one in found:
            try:
                await _decide(turn, f"{number}:{one.call.id}", one, asked, decisions)
            except Refused as refused:
                decisions.refused[one.call.id] = refused.result
    return decisions


async def park(turn: TurnContext, decisions: Decisions) -> None:
    """Send the questions and lay the turn aside until one of them is answered."""
    where, now, sources = turn.state.conversation, time.time(), turn.sources
    await turn.services.store.tx(
        lambda conn: approvals.park(conn, turn.id, where, decisions.questions, now, sources),
        then=lambda _: turn.services.sender.wake(where.person_id),
    )


def call_identity(tool: Tool | None, call: ToolCall) -> UncertainCall:
    """Identify a call by its tool and its checked arguments, however the model wrote them."""
    try:
        arguments: JSON = call.arguments if tool is None else tool.validate_args(call.arguments)
    except Exception:  # whatever it is, the engine meets it too, and runs nothing
        arguments = call.arguments
    return call.name, arguments_hash(arguments)


def arguments_hash(arguments: JSON) -> str:
    """Return the sha256 of arguments in their canonical form."""
    return sha256(_canonical(arguments).encode()).hexdigest()


async def _refused_by_guards(
    turn: TurnContext, number: int, calls: Sequence[ToolCall]
) -> dict[str, ToolResult]:
    refused: dict[str, ToolResult] = {}
    offered, contexts = turn.offered_by(number), turn.services.contexts
    for call in calls:
        tool = turn.tools.tool(call.name)
        if tool is None or tool.guard is None or call.name not in offered:
            continue
        try:
            arguments = tool.validate_args(call.arguments)
            store = contexts.store_for(tool, turn.person.id, outside=True)  # never applied
            fault = await tool.guard(arguments, contexts.of_turn(turn, tool, store))
        except Refused as reason:
            fault = reason.result
        except ValueError:  # the engine says what is wrong with the arguments
            continue
        if fault is not None:
            refused[call.id] = ToolResult.of(fault)
    return refused


def _needs_approval(
    turn: TurnContext, number: int, call: ToolCall, own: frozenset[str], *, is_begun: bool
) -> NeedsApproval | Literal["engine asks"] | None:
    """Return the yes that a call needs, None if it needs none; where no card can be made, the engine asks."""
    tool = turn.tools.tool(call.name)
    if tool is None or (tool.audience == "owners" and not turn.person.is_owner):
        return "engine asks"  # which does not know it, unless it is another one by then
    if tool.harmless or tool.name not in turn.offered_by(number) or (is_begun and not tool.idempotent):
        return None
    always_asks = tool.card is not None or call_identity(tool, call) in turn.uncertain
    is_tainted = bool(turn.sources)
    asks = always_asks or turn.services.engine.policy.should_confirm(tool)
    if not asks and (not is_tainted or turn.services.engine.policy.mode == "yolo"):
        return None
    try:
        arguments = tool.validate_args(call.arguments)
        tool.check(arguments, ToolContext(person=turn.person, chosen=turn.chosen_skills))
    except Exception:  # whatever it is, the engine meets it too, and answers for it
        return "engine asks"
    if not asks and not tool.destructive and not leads_elsewhere(arguments, own, tool.input_schema):
        return None  # text of others is in the prompt, but it led the call to no address of theirs
    return NeedsApproval(call, tool, arguments, once=always_asks or is_tainted)


async def _decide(
    turn: TurnContext, key: str, one: NeedsApproval, asked: _Asked, decisions: Decisions
) -> None:
    """Note a call as agreed to or laid aside, or ask about it now. Raises Refused."""
    id, tool = one.call.id, one.tool
    about = [past for past in asked.of_turn if _NUMBERED.sub(r"\1", past.call_key) == key]
    last = about[-1] if about else None
    if last is None:
        if one.may_stand and (tool.name, one.hashes[1]) in asked.standing:
            decisions.agreed[id] = Agreed("always", *one.hashes)
            return
        for past in reversed(asked.of_turn):
            is_over = past.state not in ("open", "yes") and past.choice not in approvals.ASKS_AGAIN
            if is_over and one.is_about(past):
                raise _refused_before(tool, past)
        if any(map(one.is_about, asked.open)):
            said = f"the person was asked about this very call of {tool.name} and has not answered yet"
            hint = "say that the question above still waits for an answer; do not call it again"
            raise Refused(ToolResult.failure("DENIED", said, hint, waits=True))
        if len(asked.open) + len(decisions.questions) >= MOST_OPEN:
            said = f"{tool.name} did not run: {MOST_OPEN} questions wait for this person's answer"
            raise Refused(ToolResult.failure("DENIED", said, "tell the person to answer those first"))
    elif last.state == "open":
        decisions.laid_aside.add(id)
        return
    elif last.choice not in approvals.ASKS_AGAIN:
        if last.state != "yes":
            raise _refused_before(tool, last)
        if (last.arguments_hash, last.tool_hash) == one.hashes:
            decisions.agreed[id] = Agreed(last.choice, *one.hashes, last.subject)
            return
    numbered = key.replace(":", f"#{len(about) + 1}:", 1) if about else key
    shown_again = approvals.ASKS_AGAIN & {past.choice for past in about}
    decisions.questions.append(await _question(turn, numbered, one, shown_again))
    decisions.laid_aside.add(id)


async def _question(
    turn: TurnContext, key: str, one: NeedsApproval, shown_again: Collection[str]
) -> Question:
    language, tool = turn.person.language, one.tool
    if tool.card is not None:
        context = replace(turn.services.contexts.of_turn(turn, tool), shown_again=shown_again)
        card: Card = await tool.card(one.arguments, context)
    else:
        card = call_card(language, tool, one.arguments, turn.tools.sentences(tool))
        card = replace(card, choices=CALL if one.may_stand else ONCE)
    card = replace(card, text=with_sources(language, card.text, turn.sources, turn.tools))
    draft, buttons = question_draft(turn.channel, language, card)
    arguments_hash, tool_hash = one.hashes
    return Question(
        id=new_id("approval"),
        call_key=key,
        tool=tool.name,
        arguments=_canonical(one.arguments),
        arguments_hash=arguments_hash,
        tool_hash=tool_hash,
        subject=card.subject,
        title=card.title,
        choices=buttons,
        draft=draft,
    )


def _canonical(arguments: JSON) -> str:
    # json, not orjson: it takes any integer and any text
    return json.dumps(arguments, sort_keys=True, separators=(",", ":"), default=str)


def _refused_before(tool: Tool, last: Approval) -> Refused:
    said = {
        "no": f"the person said no to {tool.name}",
        "expired": f"nobody answered the question about {tool.name} in time, so it did not run",
        "failed": f"the question about {tool.name} could not be delivered, so it did not run",
    }
    hint = "do not call it again with the same arguments; ask what to do instead"
    refused = said.get(last.state, f"{tool.name} was not agreed to")
    return Refused(ToolResult.failure("DENIED", refused, hint, answer=last.state))
