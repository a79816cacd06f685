"""Make the model calls of a turn: for what it is about and its tools, and for its answers."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from hashlib import blake2b

import orjson
import structlog

from app.llm.model import ModelAnswer, ModelError, ModelRequest
from app.llm.reading import calls_in_text, without_marked_calls
from app.llm.smalltalk import asks_nothing
from app.messages import JSON
from app.routing import IntentRequest, classify_intent
from app.routing.tool_catalog import SEARCH_TOOLS, Selection
from app.store.journal import ModelCall
from app.store.turn_state import Exchange, TurnState
from app.text import Private, mask_text
from app.turns.actions import Round, Transcript, answer_row, unique_calls
from app.turns.finalizer import cut_short
from app.turns.prompt import SHORTER, Message
from app.turns.state import TurnContext

log = structlog.get_logger(__name__)

CALLS_PER_ROUND = 16
RECENT_EXCHANGES = 5  # that a message may go on with


async def route_turn(turn: TurnContext) -> None:
    """Classify the intent and choose the tools; the journal keeps both, so a restart offers the same."""
    turn.tokens_left()  # raises when not even the bare conversation could be shown to the model
    started = time.monotonic()
    tools, snapshot = turn.tools, turn.tools.snapshot
    last = turn.state.exchanges[-1:]
    request = IntentRequest(
        said=turn.said,
        person=turn.person,
        categories=() if turn.in_group else tools.categories(turn.person),
        earlier=turn.state.exchanges[-RECENT_EXCHANGES:],
        # not "how can I help?"
        asked=any(one.reply.rstrip().endswith("?") and not asks_nothing(one.said) for one in last),
        sticky=turn.state.sticky_categories,
        timeout=turn.settings.classifier_timeout,
    )
    classified = await classify_intent(turn.services.model, request, tools.index, tools.skill_index)
    if classified.problem:
        problem = Private(mask_text(classified.problem))
        log.warning("classifier failed", turn=turn.id, person=turn.person.id, problem=problem)
    intent, choice = classified.intent, Selection()
    if not turn.in_group:
        choice = tools.choose(
            intent,
            turn.said,
            turn.person,
            sticky=turn.state.sticky_tools,
            active=turn.state.active_skills,
            always=(SEARCH_TOOLS,),
            limit=turn.settings.max_tools_per_call,
        )
    about = {"phrases": intent.phrases, "source": intent.source, "catalog": snapshot.version}
    call = None
    if classified.answer is not None:
        call = _traced("route", classified.prompt, classified.answer, started, snapshot.hash)
    await turn.record("route", "route", {**asdict(choice), **about}, call)
    turn.transcript = Transcript(choice)


async def ask_model(turn: TurnContext, number: int, *, with_tools: bool) -> None:
    """Make one model call, recorded before anything follows from it."""
    turn.build_prompt()
    tools = turn.prompt.tools if with_tools else []
    offered, started = turn.offered if with_tools else (), time.monotonic()
    answer = await _complete(turn, tools)
    text, calls = answer.text, answer.calls if offered else ()
    if not calls:
        calls = calls_in_text(text, offered, turn.prompt.foreign_texts)
        text = "" if calls else without_marked_calls(text)
        text = cut_short(text, turn.person.language) if text and answer.cut else text
    taken = [call.id for one in turn.transcript.rounds for call in one.calls]
    calls = unique_calls(calls[:CALLS_PER_ROUND], taken)
    shown = [{"tools": tools}, *turn.prompt.messages] if tools else turn.prompt.messages
    trace = _traced(f"llm:{number}", shown, answer, started, turn.tools.snapshot.hash)
    asked = Round(text, calls, attached=answer.attached if calls else {})
    await turn.record(trace.key, "llm", answer_row(asked), trace)
    turn.transcript = turn.transcript.with_round(asked)


async def _complete(turn: TurnContext, tools: list[Message]) -> ModelAnswer:
    """Ask the model, again with a shorter prompt when its window has no room for the whole one."""
    while True:
        request = ModelRequest(
            "answer",
            turn.prompt.messages,
            tools,
            said=turn.said,
            person=turn.person,
            earlier=_earlier_exchanges(turn.state),
            max_tokens=turn.tokens_left(tools),
            waits=bool(turn.state.open_questions),
        )
        try:
            return await turn.patience.complete(turn.services.model, request)
        except ModelError as error:
            if not error.is_too_long or turn.prompt.steps == len(SHORTER):
                raise
            turn.prompt = replace(turn.prompt, steps=turn.prompt.steps + 1)
            log.warning("the prompt is too long for the model", turn=turn.id)


def _earlier_exchanges(state: TurnState) -> tuple[Exchange, ...]:
    """Return the exchanges that a message may go on from: none where it quotes an older one."""
    last = "".join(f"{one.said}\n{one.reply}" for one in state.exchanges[-1:])
    wamids = [str(one.payload.get("quoted") or "") for one in state.members if one.kind != "edit"]
    quoted = [state.quoted.get(wamid) for wamid in wamids if wamid]
    if any(one is None or one.text not in last for one in quoted):
        return (Exchange("", "", 0.0),)  # () would mean that nothing was said before
    return state.exchanges[-RECENT_EXCHANGES:]


def _traced(key: str, prompt: Sequence[JSON], answer: ModelAnswer, started: float, catalog: str) -> ModelCall:
    """Return the trace of a model call; the parts of its prompt are kept once each, by their hashes."""
    bodies = [orjson.dumps(part) for part in prompt]
    parts = tuple((blake2b(body, digest_size=12).hexdigest(), body.decode()) for body in bodies)
    seconds = time.monotonic() - started
    return ModelCall(key, answer.model, parts, answer.tokens, seconds, time.time(), catalog)
