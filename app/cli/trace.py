"""`recado trace` and `recado usage`: turns with their prompts, and what they and their messages cost."""

import json
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.output import AsJson, command_settings, group, moment, show, table
from app.cli.server import ask_or_read
from app.cli.tools import reasons_table
from app.errors import RecadoError
from app.messages import JSON
from app.settings import Settings, TokenPrice
from app.store import billing, tool_statistics, traces
from app.text import visible

commands = group()


@commands.command()
def trace(
    turn: Annotated[str, typer.Argument(metavar="[TURN]", help="A turn's id.")] = "",
) -> None:
    """Show the last turns, or one in full.

    With TURN: its journal, and each model call with its whole prompt and cost.
    """
    settings = command_settings()
    show(_turn_text(settings, turn) if turn else _turns_table(settings))


def _turns_table(settings: Settings) -> str:
    found = ask_or_read(settings, "turns", {}, traces.recent_turns, none=[])
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


def _turn_text(settings: Settings, turn: str) -> str:
    found = ask_or_read(settings, "turns/show", {"turn": turn}, lambda conn: traces.turn_trace(conn, turn))
    if not found["journal"] and not found["calls"]:
        raise RecadoError(f"there is no turn {turn!r}; recado trace lists the last ones")
    prices = {one.model: one.price for one in settings.models if one.price is not None}
    lines = [f"Journal of {turn}"]
    for row in found["journal"]:
        reasons, payload = _reasons(row["payload"])
        lines.append(f"  {moment(row['at'])}  {row['key']}  {_compact(payload)}")
        lines += [f"    {line}" for line in reasons]
    for call in found["calls"]:
        lines += ["", _cost(call, prices)]
        for part in call["prompt"]:
            lines.append(_part(part))
    return "\n".join(lines)


def _reasons(payload: JSON) -> tuple[list[str], JSON]:
    """Return the reasons of a route as a table, and the payload without them."""
    if not isinstance(payload, dict) or not payload.get("reasons"):
        return [], payload
    rest = {key: value for key, value in payload.items() if key not in ("reasons", "tools")}
    return reasons_table(payload["reasons"]).splitlines(), rest


def _cost(call: JSON, prices: Mapping[str, TokenPrice]) -> str:
    price = prices.get(call["model"])
    tokens = (call["prompt_tokens"], call["completion_tokens"])
    cost = "" if price is None else f", costs {price.of(*tokens):.6f}"
    return (
        f"Model call {call['key']}: {call['model']}, {call['seconds']:.1f} s, {tokens[0]} tokens"
        f" in ({call['cached_tokens']} cached), {tokens[1]} out{cost}{_catalog(call['catalog'])}"
    )


def _catalog(hash: str) -> str:
    return f", catalogue {hash[:12]} (hash {hash})" if hash else ""


def _part(part: JSON) -> str:
    """Format a message of a prompt line by line; other parts (the tool list) as JSON."""
    if not isinstance(part, dict) or not isinstance(part.get("role"), str):
        whole = _compact(part)
        return f"  [{len(whole)} characters]\n  {whole}"
    text = part.get("content")
    body = text if isinstance(text, str) else _compact(text)
    rest = {key: value for key, value in part.items() if key not in ("role", "content")}
    lines = [
        f"  [{part['role']}, {len(body)} characters]",
        *(f"    {visible(line)}" for line in body.splitlines()),
    ]
    return "\n".join([*lines, f"    {_compact(rest)}"] if rest else lines)


def _compact(value: JSON) -> str:
    return visible(json.dumps(value, ensure_ascii=False))


@commands.command()
def usage(
    month: Annotated[str, typer.Option(help="YYYY-MM; else this month.", metavar="MONTH")] = "",
    as_json: AsJson = False,
) -> None:
    """Show what was sent, thought and billed in a month, by person and day."""
    settings = command_settings()
    month = month or time.strftime("%Y-%m", time.gmtime())
    if not re.fullmatch(r"\d{4}-\d{2}", month):
        raise typer.BadParameter("write the month as YYYY-MM, such as 2026-11")
    rates = billing.read_rates(settings.data_dir)
    used = ask_or_read(settings, "usage", {"month": month}, lambda conn: billing.usage(conn, rates, month))
    show(json.dumps(used, indent=2) if as_json else _usage_text(used))


def _usage_text(used: Mapping[str, Any]) -> str:
    head = ("MESSAGES", "TOKENS", f"COST ({used['currency']})")
    lines = [f"{used['month']}: {_sums(used)}"]
    lines += [f"  {category}: {count}" for category, count in used["categories"].items()]
    if used["unpriced"]:
        lines.append(f"  {used['unpriced']} messages have no known price (rates.yaml)")
    lines += [f"  {count} messages wait for a limit: {limit}" for limit, count in used["waiting"].items()]
    people = [(visible(one["name"]) or one["person"], *_cells(one)) for one in used["people"]]
    days = [(one["day"], *_cells(one)) for one in used["days"]]
    tables = [table((first, *head), rows) for first, rows in (("PERSON", people), ("DAY", days)) if rows]
    if models := [(one["model"], str(one["tokens"]), f"{one['cost']:.3f}") for one in used["models"]]:
        tables.append(table(("MODEL", "TOKENS", "COST"), models))
    return "\n\n".join(("\n".join(lines), *tables))


def _sums(sums: Mapping[str, Any]) -> str:
    return f"{sums['messages']} messages, {sums['tokens']} tokens, {sums['cost']:.3f}"


def _cells(sums: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(sums["messages"]), str(sums["tokens"]), f"{sums['cost']:.3f}"


_DAY = 86400.0
_ERRORS_SHOWN = 3


def tool_figures(settings: Settings, days: int, *, as_json: bool) -> str:
    """Return a line for each tool called in the last `days` days (UTC, today included)."""
    since = tool_statistics.day_of(time.time() - (days - 1) * _DAY)
    figures = ask_or_read(
        settings, "tools", {"since": since}, lambda conn: tool_statistics.summary(conn, since), none=[]
    )
    if as_json:
        return json.dumps(figures, ensure_ascii=False, indent=2)
    if not figures:
        return f"No tool was called in the last {days} days."
    head = ("TOOL", "CALLS", "SUCCESS", "P50", "P90", "P99", "ERRORS")
    return table(head, [_row(one) for one in figures])


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
