"""The page of decisions: open questions with the card of the chat, changed tools, people to confirm."""

import asyncio
import json
import time
from typing import Any

from fastapi import Request, Response

from app.console.site import Site, back, language_of
from app.errors import RecadoError
from app.i18n import lazy
from app.installs.sentences import held_back_text
from app.mcp.approved import hashes
from app.store import approvals, people, threads
from app.store.approvals import Choice
from app.store.database import Connection
from app.tools.plain import loads

_CHOICES: dict[str, Choice] = {"yes": "yes", "always": "always", "trust": "trust", "no": "no"}


def add_decisions(site: Site) -> None:
    """Add the page of decisions and its answers."""
    router, assistant = site.router, site.assistant

    @router.get("/console/decisions")
    async def decisions(request: Request) -> Response:
        """Show everything that waits for an owner."""
        language = language_of(request)

        def rows(conn: Connection) -> dict[str, Any]:
            return {
                "questions": approvals.all_open(conn),
                "frozen": [line for line in people.frozen(conn) if line.realm == assistant.realm],
                "asking": threads.newest(conn, "", time.time(), "waiting"),
            }

        async def read() -> dict[str, Any]:
            found = await site.store.read(rows)
            states = [state for state in assistant.servers.states() if state.held_back]
            cards = [
                (one, await asyncio.to_thread(assistant.contexts.whole_card, one, language))
                for one in found["questions"]
            ]
            held_back = [
                (state.name, held_back_text(language, state), json.dumps(hashes(state.held_back)))
                for state in states
            ]
            return found | {"cards": cards, "held_back": held_back}

        return await site.page(request, "decisions.html", read)

    @router.post("/console/decisions/answer")
    async def answer(request: Request) -> Response:
        """Answer a question in place of the person who was asked."""
        form, now = request.state.form, time.time()
        id, choice = form.get("id", ""), _CHOICES.get(form.get("choice", ""))
        if choice is None:
            raise RecadoError(lazy("this is none of the answers"))
        conversation = await site.store.tx(
            lambda conn: approvals.answer_in_console(conn, id, choice, "console", now),
            then=lambda woken: assistant.carrier.wake(woken) if woken else None,
        )
        if not conversation:
            raise RecadoError(lazy("this question is not open any more, or cannot be answered so"))
        return back("/console/decisions")

    @router.post("/console/decisions/tools")
    async def approve_tools(request: Request) -> Response:
        """Approve the tools of a server exactly as they were shown."""
        form = request.state.form
        try:
            shown = {str(tool): str(sha256) for tool, sha256 in loads(form.get("hashes", "")).items()}
        except (ValueError, AttributeError) as error:
            raise RecadoError(lazy("this is none of the console's forms")) from error
        await assistant.servers.approve(form.get("name", ""), shown)
        return back("/console/decisions")
