"""Tool calls by the holder of the administrator's token, in an owner's name and in no conversation."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from app.channels.access import AccessPolicy
from app.errors import StoreError
from app.llm.model import ToolCall
from app.messages import JSON
from app.people import Conversation, Person
from app.store import journal, people
from app.store.database import Connection, Database, new_id
from app.store.journal import UncertainCall
from app.store.skill_data import SkillStore
from app.tools import NoTTYError, Tool, ToolResult
from app.tools.engine import CallTerms
from app.turns.approvals import call_identity
from app.turns.state import TurnServices
from app.turns.tool_calls import CallRecorder, is_unknown

SOURCE = "MCP"
"""The source of such a call's words: a model outside wrote them, after content that we cannot see."""


async def refuse_confirmation(name: str, args: dict[str, JSON]) -> bool:
    """Refuse a call that needs a yes: the caller is a program."""
    raise NoTTYError(
        f"{name} needs a person's yes, which nobody can give here: ask the assistant for it in its chat, "
        "or let every tool run unasked with CONFIRMATION_MODE=yolo"
    )


class OperatorCalls:
    """The tools of our skills, and calls of them.

    Tools of other MCP servers are not passed on but where `of_servers`, nor are tools that have a card of
    their own.
    """

    def __init__(self, services: TurnServices, access: AccessPolicy, *, of_servers: bool = False) -> None:
        self._services = services
        self._abilities = services.tools
        self._access = access
        self._of_servers = of_servers
        self._locks = WeakValueDictionary[UncertainCall, asyncio.Lock]()

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the tools of skills that have no card of their own."""
        return [
            tool
            for tool in self._abilities.registry.list_all()
            if tool.card is None and (self._of_servers or self._abilities.skill(tool.category) is not None)
        ]

    async def refresh(self) -> None:
        """Load what changed on disk."""
        await self._abilities.refresh()

    async def call(self, name: str, arguments: dict[str, JSON]) -> ToolResult:
        """Run a call and return its result; never raise.

        The same call waits for the one before it, because that outcome decides if it may run.
        """
        turn = new_id("turn")
        call = call_identity(self._abilities.tool(name), ToolCall(turn, name, arguments))
        lock = self._locks.setdefault(call, asyncio.Lock())
        try:
            async with lock:
                return await self._run(turn, call, name, arguments)
        except StoreError as error:
            return ToolResult.failure("UNAVAILABLE", f"{name} did not run: {error}", "try again later")

    async def _run(self, turn: str, call: UncertainCall, name: str, arguments: dict[str, JSON]) -> ToolResult:
        now = time.time()

        def enter(conn: Connection) -> tuple[Conversation, Person, bool]:
            owner, where = people.acting_owner(conn, self._access.access_rules(self._access.realm), now)
            person = self._services.profiles.known(conn, owner)
            return where, person, call in journal.uncertain_calls(conn, person.id)

        database, contexts = self._services.store, self._services.contexts
        where, person, is_uncertain = await database.tx(enter)
        tool = self._abilities.tool(name)
        store = None if tool is None else contexts.store_for(tool, person.id, outside=True)
        context = replace(
            contexts.make(tool, store),
            person=person,
            conversation=where.id,
            channel=where.channel,
            idempotency_key=turn,
            sources=(SOURCE,),
        )
        terms = CallTerms(
            offered=frozenset(one.name for one in self.tools),
            must_ask=is_uncertain,
            recorder=_Recorder(database, turn, where, person, (call, arguments), store),
        )
        return await self._services.engine.execute_tool_call(name, arguments, context, terms)


class _Recorder(CallRecorder):
    """Writes the rows of an administrator's call, in a turn that is done.

    A crash or a cancellation leaves the outcome of a call that is not idempotent as unknown.
    """

    def __init__(
        self,
        database: Database,
        turn: str,
        owner: Conversation,
        person: Person,
        asked: tuple[UncertainCall, dict[str, JSON]],
        store: SkillStore | None,
    ) -> None:
        super().__init__(database, person, store)
        self._turn = turn
        self._conversation = owner
        self._call, self._arguments = asked
        self._noted = False

    async def intent(self, tool: Tool, args: dict[str, JSON]) -> None:
        self._noted = not (tool.idempotent or tool.harmless)

        def write(conn: Connection) -> None:
            self._record(conn, "intent", {"tool": tool.name, "arguments": args})
            if self._noted:
                journal.mark_uncertain(conn, self._person.id, self._call, time.time())

        await self._database.tx(write)

    def _write_result(self, conn: Connection, result: ToolResult, text: str) -> None:
        self._record(conn, "tool", {"result": text, "tool": self._call[0], "arguments": self._arguments})
        if self._noted or is_unknown(result):
            self._note_outcome(conn, self._call, result)

    def _record(self, conn: Connection, kind: str, row: dict[str, JSON]) -> None:
        journal.record_admin_call(conn, self._turn, self._conversation, kind, row, time.time())
