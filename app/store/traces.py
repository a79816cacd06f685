"""What a turn saw and what it cost, for whoever runs the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import orjson

from app.messages import JSON
from app.store import catalogs, space
from app.store.database import Database
from app.store.journal import Tokens

PART_CHARACTERS = 256 * 1024
"""Of one part of a prompt."""
_ROWS_AT_ONCE = 50
"""In one statement: SQLite takes some thousands of values in one."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A model call as it is kept: the prompt by the hashes of its parts, and what it cost."""

    key: str
    """That of the journal's row with its answer."""
    model: str
    hashes: tuple[str, ...]
    """Of each part of the prompt, in order."""
    parts: tuple[tuple[str, str], ...]
    """(hash, body) of the parts that no earlier call of the turn had."""
    tokens: Tokens
    seconds: float
    at: float
    catalog: str = ""
    """Hash of the catalogue that the tools, or the categories, were chosen from."""
    definitions: str = ""
    """That catalogue itself."""


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
    """A model call: the prompt it was given, part by part, the tools first, and what it cost."""

    key: str
    model: str
    seconds: float
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    catalog: str
    """Hash of the catalogue that the tools, or the categories, were chosen from."""
    prompt: list[JSON]


def keep(conn: Connection, turn: str, calls: Sequence[ModelCall]) -> None:
    """Keeps the model calls of a turn; of one that was made again because its answer was lost, the later one.
    Nothing of a turn that was erased, nor where there is no room for traces."""
    row = conn.execute("SELECT person_id FROM turns WHERE id = ?", (turn,)).fetchone()
    if row is None or not calls or not space.keeps(conn, "traces"):
        return
    for catalog, definitions in {one.catalog: one.definitions for one in calls if one.catalog}.items():
        catalogs.keep(conn, catalog, definitions, calls[-1].at)
    person = row["person_id"]
    parts = {part: (person, part, _bounded(body), one.at) for one in calls for part, body in one.parts}
    _insert(
        conn,
        "INSERT INTO prompt_parts (person_id, hash, body, at) VALUES {rows} ON CONFLICT DO NOTHING",
        list(parts.values()),
    )
    _insert(
        conn,
        "INSERT OR REPLACE INTO model_calls (turn_id, key, person_id, model, parts, prompt_tokens,"
        " completion_tokens, cached_tokens, seconds, catalog, at) VALUES {rows}",
        [(turn, one.key, person, *_costs(one)) for one in calls],
    )


def _costs(call: ModelCall) -> tuple[object, ...]:
    used, hashes = call.tokens, orjson.dumps(call.hashes).decode()
    return call.model, hashes, used.prompt, used.completion, used.cached, call.seconds, call.catalog, call.at


def _insert(conn: Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Many rows in one statement: after each the writer waits for the interpreter."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        some = rows[first : first + _ROWS_AT_ONCE]
        marks = f"({', '.join('?' * len(some[0]))})"
        places = ", ".join([marks] * len(some))
        conn.execute(statement.format(rows=places), [value for row in some for value in row])


def _bounded(body: str) -> str:
    """A part as a trace keeps it: of a very long one its beginning, and how long it was."""
    if len(body) <= PART_CHARACTERS:
        return body
    return orjson.dumps({"cut": body[:PART_CHARACTERS], "characters": len(body)}).decode()


async def recent_turns(store: Database, limit: int = 20) -> list[TurnLine]:
    """The newest turns first."""
    rows = await store.all(
        "SELECT t.*, p.name FROM turns t JOIN people p ON p.id = t.person_id"
        " ORDER BY t.created_at DESC LIMIT ?",
        limit,
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


async def calls_of(store: Database, turn: str) -> list[CallTrace]:
    """Every model call of a turn, with its prompt and its tools put together again."""
    rows = await store.all("SELECT * FROM model_calls WHERE turn_id = ? ORDER BY at, key", turn)
    traces = []
    for row in rows:
        parts: list[JSON] = []
        for part in orjson.loads(row["parts"]):
            kept = await store.one(
                "SELECT body FROM prompt_parts WHERE person_id = ? AND hash = ?", row["person_id"], part
            )
            body = orjson.loads(kept["body"]) if kept is not None else {"forgotten": part}
            parts.append(await _with_definitions(store, body))
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


async def _with_definitions(store: Database, part: JSON) -> JSON:
    """A part of a prompt; of tools the definitions in place of their names, as the model was given them."""
    if "catalog" not in part:
        return part
    known = await catalogs.definitions(store, part["catalog"])
    functions = [known.get(one, {"name": one}) if isinstance(one, str) else one for one in part["tools"]]
    return {"tools": [{"type": "function", "function": function} for function in functions]}


async def journal_of(store: Database, turn: str) -> list[JSON]:
    """The journal rows of a turn in the order they were written."""
    rows = await store.all("SELECT key, kind, payload, at FROM journal WHERE turn_id = ? ORDER BY at", turn)
    return [
        {"key": row["key"], "kind": row["kind"], "at": row["at"], "payload": orjson.loads(row["payload"])}
        for row in rows
    ]
