"""Traces: the model calls of a turn with prompts, tools and cost, for the operator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON
from app.store import disk_space
from app.store.database import Connection, Row, insert, read_row, scalar
from app.store.journal import Tokens

PART_CHARACTERS = 256 * 1024  # of a longer part of a prompt its beginning and its length are kept


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call to be kept: the (hash, body) of each part of its prompt, and its cost.

    `key` is that of the journal row with the answer. `catalog` is the hash of the catalogue that tools or
    categories were chosen from.
    """

    key: str
    model: str
    parts: tuple[tuple[str, str], ...]
    tokens: Tokens
    seconds: float
    at: float
    catalog: str = ""


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A turn in a list."""

    id: str
    person: str
    outcome: str
    attempts: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    seconds: float
    created_at: float


@dataclass(frozen=True, slots=True)
class CallTrace:
    """A model call as it was kept; `prompt` holds its parts, the tools first."""

    key: str
    model: str
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    catalog: str
    prompt: list[JSON]


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """A turn's journal, and its model calls with their prompts."""

    journal: list[JSON]
    calls: list[CallTrace]


def keep(conn: Connection, turn: str, call: ModelCall) -> None:
    """Keep a model call of a turn, unless the disk is low."""
    if not disk_space.is_kept(conn, "traces"):
        return
    person = scalar(conn, "SELECT person_id FROM turns WHERE id = ?", turn)
    for part, body in call.parts:
        if len(body) > PART_CHARACTERS:
            body = orjson.dumps({"cut": body[:PART_CHARACTERS], "characters": len(body)}).decode()
        insert(conn, "prompt_parts", or_skip=True, person_id=person, hash=part, body=body, at=call.at)
    parts = orjson.dumps([part for part, _ in call.parts]).decode()
    used: dict[str, Any] = {
        "prompt_tokens": call.tokens.prompt,
        "completion_tokens": call.tokens.completion,
        "cached_tokens": call.tokens.cached,
    }
    told = {name: getattr(call, name) for name in ("key", "model", "seconds", "catalog", "at")}
    insert(conn, "model_calls", turn_id=turn, person_id=person, parts=parts, **used, **told)


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of a turn, in seconds since 1970; `kind` is wait, route, model, tool, question or send.

    `key` is that of its journal row, "" for none; `ok` is None where it cannot fail or has not ended; `call`
    is the one that the model answered, if it is kept.
    """

    kind: str
    name: str
    start: float
    end: float
    key: str = ""
    ok: bool | None = None
    call: CallTrace | None = None


@dataclass(frozen=True, slots=True)
class TurnHead:
    """A turn and its conversation; `waited_since`: when its first message came in."""

    id: str
    conversation_id: str
    person_id: str
    state: str
    outcome: str
    error: str
    attempts: int
    created_at: float
    done_at: float | None
    waited_since: float


def turn_head(conn: Connection, turn: str) -> TurnHead:
    """Return a turn. Raises RecadoError if there is none."""
    row = conn.execute(
        "SELECT t.*, coalesce((SELECT min(received_at) FROM inbox WHERE turn_id = t.id), t.created_at)"
        " AS waited_since FROM turns t WHERE t.id = ?",
        (turn,),
    ).fetchone()
    if row is None:
        raise RecadoError(lazy("there is no turn {id!r}", id=turn[:100]))
    return read_row(TurnHead, row)


def ended_since(conn: Connection, since: float, most: int) -> list[str]:
    """Return the turns that ended after a time, the first of them first."""
    sql = "SELECT id FROM turns WHERE traced = 1 AND done_at > ? ORDER BY done_at LIMIT ?"
    return [row["id"] for row in conn.execute(sql, (since, most))]


def steps(conn: Connection, head: TurnHead, trace: TurnTrace, now: float) -> list[Step]:
    """Return the steps of a turn in the order in which they began; one that goes on ends `now`."""
    rows = {row["key"]: row for row in trace.journal}
    calls = {call.key: call for call in trace.calls}
    found = [Step("wait", "", head.waited_since, head.created_at)]
    for key, row in rows.items():
        if row["kind"] == "route":
            found.append(Step("route", "", head.created_at, row["at"], key, call=calls.get(key)))
        elif row["kind"] == "llm":
            call = calls.get(key)
            model, seconds = (call.model, call.seconds) if call is not None else ("", 0.0)
            found.append(Step("model", model, row["at"] - seconds, row["at"], key, call=call))
            for asked in row["payload"]["calls"]:
                found += _tool_step(rows, f"{key.removeprefix('llm:')}:{asked['id']}", asked["name"], now)
    for row in conn.execute(
        "SELECT tool, state, created_at, answered_at FROM approvals WHERE turn_id = ?", (head.id,)
    ):
        is_yes = None if row["state"] == "open" else row["state"] == "yes"
        found.append(Step("question", row["tool"], row["created_at"], row["answered_at"] or now, ok=is_yes))
    for row in conn.execute(
        "SELECT o.created_at, o.sent_at, o.state FROM outbox o JOIN messages m ON m.id = o.message_id"
        " WHERE m.turn_id = ? AND o.origin <> 'question' ORDER BY o.seq",
        (head.id,),
    ):
        ended = {"sent": True, "failed": False}.get(row["state"])
        end = row["sent_at"] or (row["created_at"] if ended is False else now)
        found.append(Step("send", "", row["created_at"], end, ok=ended))
    return sorted(found, key=lambda step: (step.start, step.end))


def _tool_step(rows: Mapping[str, JSON], call: str, name: str, now: float) -> list[Step]:
    intent, result = rows.get(f"intent:{call}"), rows.get(f"tool:{call}")
    if intent is None and result is None:
        return []  # it waits for an answer
    end = result["at"] if result is not None else now
    ok = result["payload"].get("facts", {}).get("ok") if result is not None else None
    return [Step("tool", name, intent["at"] if intent is not None else end, end, f"tool:{call}", ok)]


def recent_turns(conn: Connection, limit: int = 20) -> list[TurnLine]:
    """Return the newest turns first."""
    rows = conn.execute(
        "SELECT t.id, t.attempts, t.prompt_tokens, t.completion_tokens, t.cached_tokens, t.created_at,"
        " coalesce(nullif(p.name, ''), p.id) AS person, coalesce(nullif(t.outcome, ''), t.state) AS outcome,"
        " coalesce(t.done_at, t.created_at) - t.created_at AS seconds"
        " FROM turns t JOIN people p ON p.id = t.person_id ORDER BY t.created_at DESC LIMIT ?",
        (limit,),
    )
    return [TurnLine(**row) for row in rows]


def turn_trace(conn: Connection, turn: str) -> TurnTrace:
    """Return what is kept of a turn; both lists are empty for an unknown one."""
    sql = "SELECT key, kind, at, payload FROM journal WHERE turn_id = ? ORDER BY at"
    journal = conn.execute(sql, (turn,))
    calls = conn.execute("SELECT * FROM model_calls WHERE turn_id = ? ORDER BY at, key", (turn,))
    return TurnTrace(
        [{**row, "payload": orjson.loads(row["payload"])} for row in journal],
        [read_row(CallTrace, row, prompt=_prompt(conn, row)) for row in calls],
    )


def _prompt(conn: Connection, call: Row) -> list[JSON]:
    """Return the prompt and the tools of a model call, put together again from their parts."""
    sql = "SELECT body FROM prompt_parts WHERE person_id = ? AND hash = ?"
    kept = [(part, scalar(conn, sql, call["person_id"], part)) for part in orjson.loads(call["parts"])]
    return [orjson.loads(body) if body else {"forgotten": part} for part, body in kept]
