"""Traces of model calls."""

from sqlite3 import Connection

import orjson

from app.store import alerts, traces
from app.store.journal import Tokens
from app.store.traces import ModelCall
from tests.store.rows import T, value

HASHES = tuple(f"h{number}" for number in range(120))


PARTS = tuple((one, f"body of {one}") for one in HASHES)


def test_parts_are_kept_once_however_many_calls_have_them(turn: Connection) -> None:
    for number in range(2):
        traces.keep(turn, "t1", ModelCall(f"llm:{number}", "m", PARTS, Tokens(5, 2, 1), 0.1, T))
    row = turn.execute("SELECT * FROM model_calls").fetchall()
    assert [orjson.loads(one["parts"]) for one in row] == [list(HASHES)] * 2
    assert (row[0]["prompt_tokens"], row[0]["completion_tokens"], row[0]["cached_tokens"]) == (5, 2, 1)
    assert value(turn, "SELECT count(*) FROM prompt_parts") == len(HASHES)
    assert value(turn, "SELECT body FROM prompt_parts WHERE hash = 'h77'") == "body of h77"


def test_nothing_is_kept_where_traces_are_not(turn: Connection) -> None:
    alerts.raise_alert(turn, "space:traces", "full", T)
    traces.keep(turn, "t1", ModelCall("llm:0", "m", PARTS, Tokens(5, 2, 1), 0.1, T))
    assert value(turn, "SELECT count(*) FROM model_calls") == 0
