"""How often a tool may be called, and how long one that failed for the moment is left alone."""

import asyncio
from typing import Any

import pytest

from app.people import Person
from app.tools import ConfirmationPolicy, ExecutionEngine, Tool, ToolContext, ToolRegistry, ToolResult
from app.tools.limits import Rates
from tests.world import until

ANA, BEA = (ToolContext(person=Person(name, "simulator")) for name in ("ana", "bea"))


class Clock:
    """A clock that only a pause moves, if anything does."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.stands = False
        self.paused: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.now += 0 if self.stands else seconds


class House:
    """An engine with tools that note their calls, and the clock that its rates go by."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.asked: list[str] = []
        self.ran: list[str] = []
        self.agrees = True
        self.free: asyncio.Event | None = None
        schema = {"type": "object", "properties": {}}
        tools = [
            Tool(name, "Does it", schema, lambda name=name: self.ran.append(name), **options)
            for name in ("it", "other")
        ]
        self.engine = ExecutionEngine(
            ToolRegistry(tools),
            ConfirmationPolicy("confirm-sensitive", self._ask),
            retry_clock=self.clock.pause,
            rates=Rates(self.clock),
        )

    async def call(self, name: str = "it", context: ToolContext | None = ANA) -> str:
        return (await self.engine.execute_tool_call(name, {}, context)).code

    async def _ask(self, name: str, args: dict[str, Any]) -> bool:
        self.asked.append(name)
        if self.free is not None:
            await self.free.wait()
        return self.agrees


async def test_so_many_calls_a_minute_for_each_tool_and_person() -> None:
    house = House(calls_per_minute=2)
    assert [await house.call() for _ in range(3)] == ["ok", "ok", "UPSTREAM_RATE_LIMIT"]
    assert await house.call("other") == "ok"
    assert await house.call(context=BEA) == "ok"
    assert await house.call(context=None) == "ok"
    assert house.ran == ["it", "it", "other", "it", "it"]


async def test_the_minute_slides() -> None:
    house = House(calls_per_minute=2)
    assert await house.call() == "ok"
    house.clock.now += 40
    assert await house.call() == "ok"
    house.clock.now += 19
    assert await house.call() == "UPSTREAM_RATE_LIMIT"
    house.clock.now += 1
    assert await house.call() == "ok"
    assert await house.call() == "UPSTREAM_RATE_LIMIT"
    house.clock.now += 40
    assert [await house.call(), await house.call()] == ["ok", "UPSTREAM_RATE_LIMIT"]


async def test_one_that_came_too_often_says_when_and_asks_nobody() -> None:
    house = House(calls_per_minute=1, sensitive=True)
    assert await house.call() == "ok"
    house.clock.now += 20.5
    result = await house.engine.execute_tool_call("it", {}, ANA)
    assert (result.code, result.meta) == ("UPSTREAM_RATE_LIMIT", {"retry_after": 40})
    assert result.error is not None
    assert result.error.message == "it may be called 1 times a minute, and that is used up"
    assert result.error.hint == "it did not run; call it again in 40 s, or answer without it"
    assert (house.asked, house.ran, house.clock.paused) == (["it"], ["it"], [])


@pytest.mark.parametrize("kind", ["idempotent", "harmless"])
async def test_one_that_may_wait_waits_where_that_fits_its_time(kind: str) -> None:
    house = House(calls_per_minute=2, timeout=61.0, **{kind: True})
    assert [await house.call() for _ in range(4)] == ["ok"] * 4
    assert house.clock.paused == [60.0]
    short = House(calls_per_minute=2, timeout=59.0, **{kind: True})
    assert [await short.call() for _ in range(3)] == ["ok", "ok", "UPSTREAM_RATE_LIMIT"]
    assert short.clock.paused == []


async def test_those_that_wait_together_come_one_after_the_other() -> None:
    house = House(calls_per_minute=1, idempotent=True, timeout=150.0)
    house.clock.stands = True
    codes = await asyncio.gather(*(house.call() for _ in range(4)))
    assert codes == ["ok", "ok", "ok", "UPSTREAM_RATE_LIMIT"]
    assert house.clock.paused == [60.0, 120.0]


async def test_waiting_is_part_of_the_time_of_the_call() -> None:
    async def sleep() -> None:
        await asyncio.sleep(30)

    clock = Clock()
    tool = Tool("it", "x", {"type": "object"}, sleep, idempotent=True, timeout=60.1, calls_per_minute=1)
    rates = Rates(clock)
    assert rates.reserve("it", "", 1) == 0
    engine = ExecutionEngine(
        ToolRegistry([tool]), ConfirmationPolicy("yolo"), retry_clock=clock.pause, rates=rates
    )
    result = await asyncio.wait_for(engine.execute_tool_call("it", {}), timeout=10)
    assert (result.code, clock.paused) == ("TIMEOUT", [60.0])


async def test_a_no_leaves_the_minute_as_it_was() -> None:
    house = House(calls_per_minute=1, sensitive=True)
    house.agrees = False
    assert [await house.call(), await house.call()] == ["DENIED", "DENIED"]
    house.agrees = True
    assert await house.call() == "ok"
    assert await house.call() == "UPSTREAM_RATE_LIMIT"
    assert house.asked == ["it"] * 3


async def test_of_two_that_are_agreed_to_at_once_the_second_comes_too_often() -> None:
    house = House(calls_per_minute=1, sensitive=True)
    house.free = asyncio.Event()
    both = [asyncio.create_task(house.call()) for _ in range(2)]
    await until(lambda: len(house.asked) == 2, "both questions")
    house.free.set()
    assert sorted(await asyncio.gather(*both)) == ["UPSTREAM_RATE_LIMIT", "ok"]
    assert house.ran == ["it"]


def test_a_limit_is_a_number_that_makes_sense() -> None:
    for number in (-1, 6001):
        with pytest.raises(ValueError, match=f"calls_per_minute of it: expected 0 .* got {number}"):
            Tool("it", "x", {"type": "object"}, lambda: 1, calls_per_minute=number)

    def ping() -> None:
        """Ping."""

    tool = Tool.from_function(ping, calls_per_minute=7)
    assert (tool.calls_per_minute, tool.replace(calls_per_minute=8).calls_per_minute) == (7, 8)


@pytest.mark.parametrize(
    ("code", "asked", "paused"),
    [
        ("UPSTREAM_RATE_LIMIT", 3, [3.0]),
        ("UPSTREAM_ERROR", "7", [7.0]),
        ("UPSTREAM_ERROR", -1, [0.5]),
        ("UPSTREAM_ERROR", "soon", [0.5]),
        ("UPSTREAM_ERROR", float("nan"), [0.5]),
        ("UPSTREAM_ERROR", [9], [0.5]),
        ("UPSTREAM_RATE_LIMIT", 31, []),
    ],
)
async def test_what_upstream_asks_for_is_waited_where_it_fits_the_time(
    code: str, asked: Any, paused: list[float]
) -> None:
    left = [1]

    def busy() -> ToolResult:
        if left.pop() if left else 0:
            return ToolResult.failure(code, "busy", retry_after=asked)
        return ToolResult.success("done")

    clock = Clock()
    tool = Tool("it", "x", {"type": "object"}, busy, idempotent=True, timeout=30.0)
    engine = ExecutionEngine(ToolRegistry([tool]), ConfirmationPolicy("yolo"), retry_clock=clock.pause)
    result = await engine.execute_tool_call("it", {})
    assert clock.paused == paused
    assert result.code == ("ok" if paused else code)
