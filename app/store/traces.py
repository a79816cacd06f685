"""What a turn saw and what it cost, for whoever runs the server."""

from dataclasses import dataclass

import orjson

from app.messages import JSON
from app.store import catalogs
from app.store.database import Database


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
