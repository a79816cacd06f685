"""Which calls of a round need a yes, and what becomes of it when things change before they run."""

from dataclasses import replace
from sqlite3 import Connection
from typing import Any, cast

import pytest

from app.llm.model import ToolCall
from app.messages import JSON
from app.store import approvals, turn_state
from app.store.database import Database
from app.store.turn_state import TurnState
from app.tools import ConfirmationPolicy, NoTTYError, Tool, ToolContext, ToolRegistry
from app.turns.actions import CallResult
from app.turns.approvals import Decisions, authorize, park
from app.turns.cards import Card
from app.turns.tool_calls import run_calls
from tests.store.rows import T
from tests.turns.standins import Catalog, begin, turn_of


async def _nobody(name: str, args: dict[str, JSON]) -> bool:
    raise NoTTYError("nobody to ask")


FETCH = ToolCall("f", "fetch", {"url": "https://evil.example/"})


class Desk:
    """One turn of Ana's; `send` is sensitive, `fetch` and `look` are not."""

    def __init__(
        self,
        store: Database,
        state: TurnState,
        foreign: tuple[str, ...] = (),
        replaces: str = "",
        policy: ConfirmationPolicy | None = None,
    ) -> None:
        self.store = store
        self.ran: list[str] = []
        self.registry = ToolRegistry()
        for name, sensitive in (("send", True), ("fetch", False), ("install", True)):
            self.registry.register(self.tool(name, sensitive=sensitive))
        self.registry.register(self.tool("look_up", permits_addresses=True))
        self.registry.register(self.registry.get("install").replace(card=self.card), allow_override=True)
        self.catalog = Catalog(self.registry)
        self.catalog.foreign_skills = foreign
        self.replaces = replaces
        asking = policy or ConfirmationPolicy("confirm-sensitive", _nobody)
        self.run = turn_of(store, state, self.catalog, policy=asking, dry_run=policy is not None)

    def tool(self, name: str, **options: Any) -> Tool:
        def act(**arguments: JSON) -> JSON:
            self.ran.append(name)
            return [{"url": "https://found.example"}]

        schema = {"type": "object", "properties": {"url": {"type": "string"}, "to": {"type": "string"}}}
        return Tool(name, f"Does {name}.", schema, act, category="desk", **options)

    async def card(self, arguments: dict[str, JSON], context: ToolContext) -> Card:
        """A card that takes its time, in which another turn takes over a changed folder."""
        if self.replaces:
            self.replace(self.replaces)
        return Card("May I?", "install")

    def replace(self, name: str) -> None:
        changed = self.registry.get(name).replace(description="Does it to everybody.")
        self.registry.register(changed, allow_override=True)

    async def always(self, name: str) -> None:
        """The person said "always here" to it."""
        where, tool_hash = self.run.state.conversation, self.registry.get(name).definition_hash
        row = (where.person_id, where.id, name, tool_hash, T)
        sql = "INSERT INTO standing_consents VALUES (?, ?, ?, ?, ?)"
        await self.store.tx(lambda conn: conn.execute(sql, row) and None)

    async def authorize(self, *calls: ToolCall) -> Decisions:
        return await authorize(self.run, 0, calls, frozenset())

    async def do(self, *calls: ToolCall) -> dict[str, CallResult]:
        return await run_calls(self.run, 0, calls, frozenset(), await self.authorize(*calls))

    async def park(self, *calls: ToolCall) -> list[str]:
        """Asks about these calls; gives the keys of what is asked now."""
        decisions = await self.authorize(*calls)
        await park(self.run, decisions)
        return [question.call_key for question in decisions.questions]

    async def answer(self, choice: str) -> None:
        """To everything that is open; the turn goes on."""

        def write(conn: Connection) -> None:
            for one in approvals.all_open(conn):
                approvals.answer_in_console(conn, one.id, cast(Any, choice), "console", T)
            conn.execute("UPDATE turns SET state = 'running'")

        await self.store.tx(write)


SEND = ToolCall("s", "send", {"to": "ana"})
INSTALL = ToolCall("i", "install", {})


async def test_a_tool_replaced_while_another_card_is_made_is_asked_about_again(store: Database) -> None:
    desk = Desk(store, await begin(store), replaces="send")
    await desk.always("send")
    decisions = await desk.authorize(SEND, INSTALL)
    assert list(decisions.agreed) == ["s"]
    assert await run_calls(desk.run, 0, (SEND, INSTALL), frozenset(), decisions) == {}
    assert [one.tool for one in (await desk.authorize(SEND)).questions] == ["send"]
    assert desk.ran == []


@pytest.mark.parametrize("ids", [("a", "a#2"), ("a#2", "a"), ("a:b", "a"), ("#", "#2")])
async def test_whatever_ids_a_model_gives_its_calls_each_has_its_own_questions(
    store: Database, ids: tuple[str, str]
) -> None:
    desk = Desk(store, await begin(store))
    both = [ToolCall(id, "send", {"to": id}) for id in ids]
    first = await desk.park(*both)
    await desk.answer("yes")
    desk.replace("send")
    again = await desk.park(*both)
    assert len({*first, *again}) == 4
    await desk.answer("yes")
    assert sorted(await desk.do(*both)) == sorted(ids)
    assert desk.ran == ["send", "send"]


async def test_a_tool_that_was_not_there_when_the_call_was_judged_does_not_run(store: Database) -> None:
    desk = Desk(store, await begin(store), ("guide",))
    fetch = desk.registry.get("fetch")
    desk.registry.clear()
    decisions = await desk.authorize(FETCH)
    desk.registry.register(fetch)
    results = await run_calls(desk.run, 0, (FETCH,), frozenset(), decisions)
    assert "NO_TTY" in results["f"].text
    assert desk.ran == []


async def test_at_the_terminal_a_call_to_an_address_of_others_is_asked_about(store: Database) -> None:
    asked: list[str] = []

    class AtTheTerminal(ConfirmationPolicy):
        async def request_confirmation(self, name: str, args: dict[str, JSON]) -> bool:
            asked.append(name)
            return False

    desk = Desk(store, await begin(store), ("guide",), policy=AtTheTerminal("confirm-sensitive"))
    assert "DENIED" in (await desk.do(FETCH))["f"].text
    assert asked == ["fetch"]
    assert desk.ran == []


async def test_a_turn_that_was_laid_aside_stays_tainted_whatever_its_prompt_lost(store: Database) -> None:
    desk = Desk(store, await begin(store), ("guide",))
    await desk.park(SEND)
    await desk.answer("yes")
    opened = await desk.store.tx(lambda conn: turn_state.load_turn(conn, "t1", 40, "2027-01-15"))
    later = replace(desk.run, state=opened)
    desk.catalog.foreign_skills = ()
    assert later.sources == ("skill:guide",)
