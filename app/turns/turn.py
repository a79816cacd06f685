"""Run one turn: from a burst of messages to a reply, each step written down before the next."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import structlog

from app.llm.model import ModelError, ToolCall
from app.messages import Channel
from app.store.turns import MAX_ATTEMPTS
from app.tasks import end_tasks, start_task
from app.turns import finalizer
from app.turns.actions import AskModel, Reply, Route, RunTools, next_action
from app.turns.answer_check import AnswerFault, find_fault
from app.turns.approvals import authorize, park
from app.turns.inbound import command_answer
from app.turns.model_calls import ask_model, route_turn
from app.turns.prompt import SAYS_NOTHING
from app.turns.state import OverBudget, TurnContext, TurnServices, load_turn
from app.turns.tool_calls import run_calls

log = structlog.get_logger(__name__)

TYPING_SECONDS = 20.0  # WhatsApp takes the sign away after 25 s
TYPING_LIMIT_SECONDS = 5.0  # of the request that shows it


class TurnRunner:
    """Runs turns. It keeps nothing about any of them: all that is known of a turn stands in its rows."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services
        self._typing: set[asyncio.Task[None]] = set()  # shows that answers are being written

    async def run(self, turn_id: str) -> None:
        """Run a turn from wherever its journal stands to its end. Raises what no reply can mend."""
        now, profiles = time.time(), self._services.profiles
        state, person = await self._services.store.tx(lambda conn: load_turn(conn, turn_id, profiles, now))
        turn = TurnContext.resume(state, person, self._services)
        last = turn.state.members[-1] if turn.state.members else None
        if turn.state.attempts > MAX_ATTEMPTS:
            return await finalizer.abandoned(turn)
        if last is not None and last.command:
            text = await command_answer(turn, last.command, last.text)
            return await finalizer.end(turn, text, "command", fresh=last.command == "new")
        with self._typing_shown(turn.channel, last.wamid if last is not None else ""):
            try:
                await self.execute_tool_loop(turn)
            except ModelError as error:
                await finalizer.model_failed(turn, error)
            except OverBudget:
                await finalizer.over_budget(turn)

    async def close(self) -> None:
        await end_tasks(*self._typing)

    async def execute_tool_loop(self, turn: TurnContext) -> None:
        """Route, ask, run tools, ask again, reply: each step as the journal says it is due."""
        await turn.tools.refresh_for_message()
        turn.build_prompt()
        while True:
            match next_action(turn.transcript, turn.settings.max_tool_rounds):
                case Route():
                    await route_turn(turn)
                case AskModel(number, with_tools):
                    await ask_model(turn, number, with_tools=with_tools)
                case RunTools(number, calls, begun):
                    if not await self._run_tools(turn, number, calls, begun):
                        return None
                case Reply(text) if turn.schedule == "watch" and _is_nothing(turn, text):
                    return await finalizer.silent(turn)
                case Reply(text):
                    shown = text[: finalizer.LONGEST_REPLY]
                    fault = await asyncio.to_thread(find_fault, turn, shown)
                    if fault is not None and turn.may_answer_again:
                        await self._correct(turn, fault)
                        continue
                    text = text if fault is None else fault.honest
                    return await finalizer.end(turn, text, "answered")

    async def _correct(self, turn: TurnContext, fault: AnswerFault) -> None:
        """Have the model answer again, told what is wrong with its answer."""
        log.info("an answer is not kept", turn=turn.id, kind=fault.kind)
        number = len(turn.transcript.rounds)
        turn.corrections[number - 1] = fault.correction
        may_call = fault.kind == "not done" and number < turn.settings.max_tool_rounds
        await ask_model(turn, number, with_tools=may_call)

    async def _run_tools(
        self, turn: TurnContext, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
    ) -> bool:
        """Run what may run; return False when the turn waits for a person's answer.

        A call whose tool was replaced meanwhile stays unfinished, and is authorized again.
        """
        decisions = await authorize(turn, number, calls, begun)
        results = await run_calls(turn, number, calls, begun, decisions)
        turn.transcript = turn.transcript.with_results(number, results)
        if decisions.laid_aside:
            await park(turn, decisions)
            return False
        return True

    @contextmanager
    def _typing_shown(self, channel: Channel, message_id: str) -> Iterator[None]:
        """Mark the message read and show the sign until the block ends; a quick turn does not cut it off."""
        ended = asyncio.Event()
        if message_id:
            start_task(self._typing, _show_typing(channel, message_id, ended))
        try:
            yield
        finally:
            ended.set()


def _is_nothing(turn: TurnContext, text: str) -> bool:
    """Return True if a watch has nothing to tell; the built-in model understands no watch."""
    return turn.services.offline or text.strip(" \n\t.!*_`\"'").upper() == SAYS_NOTHING


async def _show_typing(channel: Channel, message_id: str, ended: asyncio.Event) -> None:
    while not ended.is_set():
        try:
            async with asyncio.timeout(TYPING_LIMIT_SECONDS):
                await channel.typing(message_id)
        except TimeoutError:
            log.debug("typing was not shown in time")
        with suppress(TimeoutError):
            async with asyncio.timeout(TYPING_SECONDS):
                await ended.wait()
