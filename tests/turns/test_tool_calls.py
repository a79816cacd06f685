"""Calls whose outcome a crash left unknown: run again only where that does no harm."""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from app.llm.model import ToolCall
from app.messages import JSON
from app.store import journal
from app.store.database import Database
from app.store.statistics import ToolFigures, tool_figures
from app.store.turn_state import TurnState
from app.tools import Tool, ToolRegistry, ToolResult
from app.turns.approvals import Agreed, Decisions, call_identity
from app.turns.tool_calls import run_calls
from tests.store.rows import T
from tests.turns.standins import Catalog, begin, turn_of

BOOK = ToolCall("a", "book", {"table": 4})


class Hall:
    """One turn of Ana's, and a tool that counts how often it ran."""

    def __init__(self, store: Database, state: TurnState, *, idempotent: bool = False) -> None:
        self.store = store
        self.ran: list[str] = []

        async def book(table: int, context: Any) -> str:
            """Books a table."""
            self.ran.append(context.idempotency_key)
            return f"table {table}"

        async def scroll() -> object:
            """Unrolls a long scroll."""
            return [[]] * 100_000 + [2**70]

        async def wait() -> str:
            """Waits."""
            asyncio.get_running_loop().call_later(0.1, self.gate.set)
            await self.gate.wait()
            return "waited"

        async def stamp(slip: dict[str, Any]) -> ToolResult:
            """Stamps a slip; of the first time nobody hears."""
            self.ran.append("stamp")
            if len(self.ran) > 1:
                await self.gate.wait()
                return ToolResult.success("stamped")
            slip["stamped"] = True
            asyncio.get_running_loop().call_later(0.1, self.gate.set)
            return ToolResult.failure("OUTCOME_UNKNOWN", "no answer came", outcome="unknown")

        self.gate = asyncio.Event()
        self.registry = ToolRegistry()
        for function in (wait, book, stamp, scroll):
            is_safe = idempotent and function is book
            self.registry.register(Tool.from_function(function, idempotent=is_safe, category="tables"))
        self.turn = turn_of(store, state, Catalog(self.registry))

    async def call(self, call: ToolCall, begun: bool = False, round_: int = 0, agreed: bool = False) -> JSON:
        wanted = frozenset({call.id}) if begun else frozenset[str]()
        decisions = Decisions(agreed={call.id: self.agreed(call)} if agreed else {})
        results = await run_calls(self.turn, round_, (call,), wanted, decisions)
        return orjson.loads(results[call.id].text)

    def agreed(self, call: ToolCall) -> Agreed:
        tool = self.registry.get(call.name)
        return Agreed("yes", call_identity(tool, call)[1], tool.definition_hash)

    async def figures(self) -> list[ToolFigures]:
        return await self.store.tx(lambda conn: tool_figures(conn, ""))

    async def uncertain(self) -> list[str]:
        return [row["tool"] for row in await self.store.all("SELECT tool FROM uncertain_calls")]

    async def journal(self) -> list[str]:
        rows = await self.store.all("SELECT key FROM journal WHERE kind <> 'llm' ORDER BY key")
        return [row["key"] for row in rows]


async def test_the_model_reads_the_text_that_was_recorded(store: Database) -> None:
    hall = Hall(store, await begin(store))
    result = await hall.call(ToolCall("a", "scroll", {}))
    row = await hall.store.one("SELECT payload FROM journal WHERE key = 'tool:0:a'")
    assert orjson.loads(orjson.loads(row["payload"])["result"]) == result
    assert result["meta"]["truncated"] is True


async def test_a_call_that_was_done_again_and_came_out_is_not_uncertain_any_more(store: Database) -> None:
    hall = Hall(store, await begin(store))
    await hall.call(BOOK, begun=True)
    assert await hall.uncertain() == ["book"]
    await hall.call(ToolCall("b", "book", {"table": 4}), round_=1, agreed=True)
    assert (len(hall.ran), await hall.uncertain()) == (1, [])
    await hall.call(ToolCall("c", "book", {"table": 4}), round_=1)
    assert len(hall.ran) == 2


@pytest.mark.parametrize("written", [dict, lambda arguments: orjson.dumps(arguments).decode()])
async def test_a_call_is_the_same_again_whatever_the_tool_made_of_its_arguments(
    store: Database, written: Callable[[Any], Any]
) -> None:
    hall = Hall(store, await begin(store))
    first, again = (ToolCall(id, "stamp", written({"slip": {"number": 1}})) for id in ("a", "b"))
    assert (await hall.call(first))["meta"]["outcome"] == "unknown"
    assert not (await hall.call(again, round_=1))["ok"]
    assert hall.ran == ["stamp"]


async def test_what_came_out_beside_it_does_not_settle_the_same_call(store: Database) -> None:
    hall = Hall(store, await begin(store))
    twins = [ToolCall(id, "stamp", {"slip": {"number": 1}}) for id in ("a", "b")]
    results = await run_calls(hall.turn, 0, twins, frozenset(), Decisions())
    assert [orjson.loads(results[id].text)["ok"] for id in ("a", "b")] == [False, True]
    assert await hall.uncertain() == ["stamp"]
    assert not (await hall.call(ToolCall("c", "stamp", {"slip": {"number": 1}}), round_=1))["ok"]
    assert len(hall.ran) == 2


@pytest.mark.parametrize(
    ("idempotent", "success_rate", "errors"), [(True, 1, {}), (False, 0, {"OUTCOME_UNKNOWN": 1})]
)
async def test_a_call_that_a_crash_cut_off_is_counted_once(
    store: Database, idempotent: bool, success_rate: int, errors: dict[str, int]
) -> None:
    hall = Hall(store, await begin(store), idempotent=idempotent)
    await hall.call(BOOK, begun=True)
    with pytest.raises(journal.TurnGone):
        await hall.call(BOOK, begun=True)
    (book,) = await hall.figures()
    assert (book.calls, book.success_rate, book.errors) == (1, success_rate, errors)


async def test_what_goes_wrong_with_one_call_waits_for_the_results_of_the_others(store: Database) -> None:
    hall = Hall(store, await begin(store))
    await hall.store.tx(lambda conn: journal.record(conn, "t1", "intent:0:a", "intent", "{}", T))
    both = (BOOK, ToolCall("w", "wait", {}))
    with pytest.raises(journal.TurnGone):
        await run_calls(hall.turn, 0, both, frozenset(), Decisions())
    assert "tool:0:w" in await hall.journal()
    assert hall.ran == []
