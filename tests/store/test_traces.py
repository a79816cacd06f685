"""Traces and the catalogues they name."""

from sqlite3 import Connection

import orjson

from app.store import alerts, retention, traces, turns
from app.store.journal import Tokens
from app.store.retention import CATALOG_DAYS, DAY, TRACE_DAYS
from app.store.traces import ModelCall
from tests.store.rows import T, conversation, draft, value

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


def call(conn: Connection, number: int, now: float, catalog: str = "c1") -> None:
    """A model call of the turn t1."""
    definitions = f"[{catalog}]" if catalog else ""
    one = ModelCall(f"llm:{number}", "m", (), Tokens(1, 1, 0), 0.1, now, catalog, definitions)
    traces.keep(conn, "t1", one)


def rows(conn: Connection) -> list[tuple[str, str, float]]:
    return [tuple(row) for row in conn.execute("SELECT hash, body, at FROM catalogs ORDER BY hash")]


def test_a_catalogue_is_kept_once_and_each_call_names_its_own(turn: Connection) -> None:
    for number, catalog in enumerate(("c1", "c1", "c2", "")):
        call(turn, number, T, catalog)
    assert rows(turn) == [("c1", "[c1]", T), ("c2", "[c2]", T)]
    named = [row["catalog"] for row in turn.execute("SELECT catalog FROM model_calls ORDER BY key")]
    assert named == ["c1", "c1", "c2", ""]


def test_nothing_is_kept_where_traces_are_not(turn: Connection) -> None:
    alerts.raise_alert(turn, "space:traces", "full", T)
    call(turn, 0, T)
    assert rows(turn) == []


def test_it_goes_some_time_after_the_last_trace_that_names_it(turn: Connection) -> None:
    call(turn, 0, T)
    for days in (CATALOG_DAYS - 1, CATALOG_DAYS + 1):
        retention.sweep(turn, T + days * DAY)
        assert len(rows(turn)) == 1  # the turn still runs
    turns.end(turn, "t1", conversation(turn), "answered", draft("ok"), T + 2 * DAY)
    kept = []
    for days in (TRACE_DAYS + 2.1, TRACE_DAYS + 2.2):
        retention.sweep(turn, T + days * DAY)
        kept.append((value(turn, "SELECT count(*) FROM model_calls"), len(rows(turn))))
    assert kept == [(0, 1), (0, 0)]
