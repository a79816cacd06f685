"""What a turn has done, a row a step, and what its model calls cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from sqlite3 import Connection

import orjson

from app.errors import RecadoError, StoreError
from app.store import catalogs, space

PART_CHARACTERS = 256 * 1024
"""Of one part of a prompt, in a trace."""


class TurnGone(RecadoError):
    """The turn was ended by somebody else (a /stop, an erase); what ran for it is of no use."""


@dataclass(frozen=True, slots=True)
class Spent:
    """A model call as it is kept: what it cost, and the prompt by the hashes of its parts."""

    model: str
    hashes: tuple[str, ...]
    """Of each part of the prompt, in order."""
    parts: tuple[tuple[str, str], ...]
    """(hash, body) of the parts that no earlier call of the turn had."""
    prompt: int
    completion: int
    cached: int
    seconds: float
    catalog: str = ""
    """Hash of the catalogue that the tools, or the categories, were chosen from."""
    definitions: str = ""
    """That catalogue itself."""


def record(
    conn: Connection,
    turn: str,
    key: str,
    kind: str,
    payload: str,
    now: float,
    *,
    after: str = "",
    tried_before: bool = True,
    spent: Spent | None = None,
    day: str = "",
) -> int | None:
    """Adds a journal row while the turn runs. Raises TurnGone where it has ended or has that row.

    `after` is the key of a row that must stand before it: see `require`. With `spent` it counts the tokens
    too and gives how many the person has used on that day, else None. What was finished shows that the turn
    comes further: earlier attempts, where it was `tried_before`, no longer speak against it.
    """
    added = conn.execute(
        "INSERT INTO journal (turn_id, key, person_id, kind, payload, at)"
        " SELECT id, :key, person_id, :kind, :payload, :now FROM turns"
        " WHERE id = :turn AND state = 'running'"
        " AND (:after = '' OR EXISTS (SELECT 1 FROM journal WHERE turn_id = :turn AND key = :after))"
        " ON CONFLICT DO NOTHING",
        {"turn": turn, "key": key, "kind": kind, "payload": payload, "now": now, "after": after},
    ).rowcount
    if not added:
        if after:
            require(conn, turn, after)
        raise TurnGone(f"turn {turn} has ended, or has {key} already")
    if tried_before and kind != "intent":
        conn.execute("UPDATE turns SET attempts = 1, crowded = 0 WHERE id = ?", (turn,))
    return None if spent is None else _record_cost(conn, turn, key, spent, now, day)


def require(conn: Connection, turn: str, key: str) -> None:
    """Refuses what follows from a row that was queued and then not written. Raises StoreError.

    A model's answer is not waited for: its calls' intents and the reply are queued behind it.
    """
    row = conn.execute("SELECT 1 FROM journal WHERE turn_id = ? AND key = ?", (turn, key)).fetchone()
    if row is None:
        raise StoreError(f"{key} of turn {turn} was not written, nor may be what follows from it")


def tokens_used(conn: Connection, person: str, day: str) -> int:
    """Tokens a person used on a day (YYYY-MM-DD)."""
    row = conn.execute(
        "SELECT tokens FROM token_use WHERE person_id = ? AND day = ?", (person, day)
    ).fetchone()
    return 0 if row is None else int(row["tokens"])


def _record_cost(conn: Connection, turn: str, key: str, spent: Spent, now: float, day: str) -> int:
    person = conn.execute(
        "UPDATE turns SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
        " cached_tokens = cached_tokens + ? WHERE id = ? RETURNING person_id",
        (spent.prompt, spent.completion, spent.cached, turn),
    ).fetchone()["person_id"]
    used: int = conn.execute(
        "INSERT INTO token_use (person_id, day, tokens) VALUES (?, ?, ?)"
        " ON CONFLICT (person_id, day) DO UPDATE SET tokens = tokens + excluded.tokens RETURNING tokens",
        (person, day, spent.prompt + spent.completion),
    ).fetchone()["tokens"]
    if not space.keeps(conn, "traces"):
        return used
    if spent.catalog:
        catalogs.keep(conn, spent.catalog, spent.definitions, now)
    _keep_parts(conn, person, spent.parts, now)
    conn.execute(
        "INSERT INTO model_calls (turn_id, key, person_id, model, parts, prompt_tokens, completion_tokens,"
        " cached_tokens, seconds, catalog, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (
            turn,
            key,
            person,
            spent.model,
            orjson.dumps(spent.hashes).decode(),
            spent.prompt,
            spent.completion,
            spent.cached,
            spent.seconds,
            spent.catalog,
            now,
        ),
    )
    return used


def _keep_parts(conn: Connection, person: str, parts: Sequence[tuple[str, str]], now: float) -> None:
    """In one statement: after each the writer waits for the interpreter, which turns keep busy."""
    if not parts:
        return
    rows = ", ".join(["(?, ?, ?, ?)"] * len(parts))
    conn.execute(
        f"INSERT INTO prompt_parts (person_id, hash, body, at) VALUES {rows}"
        " ON CONFLICT (person_id, hash) DO NOTHING",
        [value for part, body in parts for value in (person, part, _bounded(body), now)],
    )


def _bounded(body: str) -> str:
    """A part as a trace keeps it: of a very long one its beginning, and how long it was."""
    if len(body) <= PART_CHARACTERS:
        return body
    return orjson.dumps({"cut": body[:PART_CHARACTERS], "characters": len(body)}).decode()
