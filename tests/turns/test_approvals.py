"""Which calls of a round need a yes, and what becomes of it when things change before they run."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from sqlite3 import Connection
from typing import Any, cast

import pytest

from app.channels.terminal import TerminalChannel
from app.llm.model import ToolCall
from app.messages import JSON
from app.people import Person
from app.store import approvals, journal, turn_state
from app.store.database import Database
from app.store.turn_state import TurnState
from app.tools import ConfirmationPolicy, NoTTYError, Tool, ToolContext, ToolRegistry
from app.turns.actions import CallResult, Routed, Transcript
from app.turns.approvals import Decisions, authorize, park
from app.turns.cards import Card
from app.turns.state import TurnContext
from app.turns.tool_calls import run_calls
from tests.databases import database_at
from tests.store.rows import T, begun, conversation, inbound, take
from tests.turns.standins import Catalog, services_of


async def _nobody(name: str, args: dict[str, JSON]) -> bool:
    raise NoTTYError("nobody to ask")


FETCH = ToolCall("f", "fetch", {"url": "https://evil.example/"})


class Desk:
    """One turn of Ana's; `send` is sensitive, `fetch` and `look` are not."""

    def __init__(self, store: Database, opened: TurnState, **options: Any) -> None:
        self.store = store
        self.ran: list[str] = []
        self.registry = ToolRegistry()
        for name, sensitive in (("send", True), ("fetch", False), ("install", True)):
            self.registry.register(self.tool(name, sensitive=sensitive))
        self.registry.register(self.tool("look_up", permits_addresses=True))
        self.registry.register(self.registry.get("install").replace(card=self.card), allow_override=True)
        policy = options.pop("policy", None) or ConfirmationPolicy("confirm-sensitive", _nobody)
        self.catalog = Catalog(self.registry)
        self.catalog.foreign_skills = options.pop("foreign", ())
        asks = options.pop("asks", True)
        self.replaces = options.pop("replaces", "")
        routed = Routed((), tuple(tool.name for tool in self.registry.list_all()))
        self.run = TurnContext(
            opened,
            Person(opened.conversation.person_id, "whatsapp"),
            TerminalChannel(),
            "",
            Transcript(routed),
            services_of(store, self.catalog, policy, dry_run=not asks),
            **options,
        )

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


@pytest.fixture
async def make_desk(tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[Desk]]]:
    store = Database(database_at(tmp_path / "recado.db"))
    await store.open()

    async def make(**options: Any) -> Desk:
        def open_turn(conn: Connection) -> TurnState:
            where = conversation(conn)
            take(conn, inbound("w1"))
            opened = begun(conn, where, "t1")
            journal.record(conn, "t1", "llm:0", "llm", '{"text": "", "calls": []}', T)
            return opened

        return Desk(store, await store.tx(open_turn), **options)

    yield make
    await store.close()


MakeDesk = Callable[..., Awaitable[Desk]]
SEND = ToolCall("s", "send", {"to": "ana"})
INSTALL = ToolCall("i", "install", {})
TAINTED: dict[str, Any] = {"foreign": ("guide",)}


async def test_a_tool_replaced_while_another_card_is_made_is_asked_about_again(make_desk: MakeDesk) -> None:
    desk = await make_desk(replaces="send")
    await desk.always("send")
    decisions = await desk.authorize(SEND, INSTALL)
    assert list(decisions.agreed) == ["s"]
    assert await run_calls(desk.run, 0, (SEND, INSTALL), frozenset(), decisions) == {}
    assert [one.tool for one in (await desk.authorize(SEND)).questions] == ["send"]
    assert desk.ran == []


async def test_a_yes_for_good_is_none_to_do_it_twice_in_one_round(make_desk: MakeDesk) -> None:
    desk = await make_desk()
    await desk.always("send")
    results = await desk.do(SEND, ToolCall("t", "send", {"to": "ana"}))
    assert (desk.ran, sorted(results)) == (["send"], ["s", "t"])


@pytest.mark.parametrize("ids", [("a", "a#2"), ("a#2", "a"), ("a:b", "a"), ("#", "#2")])
async def test_whatever_ids_a_model_gives_its_calls_each_has_its_own_questions(
    make_desk: MakeDesk, ids: tuple[str, str]
) -> None:
    desk = await make_desk()
    both = [ToolCall(id, "send", {"to": id}) for id in ids]
    first = await desk.park(*both)
    await desk.answer("yes")
    desk.replace("send")
    again = await desk.park(*both)
    assert len({*first, *again}) == 4
    await desk.answer("yes")
    assert sorted(await desk.do(*both)) == sorted(ids)
    assert desk.ran == ["send", "send"]


async def test_a_tool_that_was_not_there_when_the_call_was_judged_does_not_run(make_desk: MakeDesk) -> None:
    desk = await make_desk(**TAINTED)
    fetch = desk.registry.get("fetch")
    desk.registry.unregister("fetch")
    decisions = await desk.authorize(FETCH)
    desk.registry.register(fetch)
    results = await run_calls(desk.run, 0, (FETCH,), frozenset(), decisions)
    assert "NO_TTY" in results["f"].text
    assert desk.ran == []


async def test_at_the_terminal_a_call_to_an_address_of_others_is_asked_about(make_desk: MakeDesk) -> None:
    asked: list[str] = []

    class AtTheTerminal(ConfirmationPolicy):
        async def request_confirmation(self, name: str, args: dict[str, JSON], note: str = "") -> bool:
            asked.append(note)
            return False

    desk = await make_desk(asks=False, policy=AtTheTerminal("confirm-sensitive"), **TAINTED)
    assert "DENIED" in (await desk.do(FETCH))["f"].text
    assert asked == ["This comes after I read text that is not yours: the skill guide"]
    assert desk.ran == []


async def test_a_turn_that_was_laid_aside_stays_tainted_whatever_its_prompt_lost(make_desk: MakeDesk) -> None:
    desk = await make_desk(**TAINTED)
    await desk.park(SEND)
    await desk.answer("yes")
    opened = await desk.store.tx(lambda conn: turn_state.load_turn(conn, "t1", 40, "2027-01-15"))
    later = replace(desk.run, state=opened)
    desk.catalog.foreign_skills = ()
    assert later.sources == ("skill:guide",)
