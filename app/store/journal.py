"""The journal: a row for each step of a turn, the tokens used, the calls of unknown outcome.

For the operator it keeps the model calls of a turn too, with prompts, tools and cost, for a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.errors import RecadoError
from app.i18n import lazy
from app.messages import JSON
from app.people import Conversation
from app.store import disk_space, limits
from app.store.database import Connection, Row, delete, insert, read_row, scalar

PART_CHARACTERS = 256 * 1024  # of a longer part of a prompt its beginning and its length are kept
ADMIN_CALL = "mcp"  # outcome of a turn that is one call of the administrator's, and no conversation

UncertainCall = tuple[str, str]  # a tool's name, and the sha256 of the canonical arguments


class TurnGone(RecadoError):
    """The turn was ended meanwhile (a /stop, an erase); the work done for it is of no use."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a model call, counted or estimated; `cached` are those that the provider had cached."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0

    @property
    def total(self) -> int:
        return self.prompt + self.completion


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call to be kept: the (hash, body) of each part of its prompt, and its cost."""

    key: str  # of the journal row with the answer
    model: str
    parts: tuple[tuple[str, str], ...]
    tokens: Tokens
    seconds: float
    at: float
    catalog: str = ""  # hash of the catalogue that tools or categories were chosen from


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


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch of a turn, in seconds since 1970."""

    kind: str  # wait, route, model, tool, question or send
    name: str
    start: float
    end: float
    key: str = ""  # of its journal row
    ok: bool | None = None  # None where it cannot fail or has not ended
    call: CallTrace | None = None  # of a model, if it is kept


@dataclass(frozen=True, slots=True)
class TurnHead:
    """A turn and its conversation."""

    id: str
    conversation_id: str
    person_id: str
    state: str
    outcome: str
    error: str
    attempts: int
    created_at: float
    done_at: float | None
    waited_since: float  # when its first message came in


def record(
    conn: Connection,
    turn: str,
    key: str,
    kind: str,
    payload: str,
    now: float,
    *,
    tokens: Tokens | None = None,
    day: str = "",
) -> int | None:
    """Add a journal row while the turn runs. Raises TurnGone if it has ended or has that row.

    With `tokens` they are counted too, and how many the person has used on `day` is returned. A finished
    step resets the attempts: the turn comes further.
    """
    added = conn.execute(
        "INSERT INTO journal (turn_id, key, person_id, kind, payload, at) SELECT id, ?, person_id, ?, ?, ?"
        " FROM turns WHERE id = ? AND state = 'running' ON CONFLICT DO NOTHING",
        (key, kind, payload, now, turn),
    ).rowcount
    if not added:
        raise TurnGone(f"turn {turn} has ended, or has {key} already")
    if kind != "intent":
        conn.execute("UPDATE turns SET attempts = 1 WHERE id = ? AND attempts > 1", (turn,))
    if tokens is None:
        return None
    person = scalar(
        conn,
        "UPDATE turns SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
        " cached_tokens = cached_tokens + ? WHERE id = ? RETURNING person_id",
        *(tokens.prompt, tokens.completion, tokens.cached, turn),
    )
    return count_tokens(conn, person, tokens, day, now)


def record_admin_call(
    conn: Connection, turn: str, conversation: Conversation, kind: str, row: dict[str, JSON], now: float
) -> None:
    """Keep an administrator's call or its result, in a turn that is done, so that nothing resumes it."""
    conn.execute(
        "INSERT INTO turns (id, person_id, conversation_id, state, outcome, created_at, done_at)"
        " VALUES (?, ?, ?, 'done', ?, ?, ?) ON CONFLICT (id) DO UPDATE SET done_at = excluded.done_at",
        (turn, conversation.person_id, conversation.id, ADMIN_CALL, now, now),
    )
    person, payload = conversation.person_id, orjson.dumps(row).decode()
    key = f"{kind}:0:call"
    insert(conn, "journal", turn_id=turn, key=key, person_id=person, kind=kind, payload=payload, at=now)


def tokens_used(conn: Connection, person: str, day: str) -> int:
    """Return the tokens a person used on a day (YYYY-MM-DD)."""
    return scalar(conn, "SELECT tokens FROM token_use WHERE person_id = ? AND day = ?", person, day) or 0


def mark_uncertain(conn: Connection, person: str, call: UncertainCall, now: float) -> None:
    """Note a call of unknown outcome: it must not run again without the person's yes."""
    clear_uncertain(conn, person, call)
    conn.execute("INSERT INTO uncertain_calls VALUES (?, ?, ?, ?)", (person, *call, now))


def clear_uncertain(conn: Connection, person: str, call: UncertainCall) -> None:
    """Forget that a call's outcome was unknown: it ran again, and its outcome is known."""
    delete(conn, "uncertain_calls", "person_id = ? AND tool = ? AND arguments_hash = ?", person, *call)


def uncertain_calls(conn: Connection, person: str) -> frozenset[UncertainCall]:
    """Return the person's calls of unknown outcome."""
    rows = conn.execute("SELECT tool, arguments_hash FROM uncertain_calls WHERE person_id = ?", (person,))
    return frozenset((row["tool"], row["arguments_hash"]) for row in rows)


def count_tokens(conn: Connection, person: str, tokens: Tokens, day: str, now: float) -> int:
    """Count a person's tokens, and return how many they used on this day."""
    limits.add(conn, "tokens", tokens.total, now)
    counted = (
        "INSERT INTO token_use (person_id, day, tokens) VALUES (?, ?, ?)"
        " ON CONFLICT (person_id, day) DO UPDATE SET tokens = token_use.tokens + excluded.tokens"
    )
    return int(scalar(conn, f"{counted} RETURNING tokens", person, day, tokens.total))


def keep_call(conn: Connection, turn: str, call: ModelCall) -> None:
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


def recent_turns(conn: Connection, limit: int = 20) -> list[Row]:
    """Return the newest turns first: id, beginning, person, outcome, attempts, tokens by kind, seconds."""
    return conn.execute(
        "SELECT t.id, t.created_at, coalesce(nullif(p.name, ''), p.id),"
        " coalesce(nullif(t.outcome, ''), t.state), t.attempts, t.prompt_tokens, t.cached_tokens,"
        " t.completion_tokens, coalesce(t.done_at, t.created_at) - t.created_at"
        " FROM turns t JOIN people p ON p.id = t.person_id ORDER BY t.created_at DESC LIMIT ?",
        (limit,),
    ).fetchall()


def turn_trace(conn: Connection, turn: str) -> TurnTrace:
    """Return what is kept of a turn; both lists are empty for an unknown one."""
    sql = "SELECT key, kind, at, payload FROM journal WHERE turn_id = ? ORDER BY at"
    journal = [{**row, "payload": orjson.loads(row["payload"])} for row in conn.execute(sql, (turn,))]
    body = "SELECT body FROM prompt_parts WHERE person_id = ? AND hash = ?"
    calls = []
    for row in conn.execute("SELECT * FROM model_calls WHERE turn_id = ? ORDER BY at, key", (turn,)):
        parts = [(part, scalar(conn, body, row["person_id"], part)) for part in orjson.loads(row["parts"])]
        prompt = [orjson.loads(kept) if kept else {"forgotten": part} for part, kept in parts]
        calls.append(read_row(CallTrace, row, prompt=prompt))
    return TurnTrace(journal, calls)
