"""The tool calls of a round: all at once, each with an intent before it and a result after it."""

import asyncio
import time
from collections.abc import Sequence
from sqlite3 import Connection

import orjson

from app.language import say
from app.llm.model import ToolCall
from app.messages import JSON
from app.routing.abilities import Abilities
from app.store import journal
from app.store.database import Database
from app.store.skill_data import NoRoom, SkillStore
from app.tools import ExecutionEngine, Tool, ToolContext, ToolResult
from app.turns.actions import answer_key, signature
from app.turns.run import Run


class ToolCalls:
    """Runs calls through the engine, and knows which must not be run again.

    `data_quota`: bytes that skills may keep for a person, 0 for no limit.
    """

    def __init__(
        self, store: Database, engine: ExecutionEngine, abilities: Abilities, *, data_quota: int = 0
    ) -> None:
        self._store = store
        self._engine = engine
        self._abilities = abilities
        self._data_quota = data_quota

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
        store = None
        if tool is not None:
            store = SkillStore(self._store, run.person.id, tool.category, self._data_quota)
        recorder = _Recorder(self._store, run, number, call.id, begun, store)
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
        self,
        database: Database,
        run: Run,
        number: int,
        call: str,
        begun: bool,
        skill_store: SkillStore | None,
    ) -> None:
        self._database = database
        self._turn = run.opened.id
        self._language = run.person.language
        self._key = f"{number}:{call}"
        self._after = answer_key(number)
        self._begun = begun
        self._skill_store = skill_store
        self.error: Exception | None = None
        """Why a row could not be written."""

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        if not self._begun:  # an idempotent call that a crash cut off has its row already
            await self._add("intent", {"tool": tool.name, "arguments": args})
        self._after = ""  # the intent stands, and so does what it follows from

    async def result(self, result: ToolResult) -> ToolResult:
        refused = await self._add(
            "tool", {"result": result.to_json()}, self._skill_store if result.ok else None
        )
        return refused or result

    async def without_running(self, result: ToolResult) -> ToolResult:
        """Records a result that no run came to."""
        await self._add("tool", {"result": result.to_json()})
        return result

    async def _add(
        self, kind: str, payload: JSON, skill_store: SkillStore | None = None
    ) -> ToolResult | None:
        """Writes a row, with it what the tool stored; gives the failure that was written instead, if any."""
        now = time.time()
        text = orjson.dumps(payload).decode()

        def write(conn: Connection) -> ToolResult | None:
            refused = self._store_with(conn, skill_store)
            row = text if refused is None else orjson.dumps({"result": refused.to_json()}).decode()
            journal.record(conn, self._turn, f"{kind}:{self._key}", kind, row, now, after=self._after)
            return refused

        try:
            return await self._database.tx(write)
        except Exception as error:
            self.error = error
            raise

    def _store_with(self, conn: Connection, skill_store: SkillStore | None) -> ToolResult | None:
        if skill_store is None:
            return None
        try:
            skill_store.apply(conn)
        except NoRoom as full:
            return _not_kept(full, self._language)
        return None


def _interrupted(name: str) -> ToolResult:
    return ToolResult.failure(
        "OUTCOME_UNKNOWN",
        f"{name} was interrupted: it may have happened or not",
        "check whether it happened if a tool can tell; do not repeat it without the person's yes",
        outcome="unknown",
    )


def _not_kept(full: NoRoom, language: str) -> ToolResult:
    if full.code == "QUOTA_EXCEEDED":
        text = say(language, "I could not save it: your data has reached its limit. Delete something first.")
    else:
        text = say(language, "I could not save it: my disk is nearly full. The person who runs me was told.")
    return ToolResult.failure(full.code, text)


def _ask_first(name: str) -> ToolResult:
    return ToolResult.failure(
        "DENIED",
        f"{name} with the same arguments has an unknown outcome already",
        "tell the person that it may have happened, and ask whether to do it again",
    )
