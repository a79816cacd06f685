"""What a turn has done, a row a step, and the tokens that it used."""

from dataclasses import dataclass
from sqlite3 import Connection

from app.errors import RecadoError, StoreError


class TurnGone(RecadoError):
    """The turn was ended by somebody else (a /stop, an erase); what ran for it is of no use."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Of a model call: the prompt's, the answer's, and those of the prompt's that the provider had cached."""

    prompt: int
    completion: int
    cached: int


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
    tokens: Tokens | None = None,
    day: str = "",
) -> int | None:
    """Adds a journal row while the turn runs. Raises TurnGone where it has ended or has that row.

    `after` is the key of a row that must stand before it: see `require`. With `tokens` it counts them too and
    gives how many the person has used on that day, else None. What was finished shows that the turn
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
    return None if tokens is None else _count(conn, turn, tokens, day)


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


def _count(conn: Connection, turn: str, tokens: Tokens, day: str) -> int:
    person = conn.execute(
        "UPDATE turns SET prompt_tokens = prompt_tokens + ?, completion_tokens = completion_tokens + ?,"
        " cached_tokens = cached_tokens + ? WHERE id = ? RETURNING person_id",
        (tokens.prompt, tokens.completion, tokens.cached, turn),
    ).fetchone()["person_id"]
    row = conn.execute(
        "INSERT INTO token_use (person_id, day, tokens) VALUES (?, ?, ?)"
        " ON CONFLICT (person_id, day) DO UPDATE SET tokens = tokens + excluded.tokens RETURNING tokens",
        (person, day, tokens.prompt + tokens.completion),
    ).fetchone()
    return int(row["tokens"])
