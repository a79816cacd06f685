"""`recado trace` and `recado usage`: turns with their prompts, and what they and their messages cost."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.cli.database import Records, read_records
from app.cli.output import moment, table
from app.cli.server import find_server
from app.cli.tools import reasons_table
from app.errors import RecadoError
from app.messages import JSON
from app.settings import Settings
from app.store import billing, tool_statistics, traces
from app.text import visible


def turns_table(settings: Settings) -> str:
    """Return a table of the newest turns with outcomes and tokens."""
    server = find_server(settings.data_dir)
    if server is None and not settings.database_path.is_file():
        return "There were no turns yet."
    found = server.ask("turns") if server is not None else asyncio.run(_turns(settings))
    if not found:
        return "There were no turns yet."
    head = ("TURN", "WHEN", "PERSON", "OUTCOME", "TRIES", "PROMPT", "CACHED", "ANSWER", "SECONDS")
    rows = [
        (
            one["id"],
            moment(one["created_at"]),
            visible(one["person"]),
            one["outcome"],
            str(one["attempts"]),
            str(one["prompt_tokens"]),
            str(one["cached_tokens"]),
            str(one["completion_tokens"]),
            f"{one['seconds']:.1f}",
        )
        for one in found
    ]
    return table(head, rows)


def turn_text(settings: Settings, turn: str) -> str:
    """Return a turn's journal and its model calls with whole prompts. Raise RecadoError for an unknown
    turn.
    """
    server = find_server(settings.data_dir)
    found = (
        server.ask("turns/show", {"turn": turn}) if server is not None else asyncio.run(_turn(settings, turn))
    )
    if not found["journal"] and not found["calls"]:
        raise RecadoError(f"there is no turn {turn!r}; recado trace lists the last ones")
    lines = [f"Journal of {turn}"]
    for row in found["journal"]:
        reasons, payload = _reasons(row["payload"])
        lines.append(f"  {moment(row['at'])}  {row['key']}  {_compact(payload)}")
        lines += [f"    {line}" for line in reasons]
    for call in found["calls"]:
        lines += ["", _cost(call)]
        for part in call["prompt"]:
            lines.append(_part(part))
    return "\n".join(lines)


def _reasons(payload: JSON) -> tuple[list[str], JSON]:
    """Return the reasons of a route as a table, and the payload without them."""
    if not isinstance(payload, dict) or not payload.get("reasons"):
        return [], payload
    rest = {key: value for key, value in payload.items() if key not in ("reasons", "tools")}
    return reasons_table(payload["reasons"]).splitlines(), rest


def _cost(call: JSON) -> str:
    return (
        f"Model call {call['key']}: {call['model']}, {call['seconds']:.1f} s, {call['prompt_tokens']} tokens"
        f" in ({call['cached_tokens']} cached), {call['completion_tokens']} out{_catalog(call['catalog'])}"
    )


def _catalog(hash: str) -> str:
    return f", catalogue {hash[:12]} (hash {hash})" if hash else ""


def _part(part: JSON) -> str:
    """Format a message of a prompt line by line; other parts (the tool list) as JSON."""
    if not isinstance(part, dict) or not isinstance(part.get("role"), str):
        return f"  {_compact(part)}"
    text = part.get("content")
    body = text if isinstance(text, str) else _compact(text)
    rest = {key: value for key, value in part.items() if key not in ("role", "content")}
    lines = [f"  [{part['role']}]", *(f"    {visible(line)}" for line in body.splitlines())]
    return "\n".join([*lines, f"    {_compact(rest)}"] if rest else lines)


def _compact(value: JSON) -> str:
    return visible(json.dumps(value, ensure_ascii=False))


async def _turns(settings: Settings) -> list[JSON]:
    records = Records(settings.database_path)
    await records.open()
    try:
        return [asdict(line) for line in await traces.recent_turns(records)]
    finally:
        await records.close()


async def _turn(settings: Settings, turn: str) -> JSON:
    records = Records(settings.database_path)
    await records.open()
    try:
        return {
            "journal": await traces.journal_of(records, turn),
            "calls": [asdict(call) for call in await traces.calls_of(records, turn)],
        }
    finally:
        await records.close()


def read_usage(settings: Settings, month: str) -> dict[str, Any]:
    """Return the usage of a month (YYYY-MM). Raises RecadoError where there is no database yet."""
    server = find_server(settings.data_dir)
    if server is not None:
        return dict(server.ask("usage", {"month": month}))
    rates = billing.read_rates(settings.data_dir)
    return read_records(settings.database_path, lambda conn: billing.usage(conn, rates, month))


def usage_text(used: Mapping[str, Any]) -> str:
    """Return the usage as tables: by person, then by day."""
    head = ("MESSAGES", "TOKENS", f"COST ({used['currency']})")
    lines = [f"{used['month']}: {_sums(used)}"]
    lines += [f"  {category}: {count}" for category, count in used["categories"].items()]
    if used["unpriced"]:
        lines.append(f"  {used['unpriced']} messages have no known price (rates.yaml)")
    lines += [f"  {count} messages wait for a limit: {limit}" for limit, count in used["waiting"].items()]
    people = [(visible(one["name"]) or one["person"], *_cells(one)) for one in used["people"]]
    days = [(one["day"], *_cells(one)) for one in used["days"]]
    tables = [table((first, *head), rows) for first, rows in (("PERSON", people), ("DAY", days)) if rows]
    return "\n\n".join(("\n".join(lines), *tables))


def _sums(sums: Mapping[str, Any]) -> str:
    return f"{sums['messages']} messages, {sums['tokens']} tokens, {sums['cost']:.3f}"


def _cells(sums: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(sums["messages"]), str(sums["tokens"]), f"{sums['cost']:.3f}"


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
