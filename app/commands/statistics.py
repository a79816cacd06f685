"""`recado skills stats`: calls, success, durations and errors of tools."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict

from app.commands.records import read_records
from app.commands.running import find_server
from app.commands.tables import table
from app.messages import JSON
from app.settings import Settings
from app.store import tool_statistics
from app.text import visible

_DAY = 86400.0
_ERRORS_SHOWN = 3


def tool_figures(settings: Settings, days: int, *, as_json: bool) -> str:
    """Return a line for each tool called in the last `days` days (UTC, today included)."""
    figures = _figures(settings, tool_statistics.day_of(time.time() - (days - 1) * _DAY))
    if as_json:
        return json.dumps(figures, ensure_ascii=False, indent=2)
    if not figures:
        return f"No tool was called in the last {days} days."
    head = ("TOOL", "CALLS", "SUCCESS", "P50", "P90", "P99", "ERRORS")
    return table(head, [_row(one) for one in figures])


def _figures(settings: Settings, since_day: str) -> list[JSON]:
    server = find_server(settings.data_dir)
    if server is not None:
        return list(server.ask("tools", {"since": since_day}))
    if not settings.database_path.is_file():
        return []
    found = read_records(settings.database_path, lambda conn: tool_statistics.summary(conn, since_day))
    return [asdict(one) for one in found]


def _row(one: Mapping[str, JSON]) -> tuple[str, ...]:
    durations = (_duration(one[name]) for name in ("p50", "p90", "p99"))
    return visible(one["tool"]), str(one["calls"]), f"{one['success_rate']:.1%}", *durations, _errors(one)


def _duration(seconds: float | None) -> str:
    """Format a duration with two or three digits and its unit."""
    if seconds is None:
        return "-"
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _errors(one: Mapping[str, JSON]) -> str:
    codes = list(one["errors"].items())
    shown = [f"{visible(code)} {calls}" for code, calls in codes[:_ERRORS_SHOWN]]
    rest = sum(calls for _, calls in codes[_ERRORS_SHOWN:])
    return ", ".join([*shown, *([f"others {rest}"] if rest else [])]) or "-"
