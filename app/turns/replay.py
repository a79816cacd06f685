"""Run a turn again as a dry run: the model is asked, tools only say what they would do."""

import time
from dataclasses import dataclass

from app.llm.model import ToolCall
from app.people import Person
from app.store import limits, turn_state
from app.store.database import Connection
from app.store.statistics import day_of
from app.store.turn_state import TurnState
from app.tools import ExecutionEngine
from app.tools.engine import CallTerms
from app.turns.actions import AskModel, CallResult, Reply, Round, Route, RunTools, next_action
from app.turns.contexts import ToolContexts
from app.turns.routing import route_turn
from app.turns.state import HISTORY_TURNS, TurnContext, TurnServices
from app.turns.turn import complete, read_answer


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a dry run: the tools on offer, the calls with their results, the reply."""

    offered: tuple[str, ...]
    calls: list[tuple[ToolCall, CallResult]]
    reply: str


class Replay:
    """Runs turns again; its `engine` runs dry. Nothing of them is kept but how many tokens they took."""

    def __init__(self, services: TurnServices, engine: ExecutionEngine, contexts: ToolContexts) -> None:
        self._services = services
        self._engine = engine
        self._contexts = contexts

    async def run(self, turn_id: str) -> Replayed:
        """Run a turn with what was said before it, as things are now. Raises RecadoError."""
        services, day = self._services, day_of(time.time())

        def read(conn: Connection) -> tuple[TurnState, Person]:
            state = turn_state.replayed_turn(conn, turn_id, HISTORY_TURNS, day)
            return state, services.profiles.known(conn, state.person)

        turn = TurnContext.resume(*await services.store.tx(read), services)
        await turn.tools.refresh_for_message()
        while True:
            turn.build_prompt()
            match next_action(turn.transcript, turn.settings.max_tool_rounds):
                case Route():
                    routed, _, call = await route_turn(turn, services.model)
                    if call is not None:
                        await self._count(call.tokens.total)
                    turn.transcript = turn.transcript.with_route(routed)
                case AskModel(_, with_tools):
                    answer = await complete(turn, services, turn.prompt.tools.schemas if with_tools else [])
                    await self._count(answer.tokens.total)
                    text, calls = read_answer(turn, answer, turn.offered if with_tools else ())
                    turn.transcript = turn.transcript.with_round(
                        Round(text, calls, attached=answer.attached if calls else {})
                    )
                case RunTools(number, calls, _):
                    results = {call.id: await self._run(turn, number, call) for call in calls}
                    turn.transcript = turn.transcript.with_results(number, results)
                case Reply(text):
                    return Replayed(turn.offered, turn.transcript.finished, text)

    async def _count(self, tokens: int) -> None:
        """Count tokens towards the limits of the whole assistant, not towards the person's."""
        now = time.time()
        await self._services.store.tx(lambda conn: limits.add(conn, "tokens", tokens, now))

    async def _run(self, turn: TurnContext, number: int, call: ToolCall) -> CallResult:
        tool = turn.tools.tool(call.name)
        context = self._contexts.of_turn(turn, tool if tool is not None and tool.wants_context else None)
        terms = CallTerms(offered=turn.offered_by(number))
        result = await self._engine.execute_tool_call(call.name, call.arguments, context, terms)
        return CallResult.of(call.name, result, result.to_json(), bundled=turn.tools.is_bundled(call.name))
