"""Deletion of what is old, a small batch at each sweep, so that no table grows for ever."""

from app.store import attachments, schedules
from app.store.database import Connection, delete, update
from app.store.journal import ADMIN_CALL
from app.store.statistics import day_of

DAY = 86400.0
SEEN_DAYS = 30
TRACE_DAYS = 30
DEAD_LETTER_DAYS = 90
ERASED_DAYS = 30
STATISTICS_DAYS = 90
REMINDER_DAYS = 30  # after they fired for the last time, or were cancelled
BATCH = 500
TURNS_AT_ONCE = 50


def sweep(conn: Connection, now: float) -> int:
    """Delete what is old enough; return how many rows went. Messages and turns themselves stay."""
    traced = now - TRACE_DAYS * DAY
    old: tuple[tuple[str, str, str, object], ...] = (
        ("seen", "key", "at", now - SEEN_DAYS * DAY),
        ("inbox", "seq", "done_at", now - DAY),
        ("dead_letters", "id", "at", now - DEAD_LETTER_DAYS * DAY),
        ("erased", "id", "at", now - ERASED_DAYS * DAY),
        ("invitations", "code_hash", "expires_at", now - DAY),
        ("console_sessions", "id", "expires_at", now - DAY),
        ("sign_in_links", "id", "expires_at", now),
        ("statuses", "wamid, status", "received_at", traced),
        ("prompt_parts", "person_id, hash", "at", traced),
        ("uncertain_calls", "person_id, tool, arguments_hash", "at", traced),
        ("tool_statistics", "tool, day, code, step", "day", day_of(now - STATISTICS_DAYS * DAY)),
    )
    gone = 0
    for table, key, column, before in old:
        oldest = f"SELECT {key} FROM {table} WHERE {column} < ? LIMIT ?"
        gone += delete(conn, table, f"({key}) IN ({oldest})", before, BATCH)
    gone += attachments.give_up_old(conn, now - 2 * DAY, BATCH)
    gone += schedules.delete_over(conn, now - REMINDER_DAYS * DAY, BATCH)
    return gone + _forget_traces(conn, traced)


def _forget_traces(conn: Connection, before: float) -> int:
    """Delete the journal and model calls of turns that ended long ago, and all of administrators' calls."""
    sql = "SELECT id FROM turns WHERE traced = 1 AND done_at < ? LIMIT ?"
    ended = [row["id"] for row in conn.execute(sql, (before, TURNS_AT_ONCE))]
    gone = 0
    for turn in ended:
        gone += delete(conn, "journal", "turn_id = ?", turn)
        gone += delete(conn, "model_calls", "turn_id = ?", turn)
        update(conn, "turns", "id = ?", turn, traced=0)
        delete(conn, "turns", "id = ? AND outcome = ?", turn, ADMIN_CALL)
    return gone
