"""Run a turn again as a dry run: the model is asked, tools only say what they would do."""

import time

from app.llm.model import ToolCall
from app.people import Person
from app.store import turn_state
from app.store.database import Connection
from app.store.statistics import day_of
from app.store.turn_state import TurnState
from app.tools.engine import CallTerms
from app.turns.actions import AskModel, CallResult, Reply, Route, RunTools, next_action
from app.turns.model_calls import ask_model, route_turn
from app.turns.state import HISTORY_TURNS, TurnContext, TurnServices


async def replay(services: TurnServices, turn_id: str) -> tuple[TurnContext, str]:
    """Run a turn with what was said before it, as things are now, and return it with its reply.

    Raises RecadoError. The engine of `services` runs dry; nothing is kept but how many tokens it took.
    """
    day = day_of(time.time())

    def read(conn: Connection) -> tuple[TurnState, Person]:
        state = turn_state.replayed_turn(conn, turn_id, HISTORY_TURNS, day)
        return state, services.profiles.known(conn, state.person)

    turn = TurnContext.resume(*await services.store.tx(read), services)
    turn.is_replay = True
    await turn.tools.refresh_for_message()
    while True:
        match next_action(turn.transcript, turn.settings.max_tool_rounds):
            case Route():
                await route_turn(turn)
            case AskModel(number, with_tools):
                await ask_model(turn, number, with_tools=with_tools)
            case RunTools(number, calls, _):
                results = {call.id: await _run(turn, number, call) for call in calls}
                turn.transcript = turn.transcript.with_results(number, results)
            case Reply(text):
                return turn, text


async def _run(turn: TurnContext, number: int, call: ToolCall) -> CallResult:
    services, tool = turn.services, turn.tools.tool(call.name)
    receiver = tool if tool is not None and tool.wants_context else None
    context, terms = services.contexts.of_turn(turn, receiver), CallTerms(offered=turn.offered_by(number))
    result = await services.engine.execute_tool_call(call.name, call.arguments, context, terms)
    return CallResult.of(call.name, result, result.to_json(), bundled=turn.tools.is_bundled(call.name))
