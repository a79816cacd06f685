"""The register of tools, the steps of a call, in their order, and what no tool may do to the server."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from app.people import Person
from app.tools import DuplicateToolError, Tool, ToolContext, ToolNotFoundError, ToolRegistry, ToolResult
from app.tools.engine import CallTerms
from tests.tools.engines import ADD, engine_of, tool_of
from tests.world import until


class Journal:
    """Keeps what it was told, in order."""

    def __init__(self, refuse: str = "") -> None:
        self.rows: list[str] = []
        self._refuse = refuse

    async def intent(self, tool: Tool, args: dict[str, Any]) -> None:
        if self._refuse == "intent":
            raise OSError("disk full")
        self.rows.append(f"intent {tool.name} {args}")

    async def result(self, result: ToolResult, tool: str, seconds: float | None) -> ToolResult:
        if self._refuse == "result":
            raise OSError("disk full")
        self.rows.append(f"result {result.code}")
        return result


async def test_found_and_checked() -> None:
    for name, args, code in [
        ("add", {"a": 1}, "ok"),
        ("add", '{"a": "1", "b": null}', "ok"),
        ("ad", {}, "UNKNOWN_TOOL"),
        (None, {}, "UNKNOWN_TOOL"),
        ("add", {"a": "x"}, "BAD_REQUEST"),
        ("add", {"a": 1, "c": 2}, "BAD_REQUEST"),
        ("add", "{", "BAD_REQUEST"),
        ("add", [1], "BAD_REQUEST"),
    ]:
        assert (await engine_of(ADD).execute_tool_call(name, args)).code == code


async def test_only_what_was_offered_and_only_for_those_who_may() -> None:
    engine = engine_of(ADD, ADD.replace(name="admin", audience="owners"))
    call = engine.execute_tool_call
    assert (await call("add", {"a": 1}, None, CallTerms(offered={"admin"}))).code == "NOT_OFFERED"
    assert (await call("admin", {"a": 1})).code == "UNKNOWN_TOOL"
    member, owner = Person("m", "simulator"), Person("o", "simulator", role="owner")
    assert (await call("admin", {"a": 1}, ToolContext(person=member))).code == "UNKNOWN_TOOL"
    assert (await call("admin", {"a": 1}, ToolContext(person=owner))).ok
    unknown = await call("admi", {}, ToolContext(person=member))
    assert "admin" not in (unknown.error.hint if unknown.error else "")


async def test_dry_run_runs_nothing_and_asks_nobody() -> None:
    ran: list[int] = []
    engine = engine_of(
        tool_of(lambda: ran.append(1)),
        tool_of(lambda: "found", harmless=True).replace(name="look"),
        mode="confirm-all",
        dry_run=True,
    )
    assert (await engine.execute_tool_call("it", {})).data == "[DRY-RUN] it()"
    assert (await engine.execute_tool_call("look", {})).data == "found"
    assert ran == []


async def test_intent_is_recorded_before_the_call_and_the_result_after() -> None:
    journal = Journal()

    def act() -> str:
        journal.rows.append("ran")
        return "done"

    engine = engine_of(tool_of(act), ADD)
    terms = CallTerms(recorder=journal)
    assert (await engine.execute_tool_call("it", {}, None, terms)).ok
    await engine.execute_tool_call("add", {"a": "x"}, None, terms)
    assert journal.rows == ["intent it {}", "ran", "result ok", "result BAD_REQUEST"]


@pytest.mark.parametrize(
    ("refuse", "code", "runs"), [("intent", "UNAVAILABLE", 0), ("result", "OUTCOME_UNKNOWN", 1)]
)
async def test_what_cannot_be_recorded(refuse: str, code: str, runs: int) -> None:
    ran: list[int] = []
    engine = engine_of(tool_of(lambda: ran.append(1)))
    result = await engine.execute_tool_call("it", {}, None, CallTerms(recorder=Journal(refuse)))
    assert result.code == code
    assert len(ran) == runs


async def test_a_cancelled_call_leaves_its_intent_open() -> None:
    journal, inside = Journal(), asyncio.Event()

    async def wait() -> None:
        inside.set()
        await asyncio.Event().wait()

    terms = CallTerms(recorder=journal)
    call = asyncio.create_task(engine_of(tool_of(wait)).execute_tool_call("it", {}, None, terms))
    await inside.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert journal.rows == ["intent it {}"]


def raising(error: BaseException, *, later: bool = False) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    async def fail_later() -> None:
        raise error

    return fail_later if later else fail


async def test_no_exception_leaves_the_engine() -> None:
    for error in [
        *(ValueError("x"), SystemExit(3), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()),
        GeneratorExit(),
    ]:
        for later in (False, True):
            failing = tool_of(raising(error, later=later))
            assert (await engine_of(failing).execute_tool_call("it", {})).code == "INTERNAL"


async def test_messages_hold_no_path_and_no_secret() -> None:
    error = RuntimeError("cannot read /home/ana/.config/key.json with token=abcdef0123 of ana@example.org")
    result = await engine_of(tool_of(raising(error))).execute_tool_call("it", {})
    assert result.error is not None
    assert result.error.message == "it failed with RuntimeError: cannot read key.json with token=… of …@…"


async def test_sleepers_run_together_and_a_hanging_one_holds_nobody() -> None:
    """Each sleeps until all have begun: one after the other none would wake."""
    release, all_began = threading.Event(), threading.Event()
    began: list[str] = []

    def begin(name: str) -> None:
        began.append(name)
        if len(began) == 4:
            all_began.set()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                continue

    async def sleep_async() -> str:
        begin("async")
        await until(all_began.is_set, "the others")
        return "woke"

    def sleep() -> str:
        begin("thread")
        return "woke" if all_began.wait(20) else "alone"

    engine = engine_of(
        tool_of(sleep).replace(name="a"),
        tool_of(sleep_async).replace(name="b"),
        tool_of(lambda: release.wait(5), timeout=0.4).replace(name="c"),
        tool_of(stubborn, timeout=0.4).replace(name="d"),
    )
    results = await asyncio.gather(*(engine.execute_tool_call(name, {}) for name in "ababcd"))
    release.set()
    assert [result.code for result in results] == ["ok"] * 4 + ["TIMEOUT"] * 2
    assert [result.data for result in results[:4]] == ["woke"] * 4
    assert results[4].meta == {"outcome": "unknown"}


@pytest.mark.parametrize(
    ("idempotent", "failures", "pauses", "code"),
    [
        (True, 2, [0.5, 1.0], "ok"),
        (True, 9, [0.5, 1.0, 2.0], "UPSTREAM_ERROR"),
        (False, 1, [], "UPSTREAM_ERROR"),
    ],
)
async def test_retries(idempotent: bool, failures: int, pauses: list[float], code: str) -> None:
    paused: list[float] = []
    left = [failures]

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    async def flaky() -> ToolResult:
        left[0] -= 1
        return ToolResult.failure("UPSTREAM_ERROR", "down") if left[0] >= 0 else ToolResult.success("up")

    engine = engine_of(tool_of(flaky, idempotent=idempotent), retry_clock=pause)
    assert (await engine.execute_tool_call("it", {})).code == code
    assert paused == pauses


def typed(ctx: ToolContext, a: int = 1) -> str:
    """Says the channel."""
    return ctx.channel


def optional(a: int = 1, *, about: "ToolContext | None" = None) -> str:
    """Says the channel."""
    return about.channel if about else ""


async def test_a_tool_is_called_as_it_was_written_and_gets_its_context_under_any_name() -> None:
    schema = {"type": "object", "properties": {"a": {}, "context": {}}}
    context = ToolContext(channel="terminal")

    async def whole(args: dict[str, Any], context: ToolContext) -> Any:
        return [args, context.channel]

    def keywords(a: int, context: ToolContext) -> Any:
        return [a, context.channel]

    for function, args, expected in (
        (whole, {"a": 1, "context": 2}, [{"a": 1, "context": 2}, "terminal"]),
        (keywords, {"a": 1}, [1, "terminal"]),
        (lambda **given: given, {"a": 1}, {"a": 1}),
        (lambda args: args, {"a": 1}, {"a": 1}),
    ):
        engine = engine_of(Tool("it", "Does it", schema, function))
        assert (await engine.execute_tool_call("it", args, context)).data == expected
        assert (await Tool("it", "Does it", schema, function).execute(args, context)).data == expected
    for function in (typed, optional):
        tool = Tool.from_function(function)
        assert list(tool.input_schema["properties"]) == ["a"]
        assert (await engine_of(tool).execute_tool_call(tool.name, {"a": 2}, context)).data == "terminal"


def test_registry_keeps_tools_by_name() -> None:
    registry = ToolRegistry()
    for name in ("beta", "alpha"):
        registry.register(tool_of(print).replace(name=name))
    assert [tool.name for tool in registry.list_all()] == ["alpha", "beta"]
    assert [schema["function"]["name"] for schema in registry.get_schemas()] == ["alpha", "beta"]
    assert registry.get_schemas([]) == []
    assert [tool.name for tool in registry.filter_by_names(["beta"])] == ["beta"]
    assert registry.has_tool("alpha")
    assert registry.count() == 2
    registry.clear()
    assert registry.count() == 0


def test_names_that_are_taken_or_unknown() -> None:
    first, again = (tool_of(print).replace(name="search_notes") for _ in range(2))
    registry = ToolRegistry([first])
    with pytest.raises(DuplicateToolError, match="search_notes"):
        registry.register(again)
    registry.register(again, allow_override=True)
    assert registry.get("search_notes") is again
    for look in (registry.get, lambda name: registry.get_schemas([name])):
        with pytest.raises(ToolNotFoundError) as caught:
            look("search_note")
        assert str(caught.value) == "no tool is named 'search_note'"
