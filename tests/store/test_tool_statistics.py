"""How tools did: counted by tool, day, outcome and step of duration."""

from sqlite3 import Connection

import pytest

from app.store.statistics import ToolFigures, count_call, tool_figures

DAY = "2026-11-21"


def figures(conn: Connection, since: str = DAY) -> dict[str, ToolFigures]:
    return {one.tool: one for one in tool_figures(conn, since)}


def test_codes_that_a_tool_makes_up_stay_bounded(conn: Connection) -> None:
    made_up = [f"CODE_{n}" for n in range(100)]
    for code in [*made_up, "ok", *made_up, "ok"]:
        count_call(conn, "t", code, 0.1, DAY)
    count_call(conn, "other", "CODE_99", 0.1, DAY)
    found = figures(conn)
    assert found["t"].success_rate == 2 / found["t"].calls
    assert {code: calls for code, calls in found["t"].errors.items() if code != "OTHER"} == dict.fromkeys(
        made_up[:32], 2
    )
    assert found["t"].errors["OTHER"] == 136
    assert found["other"].errors == {"CODE_99": 1}


@pytest.mark.parametrize("code", ["", "two words", "x" * 65, "\ud800", "a\nb", "Él", "no\x00"])
def test_what_is_no_code_counts_as_another(conn: Connection, code: str) -> None:
    count_call(conn, "t", code, 0.1, DAY)
    assert figures(conn)["t"].errors == {"OTHER": 1}
