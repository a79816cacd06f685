"""The tool calls of a round: all at once, each with an intent before it and a result after it."""

import asyncio
import time
from collections.abc import Sequence
from sqlite3 import Connection

import orjson

from app.llm.model import ToolCall
from app.messages import JSON
from app.routing.abilities import Abilities
from app.store import journal
from app.store.database import Database
from app.store.skill_data import SkillStore
from app.tools import ExecutionEngine, Tool, ToolContext, ToolResult
from app.turns.actions import signature
from app.turns.run import Run


class ToolCalls:
    """Runs calls through the engine, and knows which must not be run again."""

    def __init__(self, store: Database, engine: ExecutionEngine, abilities: Abilities) -> None:
        self._store = store
        self._engine = engine
        self._abilities = abilities

    async def run(
        self, run: Run, number: int, calls: Sequence[ToolCall], begun: frozenset[str]
    ) -> dict[str, str]:
        """What the model reads of each call of round `number`, by call id.

        `begun` are calls that have an intent and no result: a crash left their outcome unknown.
        """
        results = await asyncio.gather(
            *(self._run_one(run, number, call, call.id in begun) for call in calls)
        )
        return {call.id: result.to_json() for call, result in zip(calls, results, strict=True)}

    async def _run_one(self, run: Run, number: int, call: ToolCall, begun: bool) -> ToolResult:
        tool = self._abilities.tool(call.name)
        key = f"{number}:{call.id}"
        store = SkillStore(self._store, run.person.id, tool.category) if tool is not None else None
        recorder = _Recorder(self._store, run.opened.id, key, begun, store)
        if begun and not (tool is not None and tool.idempotent):
            return await recorder.without_running(_interrupted(call.name))
        if signature(call) in run.transcript.uncertain:
            return await recorder.without_running(_ask_first(call.name))
        context = self._context(run, tool, key, recorder, store)
        result = await self._engine.execute_tool_call(call.name, call.arguments, context)
        if recorder.error is not None:  # the engine goes on without its record; a turn must not
            raise recorder.error
        return result

    def _context(
        self, run: Run, tool: Tool | None, key: str, recorder: "_Recorder", store: SkillStore | None
    ) -> ToolContext:
        blocking = store is not None and tool is not None and not tool.is_async
        return ToolContext(
            person=run.person,
            conversation=run.opened.conversation.id,
            store=store.sync() if store is not None and blocking else store,
            settings=self._abilities.settings(tool.category) if tool is not None else {},
            idempotency_key=f"{run.opened.id}:{key}",
            channel=run.opened.conversation.channel,
            offered=frozenset(run.routed.tools),
            recorder=recorder,
        )


class _Recorder:
    """Writes one call's intent and result; what the tool stored commits with the result."""

    def __init__(
        self, database: Database, turn: str, key: str, begun: bool, skill_store: SkillStore | None
    ) -> None:
        self._database = database
        self._turn = turn
        self._key = key
        self._begun = begun
        self._skill_store = skill_store
        self.error: Exception | None = None
        """Why a row could not be written."""

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        if not self._begun:  # an idempotent call that a crash cut off has its row already
            await self._add("intent", {"tool": tool.name, "arguments": args})

    async def result(self, result: ToolResult) -> None:
        await self._add("tool", {"result": result.to_json()}, self._skill_store if result.ok else None)

    async def without_running(self, result: ToolResult) -> ToolResult:
        """Records a result that no run came to."""
        await self._add("tool", {"result": result.to_json()})
        return result

    async def _add(self, kind: str, payload: JSON, skill_store: SkillStore | None = None) -> None:
        now = time.time()
        text = orjson.dumps(payload).decode()

        def write(conn: Connection) -> None:
            journal.record(conn, self._turn, f"{kind}:{self._key}", kind, text, now)
            if skill_store is not None:
                skill_store.apply(conn)

        try:
            await self._database.tx(write)
        except Exception as error:
            self.error = error
            raise


def _interrupted(name: str) -> ToolResult:
    return ToolResult.failure(
        "OUTCOME_UNKNOWN",
        f"{name} was interrupted: it may have happened or not",
        "check whether it happened if a tool can tell; do not repeat it without the person's yes",
        outcome="unknown",
    )


def _ask_first(name: str) -> ToolResult:
    return ToolResult.failure(
        "DENIED",
        f"{name} with the same arguments has an unknown outcome already",
        "tell the person that it may have happened, and ask whether to do it again",
    )
