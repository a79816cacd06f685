"""The journal (a row for each step of a turn), the tokens used, and the calls of unknown outcome."""

from dataclasses import dataclass

import orjson

from app.errors import RecadoError
from app.messages import JSON
from app.people import Conversation
from app.store import limits
from app.store.database import Connection, delete, insert, scalar

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
    today: int = scalar(
        conn,
        "INSERT INTO token_use (person_id, day, tokens) VALUES (?, ?, ?)"
        " ON CONFLICT (person_id, day) DO UPDATE SET tokens = token_use.tokens + excluded.tokens"
        " RETURNING tokens",
        *(person, day, tokens.total),
    )
    return today
