"""The pages of what is recorded: schedules, costs, the log, the audit, the browsers that are signed in."""

import asyncio
import re
import time
from datetime import date, datetime
from typing import Any, Literal

from fastapi import Request, Response

from app.console.site import Site, back, language_of
from app.errors import RecadoError
from app.i18n import lazy
from app.ops.logs import recent_lines
from app.schedule.wording import rule_text
from app.store import audit, limits, people, schedules
from app.store.database import Connection

_MONTH = re.compile(r"\d{4}-\d{2}")
ON_A_PAGE = 100
MOST_PAGES = 10**9
LINES = 300


def add_records(site: Site) -> None:
    """Add the pages of what is recorded."""
    router = site.router

    @router.get("/console/schedules")
    async def planned(request: Request, page: int = 1) -> Response:
        """Show what is to come: reminders, tasks and watches of everybody."""
        page, language = min(max(page, 1), MOST_PAGES), language_of(request)

        def rows(conn: Connection) -> dict[str, Any]:
            found = schedules.everybodys(conn, page, ON_A_PAGE)
            lines = [
                (one, people.shown_as(conn, one.person_id)[0], _rule(one, language))
                for one in found[:ON_A_PAGE]
            ]
            return {"lines": lines, "page": page, "is_last": len(found) <= ON_A_PAGE}

        return await site.page(request, "schedules.html", lambda: site.store.read(rows))

    @router.post("/console/schedules/cancel")
    async def cancel(request: Request) -> Response:
        """Cancel a schedule."""
        id, now = request.state.form.get("schedule", ""), time.time()

        def write(conn: Connection) -> bool:
            found = schedules.by_id(conn, id)
            return found is not None and schedules.cancel(conn, found.person_id, id, "console", now)

        if not await site.store.tx(write):
            raise RecadoError(lazy("this is not to come any more"))
        request.state.subject = id
        site.assistant.reminders.look()
        return back("/console/schedules")

    @router.get("/console/costs")
    async def costs(request: Request, month: str = "") -> Response:
        """Show the messages, tokens and costs of a month, of this one where it cannot be read."""
        if not _MONTH.fullmatch(month):
            month = f"{date.today():%Y-%m}"
        rates = await asyncio.to_thread(limits.read_rates, site.settings.data_dir)
        used = await site.store.read(lambda conn: limits.usage(conn, rates, month))
        budget = site.settings.monthly_message_budget
        return site.render(request, "costs.html", used=used, budget=budget)

    @router.get("/console/log")
    async def log(
        request: Request, level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO", words: str = ""
    ) -> Response:
        """Show the newest lines of the log, the newest first."""

        async def read() -> dict[str, Any]:
            lines = [line for line in recent_lines(LINES, level) if words.lower() in line.lower()]
            return {"lines": lines, "level": level, "words": words}

        return await site.page(request, "log.html", read)

    @router.get("/console/audit")
    async def audited(request: Request, page: int = 1) -> Response:
        """Show who did what, and whether the chain is whole."""
        page = min(max(page, 1), MOST_PAGES)

        async def read() -> dict[str, Any]:
            rows = await site.store.read(lambda conn: audit.listing(conn, page))
            return {"rows": rows[: audit.SHOWN], "page": page, "is_last": len(rows) <= audit.SHOWN}

        return await site.page(request, "audit.html", read)

    @router.post("/console/audit/check")
    async def verify(request: Request) -> Response:
        """Check the whole chain."""
        head, fault = await site.store.read(audit.verify)
        return site.render(request, "verified.html", head=head, fault=fault)

    @router.get("/console/sessions")
    async def sessions(request: Request) -> Response:
        """Show the browsers that are signed in."""
        lines = await site.sessions.all()
        return site.render(request, "sessions.html", lines=lines, own=request.state.session.id)

    @router.post("/console/sessions/end")
    async def end_session(request: Request) -> Response:
        """Sign a browser out: the one that a form names, else this one."""
        await site.sessions.end(request.state.form.get("session", "") or request.state.session.id)
        return back("/console/sessions")


def _rule(schedule: schedules.Schedule, language: str) -> str:
    """Say how a schedule is repeated, "" for one that is not."""
    if not schedule.rule:
        return ""
    return rule_text(schedule.rule, datetime.fromisoformat(schedule.start), language)
