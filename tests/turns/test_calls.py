"""Calls whose outcome a crash left unknown: run again only where that does no harm."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from app.errors import StoreError
from app.llm.model import ToolCall
from app.messages import JSON
from app.people import Conversation, Person
from app.routing.abilities import Abilities
from app.store import journal, turns
from app.store.database import Database
from app.store.opening import Opened
from app.store.outbox import Draft
from app.tools import ConfirmationPolicy, ExecutionEngine, Tool, ToolRegistry
from app.turns.actions import Round, Routed, Transcript
from app.turns.calls import ToolCalls
from app.turns.run import Run
from tests.store.rows import T, begun, conversation, inbound, take
from tests.turns.screen import Screen

BOOK = ToolCall("a", "book", {"table": 4})


class Hall:
    """One turn of Ana's, and a tool that counts how often it ran."""

    def __init__(self, store: Database, opened: Opened, *, idempotent: bool) -> None:
        self.store = store
        self.ran: list[str] = []

        async def book(table: int, context: Any) -> str:
            """Books a table."""
            self.ran.append(context.idempotency_key)
            return f"table {table}"

        registry = ToolRegistry()
        registry.register(Tool.from_function(book, idempotent=idempotent, category="tables"))
        self._calls = ToolCalls(
            store, ExecutionEngine(registry, ConfirmationPolicy("yolo")), cast(Abilities, Fixed(registry))
        )
        person = Person(opened.conversation.person_id, "whatsapp")
        self.run_of = Run(opened, person, Screen(), "", Transcript(Routed(("tables",), ("book",))), 0)

    async def call(self, call: ToolCall, begun: bool = False, round_: int = 0) -> JSON:
        wanted = frozenset({call.id}) if begun else frozenset[str]()
        results = await self._calls.run(self.run_of, round_, (call,), wanted)
        return orjson.loads(results[call.id])

    async def journal(self) -> list[str]:
        rows = await self.store.all("SELECT key FROM journal WHERE kind <> 'llm' ORDER BY key")
        return [row["key"] for row in rows]


class Fixed:
    """Abilities that are just the tools of a registry."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def tool(self, name: str) -> Tool | None:
        return self._registry.get(name) if self._registry.has_tool(name) else None

    def settings(self, _: str) -> dict[str, str]:
        return {}


@pytest.fixture
async def make_hall(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    store = Database(tmp_path / "recado.db")
    await store.open()

    async def make(*, idempotent: bool = False) -> Hall:
        def open_turn(conn: Any) -> Opened:
            where = conversation(conn)
            take(conn, inbound("w1"))
            opened = begun(conn, where, "t1")
            for number in range(2):
                journal.record(conn, "t1", f"llm:{number}", "llm", "{}", T)
            return opened

        return Hall(store, await store.tx(open_turn), idempotent=idempotent)

    yield make
    await store.close()


async def test_a_call_has_an_intent_and_a_result(make_hall: Callable[..., Any]) -> None:
    hall = await make_hall()
    result = await hall.call(BOOK)
    assert (result["data"], await hall.journal()) == ("table 4", ["intent:0:a", "tool:0:a"])


async def test_a_begun_call_that_is_not_idempotent_is_not_run_again(make_hall: Callable[..., Any]) -> None:
    hall = await make_hall()
    result = await hall.call(BOOK, begun=True)
    assert (hall.ran, result["error"]["code"]) == ([], "OUTCOME_UNKNOWN")
    assert await hall.journal() == ["tool:0:a"]


async def test_a_begun_idempotent_call_is_run_again_with_its_key(make_hall: Callable[..., Any]) -> None:
    hall = await make_hall(idempotent=True)
    result = await hall.call(BOOK, begun=True)
    assert (hall.ran, result["ok"]) == (["t1:0:a"], True)


@pytest.mark.parametrize("idempotent", [False, True])
async def test_the_same_call_again_after_an_unknown_outcome_needs_a_yes(
    make_hall: Callable[..., Any], idempotent: bool
) -> None:
    hall = await make_hall(idempotent=idempotent)
    unknown = '{"ok":false,"error":{"code":"OUTCOME_UNKNOWN"},"meta":{"outcome":"unknown"}}'
    hall.run_of.transcript = hall.run_of.transcript.with_round(Round("", (BOOK,), {"a": unknown}))
    result = await hall.call(ToolCall("b", "book", '{"table":4}'), round_=1)
    assert (hall.ran, result["error"]["code"]) == ([], "DENIED")


async def test_other_arguments_after_an_unknown_outcome_run(make_hall: Callable[..., Any]) -> None:
    hall = await make_hall()
    unknown = '{"ok":false,"error":{"code":"OUTCOME_UNKNOWN"},"meta":{"outcome":"unknown"}}'
    hall.run_of.transcript = hall.run_of.transcript.with_round(Round("", (BOOK,), {"a": unknown}))
    await hall.call(ToolCall("b", "book", {"table": 5}), round_=1)
    assert hall.ran == ["t1:1:b"]


async def test_a_call_of_a_turn_that_ended_does_not_run(make_hall: Callable[..., Any]) -> None:
    hall = await make_hall()
    where: Conversation = hall.run_of.opened.conversation
    await hall.store.tx(lambda conn: turns.end(conn, "t1", where, "stopped", Draft("", ()), T))
    with pytest.raises(journal.TurnGone):
        await hall.call(BOOK)
    assert hall.ran == []


async def test_a_call_whose_answer_was_not_written_down_does_not_run(make_hall: Callable[..., Any]) -> None:
    hall = await make_hall()
    with pytest.raises(StoreError, match="llm:2 of turn t1 was not written"):
        await hall.call(BOOK, round_=2)
    assert (hall.ran, await hall.journal()) == ([], [])
