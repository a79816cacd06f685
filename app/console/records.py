"""The pages of what is recorded: turns, schedules, costs, the log, the audit, who is signed in."""

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

from fastapi import Request, Response

from app.console.site import Fields, Language, PageNumber, Site, Values, back
from app.errors import RecadoError
from app.i18n import lazy, say
from app.messages import JSON, mapping
from app.ops.logs import recent_lines
from app.schedule.wording import rule_text
from app.settings import Settings
from app.store import audit, journal, limits, people, schedules
from app.store.database import Connection
from app.store.journal import Step

ON_A_PAGE = 100
LINES = 300
LEAST_WIDTH = 0.4  # percent of the whole, so that a quick step can be seen
PART_SHOWN = 20_000  # characters of a part of a prompt


def add_records(site: Site) -> None:
    """Add the pages of what is recorded."""
    router = site.router

    @site.page("/console/turns/{id}", "turn.html")
    async def turn(request: Request, language: Language, id: str) -> Values:
        """Return where the time of a turn went, what each step was, and why each tool was offered."""

        def rows(conn: Connection) -> Values:
            head, trace = journal.turn_head(conn, id), journal.turn_trace(conn, id)
            steps = journal.steps(conn, head, trace, time.time())
            payloads = {row["key"]: row["payload"] for row in trace.journal}
            name, _ = people.shown_as(conn, head.person_id)
            return {"head": head, "name": name, "bars": _bars(language, steps, payloads, site.settings)}

        return await site.store.read(rows)

    @router.post("/console/turns/{id}/replay")
    async def replay(request: Request, id: str) -> Response:
        """Run a turn again as a dry run, and show what it would do now."""
        turn, reply = await site.assistant.replay(id)
        return site.render(request, "replay.html", turn=turn, reply=reply)

    @site.page("/console/schedules", "schedules.html")
    async def planned(request: Request, language: Language, page: PageNumber = 1) -> Values:
        """Return what is to come: reminders, tasks and watches of everybody."""

        def rows(conn: Connection) -> Values:
            found, lines = schedules.everybodys(conn, page, ON_A_PAGE), []
            for one in found[:ON_A_PAGE]:
                again = one.rule and rule_text(one.rule, datetime.fromisoformat(one.start), language)
                lines.append((one, people.shown_as(conn, one.person_id)[0], again))
            return {"lines": lines, "page": page, "is_last": len(found) <= ON_A_PAGE}

        return await site.store.read(rows)

    @router.post("/console/schedules/cancel")
    async def cancel(request: Request, form: Fields) -> Response:
        id, now = form.get("schedule", ""), time.time()

        def write(conn: Connection) -> bool:
            found = schedules.by_id(conn, id)
            return found is not None and schedules.cancel(conn, found.person_id, id, "console", now)

        if not await site.store.tx(write):
            raise RecadoError(lazy("this is not to come any more"))
        request.state.subject = id
        site.assistant.reminders.look()
        return back("/console/schedules")

    @site.page("/console/costs", "costs.html")
    async def costs(request: Request, month: str = "") -> Values:
        """Show the messages, tokens and costs of a month, of this one where it cannot be read."""
        if not re.fullmatch(r"\d{4}-\d{2}", month):
            month = f"{date.today():%Y-%m}"
        rates = await asyncio.to_thread(limits.read_rates, site.settings.data_dir)
        used = await site.store.read(lambda conn: limits.usage(conn, rates, month))
        return {"used": used, "budget": site.settings.monthly_message_budget}

    @site.page("/console/log", "log.html")
    async def log(
        request: Request, level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO", words: str = ""
    ) -> Values:
        lines = [line for line in recent_lines(LINES, level) if words.lower() in line.lower()]
        return {"lines": lines, "level": level, "words": words}

    @site.page("/console/audit", "audit.html")
    async def audited(request: Request, page: PageNumber = 1) -> Values:
        rows = await site.store.read(lambda conn: audit.listing(conn, page))
        return {"rows": rows[: audit.SHOWN], "page": page, "is_last": len(rows) <= audit.SHOWN}

    @router.post("/console/audit/check")
    async def verify(request: Request) -> Response:
        head, fault = await site.store.read(audit.verify)
        return site.render(request, "verified.html", head=head, fault=fault)

    @site.page("/console/sessions", "sessions.html")
    async def sessions(request: Request) -> Values:
        return {"lines": await site.sessions.all(), "own": request.state.session.id}

    @router.post("/console/sessions/end")
    async def end_session(request: Request, form: Fields) -> Response:
        """Sign a browser out: the one that a form names, else this one."""
        await site.sessions.end(form.get("session", "") or request.state.session.id)
        return back("/console/sessions")


def _bars(
    language: str, steps: Sequence[Step], payloads: Mapping[str, JSON], settings: Settings
) -> list[dict[str, Any]]:
    """Return what is shown of each step, with its place in the picture in percent."""
    titles = {
        "wait": say(language, "Waiting for its turn"),
        "route": say(language, "Choosing the tools"),
        "model": say(language, "Asking the model"),
        "tool": say(language, "Tool"),
        "question": say(language, "Asking the person"),
        "send": say(language, "Sending"),
    }
    first = min((step.start for step in steps), default=0.0)
    whole = max(max((step.end for step in steps), default=0.0) - first, 0.001)
    bars = []
    for step in steps:
        call, row = step.call, payloads.get(step.key) or {}
        bar = {
            "step": step,
            "title": f"{titles[step.kind]} {step.name}".strip(),
            "left": min(100 * (step.start - first) / whole, 100 - LEAST_WIDTH),
            "width": max(100 * (step.end - step.start) / whole, LEAST_WIDTH),
            "cost": call and settings.cost(call.model, call.prompt_tokens, call.completion_tokens),
            "parts": [_part(part) for part in call.prompt] if call is not None else [],
            "arguments": _arguments(step, payloads),
            "result": _result(step, row),
            "reasons": row.get("reasons", []) if step.kind == "route" else [],
        }
        bars.append(bar)
    return bars


def _part(part: JSON) -> dict[str, Any]:
    """Return a message of a prompt, or the list of tools: whose it is, how long, and as it can be read."""
    fields = mapping(part)
    role = fields.get("role")
    is_message = isinstance(role, str)
    if not is_message:
        role = next(iter(fields), "")
    text = fields.get("content") if is_message and len(fields) == 2 else None
    text = text if isinstance(text, str) else json.dumps(part, ensure_ascii=False, indent=1)
    return {"role": str(role), "characters": len(text), "text": text[:PART_SHOWN]}


def _arguments(step: Step, payloads: Mapping[str, JSON]) -> str:
    """Return the arguments of a tool's call, "" for another step."""
    number, _, id = step.key.removeprefix("tool:").partition(":")
    asked = payloads.get(f"llm:{number}", {}).get("calls", []) if step.kind == "tool" else []
    found = next((call["arguments"] for call in asked if call["id"] == id), "")
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, indent=1)


def _result(step: Step, row: Mapping[str, JSON]) -> str:
    if step.kind == "tool":
        return str(row.get("result", ""))[:PART_SHOWN]
    if step.kind == "route":
        return ", ".join(row.get("categories", ()))
    called = "\n".join(f"{call['name']} {call['arguments']}" for call in row.get("calls", ()))
    return "\n".join(filter(None, (row.get("text", ""), called)))
