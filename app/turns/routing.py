"""Choose the tools of a turn."""

import time
from dataclasses import asdict

import structlog

from app.llm.model import Model
from app.llm.smalltalk import asks_nothing
from app.messages import JSON
from app.routing import IntentRequest, classify_intent
from app.routing.tool_catalog import SEARCH_TOOLS, Selection
from app.store.journal import ModelCall
from app.text import Private, mask_text
from app.turns.actions import Routed
from app.turns.prompt import traced_call
from app.turns.state import RECENT_EXCHANGES, TurnContext

log = structlog.get_logger(__name__)


async def route_turn(turn: TurnContext, model: Model) -> tuple[Routed, JSON, ModelCall | None]:
    """Classify the intent and choose the tools; return them, the journal's payload and the trace."""
    started = time.monotonic()
    tools, catalog = turn.tools, turn.tools.catalog
    request = IntentRequest(
        said=turn.said,
        person=turn.person,
        categories=() if turn.in_group else tools.categories(turn.person),
        earlier=turn.state.exchanges[-RECENT_EXCHANGES:],
        asked=any(
            one.reply.rstrip().endswith("?") and not asks_nothing(one.said)  # not "how can I help?"
            for one in turn.state.exchanges[-1:]
        ),
        sticky=turn.state.sticky_categories,
        timeout=turn.settings.classifier_timeout,
    )
    classified = await classify_intent(model, request, tools.index, tools.skill_index)
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
    row: JSON = {
        "categories": intent.categories,
        "tools": choice.tools,
        "skills": choice.skills,
        "shown": choice.shown,
        "phrases": intent.phrases,
        "source": intent.source,
        "reasons": list(map(asdict, choice.reasons)),
        "catalog": tools.catalog.version,
    }
    call = None
    if classified.answer is not None:
        seconds = time.monotonic() - started
        call = traced_call("route", classified.prompt, classified.answer, seconds, catalog.hash)
    return Routed(intent.categories, choice.tools, choice.skills, choice.shown), row, call
