"""Deletion of what is old, a small batch at each sweep, so that no table grows for ever."""

from sqlite3 import Connection

from app.store import attachments, schedules, traces
from app.store.journal import ADMIN_CALL
from app.store.tool_statistics import day_of

DAY = 86400.0
SEEN_DAYS = 30
TRACE_DAYS = 30
CATALOG_DAYS = TRACE_DAYS + 2  # their use is noted once a day
DEAD_LETTER_DAYS = 90
ERASED_DAYS = 30
STATISTICS_DAYS = 90
REMINDER_DAYS = 30  # after they fired for the last time, or were cancelled
UNHEARD_DAYS = 30  # voice notes that nothing transcribed
PHRASE_DAYS = 180  # after they were said last; those of removed tools go this way too
BATCH = 500
TURNS_AT_ONCE = 50


def sweep(conn: Connection, now: float) -> int:
    """Delete what is old enough; return how many rows went. Messages and turns themselves stay."""
    old = (
        ("seen", "key", "at", SEEN_DAYS),
        ("inbox", "seq", "done_at", 1),
        ("dead_letters", "id", "at", DEAD_LETTER_DAYS),
        ("erased", "id", "at", ERASED_DAYS),
        ("learned_phrases", "id", "at", PHRASE_DAYS),
        ("invitations", "code_hash", "expires_at", 1),
        ("console_sessions", "id", "expires_at", 1),
    )
    gone = sum(
        conn.execute(
            f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE {column} < ? LIMIT ?)",
            (now - days * DAY, BATCH),
        ).rowcount
        for table, key, column, days in old
    )
    for table, key in (
        ("statuses", "wamid, status"),
        ("prompt_parts", "person_id, hash"),
        ("uncertain_calls", "person_id, tool, arguments_hash"),
    ):
        column = "received_at" if table == "statuses" else "at"
        gone += conn.execute(
            f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {column} < ? LIMIT ?)",
            (now - TRACE_DAYS * DAY, BATCH),
        ).rowcount
    gone += conn.execute(
        "DELETE FROM tool_statistics WHERE (tool, day, code, step) IN"
        " (SELECT tool, day, code, step FROM tool_statistics WHERE day < ? LIMIT ?)",
        (day_of(now - STATISTICS_DAYS * DAY), BATCH),
    ).rowcount
    gone += attachments.give_up_old(conn, now - 2 * DAY, now - UNHEARD_DAYS * DAY, BATCH)
    gone += schedules.delete_over(conn, now - REMINDER_DAYS * DAY, BATCH)
    gone += traces.forget_catalogs(conn, now - CATALOG_DAYS * DAY, BATCH)
    return gone + _forget_traces(conn, now - TRACE_DAYS * DAY)


def _forget_traces(conn: Connection, before: float) -> int:
    """Delete the journal and model calls of turns that ended long ago, and all of administrators' calls."""
    ended = [
        row["id"]
        for row in conn.execute(
            "SELECT id FROM turns WHERE traced = 1 AND done_at < ? LIMIT ?", (before, TURNS_AT_ONCE)
        )
    ]
    gone = 0
    for turn in ended:
        gone += conn.execute("DELETE FROM journal WHERE turn_id = ?", (turn,)).rowcount
        gone += conn.execute("DELETE FROM model_calls WHERE turn_id = ?", (turn,)).rowcount
        conn.execute("UPDATE turns SET traced = 0 WHERE id = ?", (turn,))
        conn.execute("DELETE FROM turns WHERE id = ? AND outcome = ?", (turn, ADMIN_CALL))
    return gone
