"""The pages of what was recorded: costs, and the browsers that are signed in."""

import asyncio
import re
from datetime import date

from fastapi import Request, Response

from app.console.site import Site, back
from app.store import billing

_MONTH = re.compile(r"\d{4}-\d{2}")


def add_records(site: Site) -> None:
    """Add the pages of costs and of sign-ins."""
    router = site.router

    @router.get("/console/costs")
    async def costs(request: Request, month: str = "") -> Response:
        """Show the messages, tokens and costs of a month, of this one where it cannot be read."""
        if not _MONTH.fullmatch(month):
            month = f"{date.today():%Y-%m}"
        rates = await asyncio.to_thread(billing.read_rates, site.settings.data_dir)
        used = await site.store.read(lambda conn: billing.usage(conn, rates, month))
        budget = site.settings.monthly_message_budget
        return site.render(request, "costs.html", used=used, budget=budget)

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
