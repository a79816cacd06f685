"""Run one turn: from a burst of messages to a reply, each step written down before the next."""

import asyncio
import time
from collections.abc import Sequence

import structlog

from app.llm.model import ModelAnswer, ModelError, ModelRequest, ToolCall
from app.llm.reading import calls_in_text, without_marked_calls
from app.messages import JSON
from app.store.media import MediaFolder
from app.store.turns import MAX_ATTEMPTS
from app.tools import ExecutionEngine
from app.tools.documents import Documents
from app.turns.actions import AskModel, Reply, Round, Route, RunTools, answer_row, next_action, unique_calls
from app.turns.answer_check import AnswerFault, find_fault
from app.turns.approvals import Authorizer
from app.turns.commands import command_answer
from app.turns.contexts import ToolContexts
from app.turns.finalizer import LONGEST_REPLY, TurnFinalizer, cut_short
from app.turns.prompt import SAYS_NOTHING, SHORTER
from app.turns.routing import route_turn
from app.turns.state import OverBudget, TurnContext, TurnServices, earlier_exchanges, load_turn
from app.turns.tool_calls import ToolCalls
from app.turns.typing_indicator import TypingIndicator

log = structlog.get_logger(__name__)

CALLS_PER_ROUND = 16


class TurnRunner:
    """Runs turns. It keeps nothing about any of them: all that is known of a turn stands in its rows."""

    def __init__(
        self,
        services: TurnServices,
        engine: ExecutionEngine,
        contexts: ToolContexts,
        media: MediaFolder,
        documents: Documents,
    ) -> None:
        self._services = services
        self._tool_calls = ToolCalls(services, engine, contexts, media, documents)
        self._authorizer = Authorizer(services, engine, contexts, asks=not services.settings.dry_run)
        self._finalizer = TurnFinalizer(services)
        self._typing = TypingIndicator()

    async def run(self, turn_id: str) -> None:
        """Run a turn from wherever its journal stands to its end. Raises what no reply can mend."""
        now, profiles = time.time(), self._services.profiles
        state, person = await self._services.store.tx(lambda conn: load_turn(conn, turn_id, profiles, now))
        turn = TurnContext.resume(state, person, self._services)
        last = turn.state.members[-1] if turn.state.members else None
        if turn.state.attempts > MAX_ATTEMPTS:
            return await self._finalizer.abandoned(turn, "it failed three times")
        if last is not None and last.command:
            text = await command_answer(turn, last.command, last.text, self._services)
            return await self._finalizer.command_answered(turn, text, fresh=last.command == "new")
        with self._typing.shown(turn.channel, last.wamid if last is not None else ""):
            try:
                await self.execute_tool_loop(turn)
            except ModelError as error:
                await self._finalizer.model_failed(turn, error)
            except OverBudget:
                await self._finalizer.over_budget(turn)

    async def close(self) -> None:
        await self._typing.close()

    async def execute_tool_loop(self, turn: TurnContext) -> None:
        """Route, ask, run tools, ask again, reply: each step as the journal says it is due."""
        await turn.tools.refresh_for_message()
        turn.build_prompt()
        while True:
            match next_action(turn.transcript, turn.settings.max_tool_rounds):
                case Route():
                    await self._route(turn)
                case AskModel(number, with_tools):
                    await self._ask(turn, number, with_tools)
                case RunTools(number, calls, begun):
                    if not await self._run_tools(turn, number, calls, begun):
                        return None
                case Reply(text) if turn.schedule == "watch" and self._is_nothing(text):
                    return await self._finalizer.silent(turn)
                case Reply(text):
                    shown = text[:LONGEST_REPLY]
                    fault = await asyncio.to_thread(find_fault, turn, shown, offline=self._services.offline)
                    if fault is not None and turn.may_answer_again:
                        await self._correct(turn, fault)
                        continue
                    return await self._finalizer.answered(turn, text if fault is None else fault.honest)

    def _is_nothing(self, text: str) -> bool:
        """Return True if a watch has nothing to tell; the built-in model understands no watch."""
        return self._services.offline or text.strip(" \n\t.!*_`\"'").upper() == SAYS_NOTHING

    async def _route(self, turn: TurnContext) -> None:
        """Classify the intent and choose the tools; the journal keeps both, so a restart offers the same."""
        turn.tokens_left()  # raises when not even the bare conversation could be shown to the model
        routed, row, call = await route_turn(turn, self._services.model)
        await turn.record(self._services.store, "route", "route", row, call)
        turn.transcript = turn.transcript.with_route(routed)

    async def _ask(self, turn: TurnContext, number: int, with_tools: bool) -> None:
        """Make one model call, recorded before anything follows from it."""
        turn.build_prompt()
        tools = turn.prompt.tools.schemas if with_tools else []
        started = time.monotonic()
        answer = await complete(turn, self._services, tools)
        text, calls = read_answer(turn, answer, turn.offered if with_tools else ())
        asked = Round(text, calls, attached=answer.attached if calls else {})
        key = f"llm:{number}"
        call = turn.prompt.traced(key, answer, time.monotonic() - started, with_tools=with_tools)
        await turn.record(self._services.store, key, "llm", answer_row(asked), call)
        turn.transcript = turn.transcript.with_round(asked)

    async def _correct(self, turn: TurnContext, fault: AnswerFault) -> None:
        """Have the model answer again, told what is wrong with its answer."""
        log.info("an answer is not kept", turn=turn.id, kind=fault.kind)
        number = len(turn.transcript.rounds)
        turn.corrections[number - 1] = fault.correction
        await self._ask(
            turn, number, with_tools=fault.kind == "not done" and number < turn.settings.max_tool_rounds
        )

    async def _run_tools(
        self, turn: TurnContext, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
    ) -> bool:
        """Run what may run; return False when the turn waits for a person's answer.

        A call whose tool was replaced meanwhile stays unfinished, and is authorized again.
        """
        decisions = await self._authorizer.authorize(turn, number, calls, begun)
        results = await self._tool_calls.run(turn, number, calls, begun, decisions)
        turn.transcript = turn.transcript.with_results(number, results)
        if decisions.laid_aside:
            await self._authorizer.park(turn, decisions)
            return False
        return True


async def complete(turn: TurnContext, services: TurnServices, tools: list[dict[str, JSON]]) -> ModelAnswer:
    """Ask the model, again with a shorter prompt when its window has no room for the whole one."""
    while True:
        request = ModelRequest(
            "answer",
            turn.prompt.messages,
            tools,
            said=turn.said,
            person=turn.person,
            earlier=earlier_exchanges(turn.state),
            max_tokens=turn.tokens_left(tools),
            # all or none: an answer that leaves some out would be false
            facts=() if any(fact.outside for fact in turn.facts) else tuple(fact.text for fact in turn.facts),
            waits=bool(turn.state.open_questions),
        )
        try:
            return await turn.patience.complete(services.model, request)
        except ModelError as error:
            if not error.is_too_long or turn.shortened == len(SHORTER):
                raise
            turn.shortened += 1
            turn.build_prompt()
            log.warning("the prompt is too long for the model", turn=turn.id)


def read_answer(
    turn: TurnContext, answer: ModelAnswer, offered: Sequence[str]
) -> tuple[str, tuple[ToolCall, ...]]:
    """Return the answer's text and calls; calls written as text count where they may."""
    text, calls = answer.text, answer.calls if offered else ()
    if not calls:
        calls = calls_in_text(text, offered, turn.prompt.foreign_texts)
        text = "" if calls else without_marked_calls(text)
        text = cut_short(text, turn.person.language) if text and answer.cut else text
    taken = [call.id for one in turn.transcript.rounds for call in one.calls]
    return text, unique_calls(calls[:CALLS_PER_ROUND], taken)
