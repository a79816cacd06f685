"""Choose the tools of a turn, and learn from a finished one which words asked for which tools."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import structlog

from app.llm.model import Model
from app.messages import JSON, in_own_words
from app.routing import Intent, IntentRequest, classify_intent
from app.routing.feedback import stems_of
from app.routing.tool_catalog import Selection
from app.routing.tool_search import SEARCH_TOOLS
from app.search.words import spaced, words
from app.store.traces import ModelCall
from app.text import Private
from app.tools.masking import mask_text
from app.turns.actions import Round, Routed
from app.turns.prompt import classifier_trace
from app.turns.state import RECENT_EXCHANGES, TurnContext
from app.turns.taint import message_sources, result_sources

log = structlog.get_logger(__name__)

MOST_TOOLS = 3  # a message that needed more says little about any of them
MOST_STEMS = 24
LONGEST_MESSAGE = 400  # characters; a longer message is material, not a way to ask for something
LEAST_STEMS_OF_ANSWER = 4  # a shorter message after our question may be its answer, meaningless without it
_ADDRESS = re.compile(r"\S+://\S+")
_SECRETS = spaced(
    """
    password passwords passphrase passcode pin cvv cvc otp token secret credential credentials
    contrasena contrasenas clave claves secreto credencial credenciales senha senhas segredo
    """
)


@dataclass(frozen=True, slots=True)
class RoutingFeedback:
    """Stems of a message, and the tools that did what it asked for; empty when nothing is learned."""

    tools: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()


async def route_turn(turn: TurnContext, model: Model) -> tuple[Routed, JSON, ModelCall | None]:
    """Classify the intent and choose the tools; return them, the journal's payload and the trace."""
    started = time.monotonic()
    classified = await classify_intent(model, _request(turn), turn.tools.index, turn.tools.skill_index)
    if classified.problem:
        problem = Private(mask_text(classified.problem))
        log.warning("classifier failed", turn=turn.id, person=turn.person.id, problem=problem)
    intent = classified.intent
    choice = _choose(turn, intent)
    row: JSON = {
        "categories": intent.categories,
        "tools": choice.tools,
        "skills": choice.skills,
        "shown": choice.shown,
        "phrases": intent.phrases,
        "source": intent.source,
        "reasons": [one.row for one in choice.reasons],
        "catalog": turn.tools.catalog.version,
    }
    routed = Routed(
        intent.categories, choice.tools, choice.skills, choice.shown, goes_on=intent.source == "continued"
    )
    if classified.answer is None:
        return routed, row, None
    seconds = time.monotonic() - started
    return (
        routed,
        row,
        classifier_trace(classified.prompt, classified.answer, seconds, turn.tools.catalog.hash),
    )


def routing_feedback(turn: TurnContext) -> RoutingFeedback:
    """Return what an answered turn teaches.

    Nothing is learned from words that are not all the person's own, that were not written now, that continue
    or answer, or that seem to hold a secret, nor from calls made after text of others had come into the turn.
    """
    tools = tuple(dict.fromkeys(_successful_tools(turn)))
    if turn.schedule or not tools or len(tools) > MOST_TOOLS:
        return RoutingFeedback()
    stems = _stems(turn)
    return RoutingFeedback(tools, stems) if stems else RoutingFeedback()


def _request(turn: TurnContext) -> IntentRequest:
    return IntentRequest(
        said=turn.said,
        person=turn.person,
        categories=() if turn.in_group else turn.tools.categories(turn.person),
        earlier=turn.state.exchanges[-RECENT_EXCHANGES:],
        asked=turn.was_asked,
        sticky=turn.state.sticky_categories,
        timeout=turn.limits.classifier_seconds,
        catalog=turn.tools.catalog.hash,
        learned=turn.learned,
    )


def _choose(turn: TurnContext, intent: Intent) -> Selection:
    if turn.in_group:
        return Selection()
    return turn.tools.choose(
        intent,
        turn.said,
        turn.person,
        sticky=turn.state.sticky_tools,
        active=turn.state.active_skills,
        always=(SEARCH_TOOLS,),
        learned=turn.learned,
        limit=turn.limits.tools_per_call,
    )


def _successful_tools(turn: TurnContext) -> Iterator[str]:
    for one in _untainted_rounds(turn):
        for call, result in one.finished:
            if result.changed_something and turn.tools.is_learned(call.name):
                yield call.name


def _untainted_rounds(turn: TurnContext) -> Iterator[Round]:
    """Yield the rounds that were asked for before text of others came into the turn.

    Text of others from earlier turns does not count here: it would be there for days.
    """
    if message_sources(turn.state):
        return
    rounds = turn.transcript.rounds
    offered = [turn.offered_by(number) for number in range(len(rounds))]
    for number, one in enumerate(rounds):
        if result_sources(rounds[:number], offered, turn.tools):
            return
        yield one


def _stems(turn: TurnContext) -> tuple[str, ...]:
    members = turn.state.members
    said = "\n".join(one.text for one in members)
    if turn.routed.goes_on or len(said) > LONGEST_MESSAGE or _holds_secret(said):
        return ()
    if not all(in_own_words(one.kind, one.payload) for one in members):
        return ()
    stems = stems_of(_ADDRESS.sub(" ", said))
    if len(stems) > MOST_STEMS or (turn.was_asked and len(stems) < LEAST_STEMS_OF_ANSWER):
        return ()
    return tuple(stems)


def _holds_secret(said: str) -> bool:
    return mask_text(said) != said or not _SECRETS.isdisjoint(words(said))
