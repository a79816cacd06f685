"""`recado trace`, `usage` and `audit`: turns with their prompts, what they cost, and who did what."""

import json
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.database import read_records
from app.cli.output import AsJson, command_settings, group, moment, show, show_json, table
from app.cli.tools import reasons_table
from app.errors import RecadoError
from app.i18n import program
from app.messages import JSON
from app.settings import Settings, TokenPrice
from app.store import audit, journal, limits
from app.store.audit import AuditRow
from app.store.journal import CallTrace, TurnLine
from app.text import visible

commands = group()
audit_commands = group(help="Who did what: a chain of rows.")
commands.add_typer(audit_commands, name="audit")


@commands.command()
def trace(turn: Annotated[str, typer.Argument(metavar="[TURN]", help="A turn's id.")] = "") -> None:
    """Show the last turns, or one in full.

    With TURN: its journal, and each model call with its whole prompt and cost.
    """
    settings = command_settings()
    show(_turn_text(settings, turn) if turn else _turns_table(settings))


def _turns_table(settings: Settings) -> str:
    found: list[TurnLine] = read_records(settings.database, journal.recent_turns, none=[])
    if not found:
        return "There were no turns yet."
    head = ("TURN", "WHEN", "PERSON", "OUTCOME", "TRIES", "PROMPT", "CACHED", "ANSWER", "SECONDS")
    rows = [
        (
            one.id,
            moment(one.created_at),
            one.person,
            one.outcome,
            one.attempts,
            one.prompt_tokens,
            one.cached_tokens,
            one.completion_tokens,
            f"{one.seconds:.1f}",
        )
        for one in found
    ]
    return table(head, rows)


def _turn_text(settings: Settings, turn: str) -> str:
    found = read_records(settings.database, lambda conn: journal.turn_trace(conn, turn))
    if not found.journal and not found.calls:
        raise RecadoError(f"there is no turn {turn!r}; {program()} trace lists the last ones")
    prices = {one.model: one.price for one in settings.models if one.price is not None}
    lines = [f"Journal of {turn}"]
    for row in found.journal:
        payload, reasons = row["payload"], []
        if isinstance(payload, dict) and payload.get("reasons"):
            reasons = reasons_table(payload["reasons"]).splitlines()
            payload = {key: value for key, value in payload.items() if key not in ("reasons", "tools")}
        lines.append(f"  {moment(row['at'])}  {row['key']}  {_compact(payload)}")
        lines += [f"    {line}" for line in reasons]
    for call in found.calls:
        lines += ["", _cost(call, prices), *map(_part, call.prompt)]
    return "\n".join(lines)


def _cost(call: CallTrace, prices: Mapping[str, TokenPrice]) -> str:
    price = prices.get(call.model)
    cost = "" if price is None else f", costs {price.of(call.prompt_tokens, call.completion_tokens):.6f}"
    catalog = f", catalogue hash {call.catalog}" if call.catalog else ""
    return (
        f"Model call {call.key}: {call.model}, {call.seconds:.1f} s, {call.prompt_tokens} tokens"
        f" in ({call.cached_tokens} cached), {call.completion_tokens} out{cost}{catalog}"
    )


def _part(part: JSON) -> str:
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
    rates = limits.read_rates(settings.data_dir)
    used = read_records(settings.database, lambda conn: limits.usage(conn, rates, month))
    if as_json:
        show_json(used)
    else:
        show(_usage_text(used))


def _usage_text(used: Mapping[str, Any]) -> str:
    head = ("MESSAGES", "TOKENS", f"COST ({used['currency']})")
    lines = [f"{used['month']}: {used['messages']} messages, {used['tokens']} tokens, {used['cost']:.3f}"]
    lines += [f"  {category}: {count}" for category, count in used["categories"].items()]
    if used["unpriced"]:
        lines.append(f"  {used['unpriced']} messages have no known price (rates.yaml)")
    lines += [f"  {count} messages wait for a limit: {limit}" for limit, count in used["waiting"].items()]
    tables = [
        ("PERSON", [(one["name"] or one["person"], one) for one in used["people"]]),
        ("DAY", [(one["day"], one) for one in used["days"]]),
        ("MODEL", [(one["model"], {"messages": "-", **one}) for one in used["models"]]),
    ]
    for first, rows in tables:
        if rows:
            cells = [(name, one["messages"], one["tokens"], f"{one['cost']:.3f}") for name, one in rows]
            lines += ["", table((first, *head), cells)]
    return "\n".join(lines)


@audit_commands.command("list")
def audit_list() -> None:
    """Show what was done last, the newest first."""
    location = command_settings().database
    rows: list[AuditRow] = read_records(location, lambda conn: audit.listing(conn, 1), none=[])
    head = ("NUMBER", "WHEN", "WHO", "WHAT", "ABOUT")
    show(table(head, [(row.seq, moment(row.at), row.actor, row.action, row.subject) for row in rows]))


@audit_commands.command("verify")
def audit_verify(
    head: Annotated[str, typer.Option(help="A head from an earlier run or from the log.")] = "",
) -> None:
    """Check that no row was changed or taken out; status 1 if one was.

    Only a head that was kept elsewhere can show that the newest rows are still there.
    """
    if head and not re.fullmatch(r"0:|[1-9]\d*:[0-9a-f]{64}", head, re.ASCII):
        raise typer.BadParameter("a head is a number of rows and a hash: 12:3f0a…")
    now, fault = read_records(command_settings().database, lambda conn: audit.verify(conn, head))
    if fault:
        raise RecadoError(f"the audit is broken: {fault}")
    show(f"The audit is whole: {now.partition(':')[0]} rows.\nKeep its head elsewhere: {now}")
