"""The pages of today (health with its cures, messages by the hour, costs) and of what waits for a yes."""

import asyncio
import json
import time
from typing import Any

from fastapi import Request, Response

from app.console.setup import progress, steps
from app.console.site import Fields, Language, Site, Values, back
from app.errors import RecadoError
from app.i18n import lazy, say
from app.installs.sentences import held_back_text
from app.mcp.approved import hashes
from app.store import alerts, approvals, limits, people, statistics, threads
from app.store.database import Connection
from app.tools.plain import loads

TOOL_DAYS = 7
LOOK_SECONDS = 5.0  # between two looks at all the figures
DAY_SECONDS = 86_400.0


def add_today(site: Site) -> None:
    """Add the first page."""
    router = site.router
    checkup: dict[str, Any] = {}  # what the doctor found, and when it looked
    rules = site.assistant.access.access_rules(site.assistant.realm)

    @site.page("/console", "today.html", LOOK_SECONDS)
    async def today(request: Request, language: Language) -> Values:
        def rows(conn: Connection) -> Values:
            now = time.time()
            rates = site.assistant.message_rates
            since = statistics.day_of(now - (TOOL_DAYS - 1) * DAY_SECONDS)
            made = progress(conn, rules)
            return {
                "day": statistics.last_day(conn, now),
                "used": limits.usage(conn, rates, statistics.day_of(now)[:7]),
                "alerts": alerts.open_alerts(conn),
                "waiting": threads.waiting(conn, now),
                "decisions": len(approvals.all_open(conn)),
                "missing": [name for _, done, name in steps(site.settings, made) if not done],
                "tools": statistics.tool_figures(conn, since),
            }

        found = await site.store.read(rows)
        found["decisions"] += sum(bool(state.held_back) for state in site.assistant.servers.states())
        hours = found["day"].hours
        series = [
            (say(language, "Received"), [hour.received for hour in hours]),
            (say(language, "Sent"), [hour.sent for hour in hours]),
            (say(language, "Turns"), [hour.turns for hour in hours]),
        ]
        title = say(language, "Messages and turns by the hour")
        return found | {
            "health": await site.assistant.health.state(),
            "budget": site.settings.monthly_message_budget,
            "checkup": checkup,
            "chart": {"title": title, "hours": [hour.at for hour in hours], "series": series},
        }

    @router.post("/console/check")
    async def check() -> Response:
        checkup.update(findings=await site.check(), at=time.time())
        return back("/console")


def add_decisions(site: Site) -> None:
    """Add the page of decisions and its answers."""
    router, assistant = site.router, site.assistant

    @site.page("/console/decisions", "decisions.html")
    async def decisions(request: Request, language: Language) -> Values:
        def rows(conn: Connection) -> Values:
            return {
                "questions": approvals.all_open(conn),
                "frozen": [line for line in people.frozen(conn) if line.realm == assistant.realm],
                "asking": threads.newest(conn, "", time.time(), "waiting"),
            }

        found = await site.store.read(rows)
        cards = [
            (one, await asyncio.to_thread(assistant.contexts.whole_card, one, language))
            for one in found["questions"]
        ]
        held_back = [
            (state.name, held_back_text(language, state), json.dumps(hashes(state.held_back)))
            for state in assistant.servers.states()
            if state.held_back
        ]
        return found | {"cards": cards, "held_back": held_back}

    @router.post("/console/decisions/answer")
    async def answer(form: Fields) -> Response:
        """Answer a question in place of the person who was asked."""
        id, choice, now = form.get("id", ""), form.get("choice", ""), time.time()
        conversation = await assistant.store.tx(
            lambda conn: approvals.answer_in_console(conn, id, choice, "console", now),
            then=lambda woken: assistant.carrier.wake(woken) if woken else None,
        )
        if not conversation:
            raise RecadoError(lazy("this question is not open any more, or cannot be answered so"))
        return back("/console/decisions")

    @router.post("/console/decisions/tools")
    async def approve_tools(form: Fields) -> Response:
        """Approve the tools of a server exactly as they were shown."""
        try:
            shown = {str(tool): str(sha256) for tool, sha256 in loads(form.get("hashes", "")).items()}
        except (ValueError, AttributeError) as error:
            raise RecadoError(lazy("this is none of the console's forms")) from error
        await assistant.servers.approve(form.get("name", ""), shown)
        return back("/console/decisions")
