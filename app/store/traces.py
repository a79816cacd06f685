"""Traces: the model calls of a turn with prompts, tools and cost, for the operator."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import orjson

from app.messages import JSON
from app.store import disk_space
from app.store.journal import Tokens

PART_CHARACTERS = 256 * 1024
DAY = 86400.0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call to be kept: the prompt as the hashes of its parts, and its cost.

    `key` is that of the journal row with the answer. `hashes` are those of every part of the prompt, in
    order; `parts` are the (hash, body) that no earlier call of the turn had. `catalog` is the hash of the
    catalogue that tools or categories were chosen from, `definitions` that catalogue as JSON.
    """

    key: str
    model: str
    hashes: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]
    tokens: Tokens
    seconds: float
    at: float
    catalog: str = ""
    definitions: str = ""


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


def keep(conn: Connection, turn: str, calls: Sequence[ModelCall]) -> None:
    """Keep the model calls of a turn, unless it was erased or the disk is low; repeated ones are replaced."""
    row = conn.execute("SELECT person_id FROM turns WHERE id = ?", (turn,)).fetchone()
    if row is None or not calls or not disk_space.is_kept(conn, "traces"):
        return
    for catalog, definitions in {one.catalog: one.definitions for one in calls if one.catalog}.items():
        _keep_catalog(conn, catalog, definitions, calls[-1].at)
    person = row["person_id"]
    conn.executemany(
        "INSERT INTO prompt_parts (person_id, hash, body, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(person, part, _bounded(body), one.at) for one in calls for part, body in one.parts],
    )
    conn.executemany(
        "INSERT OR REPLACE INTO model_calls (turn_id, key, person_id, model, parts, prompt_tokens,"
        " completion_tokens, cached_tokens, seconds, catalog, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(turn, one.key, person, *_columns(one)) for one in calls],
    )


def forget_catalogs(conn: Connection, before: float, limit: int) -> int:
    """Delete catalogues last in use before that time that no call is traced to; return how many went.

    `before` must lie further back than the traces that are kept.
    """
    return conn.execute(
        "DELETE FROM catalogs WHERE hash IN (SELECT hash FROM catalogs AS old WHERE at < ? AND NOT EXISTS"
        " (SELECT 1 FROM model_calls WHERE catalog = old.hash) LIMIT ?)",
        (before, limit),
    ).rowcount


def _keep_catalog(conn: Connection, hash: str, body: str, now: float) -> None:
    """Keep a catalogue once by its hash; of one that is kept, note once a day that it is still in use."""
    row = conn.execute("SELECT at FROM catalogs WHERE hash = ?", (hash,)).fetchone()
    if row is None:
        conn.execute("INSERT INTO catalogs (hash, body, at) VALUES (?, ?, ?)", (hash, body, now))
    elif now - row["at"] >= DAY:
        conn.execute("UPDATE catalogs SET at = ? WHERE hash = ?", (now, hash))


def _columns(call: ModelCall) -> tuple[object, ...]:
    used, hashes = call.tokens, orjson.dumps(call.hashes).decode()
    return call.model, hashes, used.prompt, used.completion, used.cached, call.seconds, call.catalog, call.at


def _bounded(body: str) -> str:
    """Return a part of a prompt; of a very long one its beginning and its length."""
    if len(body) <= PART_CHARACTERS:
        return body
    return orjson.dumps({"cut": body[:PART_CHARACTERS], "characters": len(body)}).decode()


def recent_turns(conn: Connection, limit: int = 20) -> list[TurnLine]:
    """Return the newest turns first."""
    rows = conn.execute(
        "SELECT t.*, p.name FROM turns t JOIN people p ON p.id = t.person_id"
        " ORDER BY t.created_at DESC LIMIT ?",
        (limit,),
    )
    return [
        TurnLine(
            row["id"],
            row["name"] or row["person_id"],
            row["outcome"] or row["state"],
            row["attempts"],
            row["prompt_tokens"],
            row["completion_tokens"],
            row["cached_tokens"],
            round((row["done_at"] or row["created_at"]) - row["created_at"], 3),
            row["created_at"],
        )
        for row in rows
    ]


def turn_trace(conn: Connection, turn: str) -> TurnTrace:
    """Return what is kept of a turn; both lists are empty for an unknown one."""
    return TurnTrace(_journal_of(conn, turn), _calls_of(conn, turn))


def _calls_of(conn: Connection, turn: str) -> list[CallTrace]:
    """Return every model call of a turn, with its prompt and tools put together again."""
    rows = conn.execute("SELECT * FROM model_calls WHERE turn_id = ? ORDER BY at, key", (turn,))
    traces = []
    for row in rows:
        parts: list[JSON] = []
        for part in orjson.loads(row["parts"]):
            kept = conn.execute(
                "SELECT body FROM prompt_parts WHERE person_id = ? AND hash = ?", (row["person_id"], part)
            ).fetchone()
            body = orjson.loads(kept["body"]) if kept is not None else {"forgotten": part}
            parts.append(_with_definitions(conn, body))
        traces.append(
            CallTrace(
                row["key"],
                row["model"],
                row["seconds"],
                row["prompt_tokens"],
                row["completion_tokens"],
                row["cached_tokens"],
                row["catalog"],
                parts,
            )
        )
    return traces


def _with_definitions(conn: Connection, part: JSON) -> JSON:
    """Replace the names of tools in a part of a prompt by the definitions that the model was given."""
    if "catalog" not in part:
        return part
    row = conn.execute("SELECT body FROM catalogs WHERE hash = ?", (part["catalog"],)).fetchone()
    known = {} if row is None else {one["name"]: one for one in orjson.loads(row["body"])}
    functions = [known.get(one, {"name": one}) if isinstance(one, str) else one for one in part["tools"]]
    return {"tools": [{"type": "function", "function": function} for function in functions]}


def _journal_of(conn: Connection, turn: str) -> list[JSON]:
    """Return the journal rows of a turn in the order they were written."""
    rows = conn.execute("SELECT key, kind, payload, at FROM journal WHERE turn_id = ? ORDER BY at", (turn,))
    return [
        {"key": row["key"], "kind": row["kind"], "at": row["at"], "payload": orjson.loads(row["payload"])}
        for row in rows
    ]
