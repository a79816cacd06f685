"""`recado catalog`, `route`, `trace`, `usage`, `audit`: why tools are chosen, and what turns did and cost."""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.database import read_records
from app.cli.output import AsJson, command_settings, group, moment, show, show_json, show_table, table
from app.cli.skills import read_skills
from app.errors import ConfigurationError, RecadoError
from app.i18n import program
from app.messages import JSON
from app.people import Person
from app.routing import Intent
from app.routing.tool_catalog import SEARCH_TOOLS, ToolCatalog
from app.settings import Settings, skill_environment
from app.store import audit, journal, limits
from app.store.database import Row
from app.store.journal import CallTrace
from app.text import visible
from app.tools import ToolRegistry
from app.tools.source import prompt_list

commands = group()
audit_commands = group(help="Who did what: a chain of rows.")
commands.add_typer(audit_commands, name="audit")

MATCHES_SHOWN = 10


@commands.command()
def catalog(as_json: AsJson = False) -> None:
    """Show the tool catalogue.

    It is read without running any tool code.
    """
    settings = command_settings()
    abilities = _abilities(settings)
    known = abilities.snapshot
    definitions = [one["function"] for one in known.definitions.values()]
    tools = [tool for one in definitions if (tool := abilities.tool(one["name"])) is not None]
    if as_json:
        whole = {"version": known.version, "hash": known.hash, "count": len(definitions)}
        show_json(whole | {"promptList": prompt_list(tools), "functionSchema": definitions})
    else:
        show(prompt_list(tools) or f"There are no tools in {settings.skills_dir}.")


@commands.command()
def route(message: Annotated[str, typer.Argument(help="What a person might write.")]) -> None:
    """Show the tools for a message, and why."""
    settings = command_settings()
    if not message.strip():
        raise ConfigurationError(f'route needs a message; try: {program()} route "what time is it in Tokyo"')
    abilities = _abilities(settings)
    owner = Person(id="", realm="terminal", role="owner")
    tools, most = abilities.tool_categories(owner), settings.max_tools_per_call
    choice = abilities.choose(Intent(), message, owner, always=(SEARCH_TOOLS,), limit=most)
    offered = choice.tools
    counted = f"Offered: {len(offered)} of {len(tools)} tools"
    if set(offered) <= {SEARCH_TOOLS}:
        only = f" ({SEARCH_TOOLS})" if offered else ""
        show(f"{counted}{only}: no tool knows the words of this message.")
        return
    if len(tools) <= most:
        counted += f"; all of them, since MAX_TOOLS_PER_CALL is {most}"
    show(counted)
    reasons = []
    for one in choice.reasons:
        score, covers, phrase = "-", "-", "-"
        if one.score > 0:
            score, covers, phrase = f"{one.score:.2f}", f"{one.coverage:.0%}", one.phrase or "the message"
        reasons.append((one.name, tools.get(one.name, "-"), score, covers, one.why, phrase))
    show(table(("TOOL", "CATEGORY", "SCORE", "COVERS", "WHY", "BEST FOR"), reasons))
    hits = abilities.index.rank(message, among=tools.keys() - set(offered), limit=MATCHES_SHOWN)
    if hits:
        rows = [(hit.id, tools[hit.id], f"{hit.score:.2f}", f"{hit.coverage:.0%}") for hit in hits]
        show("\nMatched, but not offered:\n" + table(("TOOL", "CATEGORY", "SCORE", "COVERS"), rows))


def _abilities(settings: Settings) -> ToolCatalog:
    abilities = ToolCatalog(read_skills(settings), ToolRegistry(), skill_environment())
    asyncio.run(abilities.refresh())
    return abilities


@commands.command()
def trace(turn: Annotated[str, typer.Argument(metavar="[TURN]", help="A turn's id.")] = "") -> None:
    """Show the last turns, or one in full.

    With TURN: its journal, and each model call with its whole prompt and cost.
    """
    settings = command_settings()
    if turn:
        show(_turn_text(settings, turn))
        return
    found: list[Row] = read_records(settings.database, journal.recent_turns, none=[])
    rows = [(id, moment(at), *about, f"{seconds:.1f}") for id, at, *about, seconds in found]
    head = ("TURN", "WHEN", "PERSON", "OUTCOME", "TRIES", "PROMPT", "CACHED", "ANSWER", "SECONDS")
    show_table(head, rows, "There were no turns yet.")


def _turn_text(settings: Settings, turn: str) -> str:
    found = read_records(settings.database, lambda conn: journal.turn_trace(conn, turn))
    if not found.journal and not found.calls:
        raise RecadoError(
            f"there is no turn {turn!r}, or it was a command; {program()} trace lists the last ones"
        )
    lines = [f"Journal of {turn}"]
    lines += [f"  {moment(row['at'])}  {row['key']}  {_compact(row['payload'])}" for row in found.journal]
    for call in found.calls:
        lines += ["", _call_line(call, settings), *map(_part, call.prompt)]
    return "\n".join(lines)


def _call_line(call: CallTrace, settings: Settings) -> str:
    cost = settings.cost(call.model, call.prompt_tokens, call.completion_tokens)
    costs = "" if cost is None else f", costs {cost:.6f}"
    catalog = f", catalogue hash {call.catalog}" if call.catalog else ""
    return (
        f"Model call {call.key}: {call.model}, {call.seconds:.1f} s, {call.prompt_tokens} tokens"
        f" in ({call.cached_tokens} cached), {call.completion_tokens} out{costs}{catalog}"
    )


def _part(part: JSON) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("role"), str):
        whole = _compact(part)
        return f"  [{len(whole)} characters]\n  {whole}"
    rest = {key: value for key, value in part.items() if key not in ("role", "content")}
    text = part.get("content")
    body = text if isinstance(text, str) else _compact(text)
    lines = [f"  [{part['role']}, {len(body)} characters]"]
    lines += [f"    {visible(line)}" for line in body.splitlines()]
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
