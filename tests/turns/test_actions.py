"""The next step of a turn and the tools it is offered, as its rows alone decide."""

import orjson

from app.llm.model import ToolCall
from app.messages import JSON
from app.routing.tool_catalog import Selection
from app.tools import ToolResult
from app.turns.actions import (
    AskModel,
    CallResult,
    Reply,
    Round,
    RunTools,
    Transcript,
    next_action,
    offered_tools,
    read_journal,
    unique_calls,
)

ROUTED = Selection(("numbers",), ("calculate",))
A, B = ToolCall("a", "calculate", {"expression": "1+1"}), ToolCall("b", "calculate", {"expression": "2+2"})
SAME_AS_A = ToolCall("c", "calculate", '{"expression":"1+1"}')
DONE = {"a": CallResult("2"), "b": CallResult("4"), "c": CallResult("2")}
EMPTY = Round("")


def test_next_action() -> None:
    for rounds, limit, expected in [
        ([], 5, AskModel(0, with_tools=True)),
        ([], 0, AskModel(0, with_tools=False)),
        ([Round("hola")], 5, Reply("hola")),
        ([Round("", (A, B))], 5, RunTools(0, (A, B), frozenset())),
        ([Round("", (A, B), {"a": CallResult("2")})], 5, RunTools(0, (B,), frozenset())),
        ([Round("", (A, B), {"a": CallResult("2")}, frozenset("ab"))], 5, RunTools(0, (B,), frozenset("ab"))),
        ([Round("", (A,)), Round("too early")], 5, RunTools(0, (A,), frozenset())),
        ([Round("", (A,), DONE)], 5, AskModel(1, with_tools=True)),
        ([Round("", (A,), DONE), Round("", (B,), DONE)], 3, AskModel(2, with_tools=True)),
        ([Round("", (A,), DONE), Round("", (B,), DONE)], 2, AskModel(2, with_tools=False)),
        ([Round("", (A,), DONE), Round("", (SAME_AS_A,), DONE)], 5, AskModel(2, with_tools=False)),
        ([Round("", (A, B), DONE), Round("", (B, SAME_AS_A), DONE)], 5, AskModel(2, with_tools=False)),
        ([Round("", (A,), DONE), Round("", (A, B), DONE)], 5, AskModel(2, with_tools=True)),
        ([EMPTY], 5, AskModel(1, with_tools=False)),
        ([EMPTY, EMPTY], 5, Reply("")),
        ([Round("", (A,), DONE), EMPTY], 2, AskModel(2, with_tools=False)),
        ([Round("", (A,), DONE), EMPTY], 1, Reply("")),
        ([EMPTY], 0, Reply("")),
    ]:
        assert next_action(Transcript(ROUTED, tuple(rounds)), limit) == expected


def test_deeply_nested_and_long_numbers_are_compared_when_a_call_is_repeated() -> None:
    def after(*arguments: str) -> object:
        done = (Round("", (ToolCall("c", "f", one),), {"c": CallResult("{}")}) for one in arguments)
        return next_action(Transcript(ROUTED, tuple(done)), 9)

    for depth in [300, 1020, 5000]:
        deep = f'{{"a": {"[" * depth + "]" * depth}}}'
        assert after(deep, deep) == AskModel(2, with_tools=False)
        assert isinstance(after(deep, deep, f" {deep[:-1]} }}"), AskModel)
    longest = ('{"account": 12345678901234567890121}', '{"account": 12345678901234567890122}')
    assert after(*longest) == AskModel(2, with_tools=True)


RESULT = ToolResult.success({"summary": "✓ Saved: bread\nand more"}, outside=True)
RECORDED = CallResult.of("save", RESULT, RESULT.to_json())


def test_a_transcript_is_the_same_from_memory_and_from_its_rows() -> None:
    step_by_step = (
        Transcript(ROUTED)
        .with_round(Round("", (A, B), intents=frozenset("a")))
        .with_results(0, {"a": RECORDED})
    )
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in (A, B)]
    rows = {
        "tool:0:a": orjson.loads(orjson.dumps(RECORDED.row())),
        "intent:0:a": {},
        "llm:0": {"text": "", "calls": calls},
        "route": {"categories": ["numbers"], "tools": ["calculate"], "source": "model"},
    }
    assert read_journal(rows) == step_by_step
    assert (RECORDED.receipt, RECORDED.outside, RECORDED.changed_something) == ("✓ Saved: bread", True, True)


def test_facts_about_a_result_are_those_of_its_envelope() -> None:
    for result, facts in [
        (ToolResult.success("[DRY-RUN]", dry_run=True), {"ok": True, "dry_run": True}),
        (ToolResult.failure("NO", '{"ok":true', summary="✓ Paid"), {"ok": False}),
        (ToolResult.success({"note": '"outside":true', "summary": "6 × 7"}), {"ok": True}),
    ]:
        read = CallResult.of("save", result, result.to_json())
        assert read == CallResult(result.to_json(), **facts)


def test_rounds_are_read_by_number_and_call_ids_may_hold_colons() -> None:
    call = {"id": "x:1:y", "name": "calculate", "arguments": "{}"}
    rows = {f"llm:{n}": {"text": str(n), "calls": [call]} for n in (10, 2, 1, 0)}
    rows["tool:2:x:1:y"] = CallResult("seen", tools=("a",)).row()
    rounds = read_journal(rows).rounds
    assert [one.text for one in rounds] == ["0", "1", "2", "10"]
    assert rounds[2].results == {"x:1:y": CallResult("seen", tools=("a",))}


def test_calls_get_ids_of_their_own() -> None:
    for ids, taken, expected in [
        (["a", "b"], [], ["a", "b"]),
        (["", ""], [], ["call_0", "call_1"]),
        (["a", "a", "a"], [], ["a", "a_", "a__"]),
        (["a"], ["a"], ["a_"]),
        (["a", "a_"], ["a"], ["a_", "a__"]),
        (["", "call_0"], ["call_0"], ["call_0_", "call_0__"]),
    ]:
        calls = unique_calls([ToolCall(one, "f", {"n": n}) for n, one in enumerate(ids)], taken)
        assert [call.id for call in calls] == expected


def test_a_call_that_repeats_another_one_is_left_out() -> None:
    said = [{"n": 1, "m": 2}, '{"m": 2, "n": 1}', {"n": 1}, "no json", "no json"]
    calls = unique_calls([ToolCall("", "f", one) for one in said], [])
    assert [call.arguments for call in calls] == [said[0], said[2], said[3]]
    kept = [{"id": str(at), "name": "f", "arguments": one} for at, one in enumerate(said)]
    (read,) = read_journal({"llm:0": {"text": "", "calls": kept}}).rounds  # of an earlier version
    assert [call.id for call in read.calls] == ["0", "2", "3"]


CHOSEN = ("a", "b", "search_tools")
SEARCH = ToolCall("s", "search_tools", {"query": "x"})
CALLED = Round("", (ToolCall("o", "a", {}),), {"o": CallResult("{}", ok=True)})


def searched(data: JSON, ok: bool = True) -> Round:
    result = ToolResult(ok, data, error=None if ok else "no")
    return Round("", (SEARCH,), {"s": CallResult.of("search_tools", result, result.to_json())})


def found(*names: str, ok: bool = True) -> Round:
    return searched({"tools": [{"name": name} for name in names]}, ok)


def test_found_tools_are_offered_from_the_next_call_on_in_place_of_idle_ones() -> None:
    for rounds, limit, offered in [
        ([], 8, [CHOSEN]),
        ([CALLED], 8, [CHOSEN, CHOSEN]),
        ([found("x", "b"), CALLED], 8, [CHOSEN, (*CHOSEN, "x"), (*CHOSEN, "x")]),
        ([found("x"), found("y")], 4, [CHOSEN, (*CHOSEN, "x"), ("b", "search_tools", "x", "y")]),
        ([CALLED, found("x", "y")], 4, [CHOSEN, CHOSEN, ("a", "search_tools", "x", "y")]),
        ([found()], 8, [CHOSEN, CHOSEN]),
        ([found("x", ok=False)], 8, [CHOSEN, CHOSEN]),
        ([Round("", (SEARCH,))], 8, [CHOSEN, CHOSEN]),
        *(([searched(data)], 8, [CHOSEN, CHOSEN]) for data in (None, [], "x", {})),
    ]:
        assert offered_tools(CHOSEN, rounds, limit) == offered


def test_no_call_is_offered_more_than_the_limit() -> None:
    for limit in [1, 2, 3, 8]:
        many = found(*(f"t{n}" for n in range(20)))
        offered = offered_tools(CHOSEN[:limit], [many], limit)[-1]
        assert offered == ("search_tools", *(f"t{n}" for n in range(7)))[:limit]
