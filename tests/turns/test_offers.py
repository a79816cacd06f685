"""Which tools each model call of a turn is offered, from what its rounds found."""

import json
from typing import Any

import pytest

from app.llm.model import ToolCall
from app.turns.actions import Round
from app.turns.offers import offers

CHOSEN = ("a", "b", "search_tools")
SEARCH = ToolCall("s", "search_tools", {"query": "x"})
OTHER = ToolCall("o", "a", {})


def found(*names: str, ok: bool = True) -> Round:
    result = {"ok": ok, "data": {"tools": [{"name": name} for name in names]}, "meta": {}}
    return Round("", (SEARCH,), {"s": json.dumps(result)})


def test_without_a_search_every_call_is_offered_what_was_chosen() -> None:
    rounds = [Round("", (OTHER,), {"o": '{"ok": true, "data": {"tools": [{"name": "x"}]}, "meta": {}}'})]
    assert offers(CHOSEN, [], 8) == [CHOSEN]
    assert offers(CHOSEN, rounds, 8) == [CHOSEN, CHOSEN]


def test_what_was_found_is_offered_from_the_next_call_on_at_the_end() -> None:
    rounds = [found("x", "b"), Round("", (OTHER,), {"o": "{}"})]
    later = ("a", "b", "search_tools", "x")
    assert offers(CHOSEN, rounds, 8) == [CHOSEN, later, later]


def test_the_oldest_leave_for_what_was_found_and_what_was_called_last() -> None:
    called = Round("", (OTHER,), {"o": "{}"})
    assert offers(CHOSEN, [found("x"), found("y")], 4)[-1] == ("b", "search_tools", "x", "y")
    assert offers(CHOSEN, [called, found("x", "y")], 4)[-1] == ("a", "search_tools", "x", "y")


@pytest.mark.parametrize("limit", [1, 2, 3, 8])
def test_no_call_is_offered_more_than_the_limit(limit: int) -> None:
    many = found(*(f"t{n}" for n in range(20)))
    assert offers(CHOSEN[:limit], [many], limit)[-1] == ("search_tools", *(f"t{n}" for n in range(7)))[:limit]


@pytest.mark.parametrize(
    "one",
    [
        found(),
        found("x", ok=False),
        Round("", (SEARCH,), {}),
        *(
            Round("", (SEARCH,), {"s": json.dumps({"ok": True, "data": data, "meta": {}})})
            for data in (None, [], "x", {}, {"tools": "x"}, {"tools": ["x", {}, {"name": 1}]})
        ),
    ],
)
def test_a_search_that_came_to_nothing_changes_nothing(one: Any) -> None:
    assert offers(CHOSEN, [one], 8) == [CHOSEN, CHOSEN]
