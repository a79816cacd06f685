"""The page of today: health with its cures, messages by the hour, costs, and what needs a decision."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response

from app.console.setup import progress, steps
from app.console.site import Site, back, language_of
from app.i18n import say
from app.ops.finding import Finding
from app.ops.health import public_reason
from app.store import alerts, approvals, limits, statistics, threads
from app.store.database import Connection

TOOL_DAYS = 7
LOOK_SECONDS = 5.0  # between two looks at all the figures
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Checkup:
    """The findings of the doctor, and when it looked."""

    at: float
    findings: Sequence[Finding]


def add_today(site: Site) -> None:
    """Add the pages about the whole."""
    router = site.router
    checkups: list[Checkup] = []
    rules = site.assistant.access.access_rules(site.assistant.realm)

    @router.get("/console")
    async def today(request: Request) -> Response:
        """Show the state of the whole."""
        language = language_of(request)

        def rows(conn: Connection) -> dict[str, Any]:
            now = time.time()
            rates = site.assistant.message_rates
            since = statistics.day_of(now - (TOOL_DAYS - 1) * DAY_SECONDS)
            return {
                "day": statistics.last_day(conn, now),
                "used": limits.usage(conn, rates, statistics.day_of(now)[:7]),
                "alerts": [(public_reason(one.code), one) for one in alerts.open_alerts(conn)],
                "waiting": threads.waiting(conn, now),
                "decisions": len(approvals.all_open(conn)),
                "made": progress(conn, rules),
                "tools": statistics.tool_figures(conn, since),
            }

        async def read() -> dict[str, Any]:
            found = await site.store.read(rows)
            made = found.pop("made")
            held_back = sum(bool(state.held_back) for state in site.assistant.servers.states())
            hours = found["day"].hours
            series = [
                (say(language, "Received"), [hour.received for hour in hours]),
                (say(language, "Sent"), [hour.sent for hour in hours]),
                (say(language, "Turns"), [hour.turns for hour in hours]),
            ]
            title = say(language, "Messages and turns by the hour")
            return found | {
                "missing": [name for _, done, name in steps(site.settings, made) if not done],
                "health": await site.assistant.health.state(),
                "decisions": found["decisions"] + held_back,
                "budget": site.settings.monthly_message_budget,
                "checkup": checkups[-1] if checkups else None,
                "chart": {"title": title, "hours": [hour.at for hour in hours], "series": series},
            }

        return await site.page(request, "today.html", read, LOOK_SECONDS)

    @router.post("/console/check")
    async def check(request: Request) -> Response:
        """Have the doctor look at every part."""
        checkups[:] = [Checkup(time.time(), await site.check())]
        return back("/console")
