"""`recado trace`: turns, their prompts and their cost."""

import asyncio
import json
from dataclasses import asdict

from app.commands.reasons import reasons_table
from app.commands.records import Records
from app.commands.running import find_server
from app.commands.tables import moment, table
from app.errors import RecadoError
from app.messages import JSON
from app.settings import Settings
from app.store import traces
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
