"""The cards of installing, removing and approving MCP servers; they ask in every mode."""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from app.characters import visible
from app.errors import RecadoError
from app.language import say
from app.mcp.approval_text import approval_question, approval_text, subject_of
from app.mcp.card_text import card_question, card_text, kinds_of_yes
from app.mcp.installer import ServerInstaller
from app.mcp.refusals import nothing_held_back
from app.mcp.service import ServerService, removal_subject
from app.messages import JSON
from app.store.approvals import OpenQuestion
from app.tools import ToolResult
from app.tools.masking import holds_secret
from app.turns.consent import Refused
from app.turns.questions import INSTALL, ONCE, Card, with_sources
from app.turns.run import Run

T = TypeVar("T")


class ServerCards:
    """Makes the cards of the tools of `expand` that change which servers there are, or what they may do."""

    def __init__(
        self, service: ServerService, installer: ServerInstaller, *, sandboxed: bool, mode: str
    ) -> None:
        self._service = service
        self._installer = installer
        self._sandboxed = sandboxed
        self._mode = mode

    async def install(self, arguments: Mapping[str, JSON], run: Run) -> Card:
        """Raises Refused with a list where several could be meant, or with why none can be installed."""
        language = run.person.language
        plan = _or_refused(
            await self._service.plan(
                str(arguments["name"]),
                language,
                values=arguments.get("values"),
                network=arguments.get("network"),
            )
        )
        lines = [card_text(language, plan, sandboxed=self._sandboxed), kinds_of_yes(language, self._mode)]
        if holds_secret(run.said):
            lines.append(_secret_said(language))
        return Card(
            with_sources(language, "\n".join(lines), run.sources),
            f"{plan.registry_id} {plan.version}",
            INSTALL,
            subject=plan.subject,
            question=card_question(language, plan),
        )

    def whole(self, question: OpenQuestion) -> str:
        """The card of a question about installing, for the console: English, of any length. Blocks."""
        try:
            plan = self._installer.look(question.subject)
        except RecadoError as error:
            return visible(str(error))
        return "\n".join([card_text("en", plan, sandboxed=self._sandboxed), kinds_of_yes("en", self._mode)])

    async def remove(self, arguments: Mapping[str, JSON], run: Run) -> Card:
        """Raises Refused where no server of that name was installed."""
        language = run.person.language
        record = _or_refused(await self._service.installed(str(arguments.get("name") or ""), language))
        which = f"{record.registry_id} {record.version}"
        asked = say(language, "Remove the server {name}? ({which})", name=record.name, which=which)
        lines = [asked, say(language, "Its data and its secrets go with it.")]
        text = with_sources(language, "\n".join(lines), run.sources)
        return Card(text, record.name, ONCE, removal_subject(record))

    async def approve(self, arguments: Mapping[str, JSON], run: Run) -> Card:
        """Raises Refused where nothing of that server is held back."""
        language, name = run.person.language, str(arguments["name"])
        state = self._service.here(name)
        if state is None:
            raise Refused(self._service.unknown(name, language))
        if not state.held_back:
            raise Refused(nothing_held_back(language, state.name))
        text = await asyncio.to_thread(approval_text, language, state)
        return Card(
            with_sources(language, text, run.sources),
            state.name,
            ONCE,
            subject_of(state.held_back),
            approval_question(language, state.name),
        )

    def whole_approval(self, question: OpenQuestion, name: str) -> str:
        """The card of a question about held-back tools, for the console."""
        state = self._service.here(name)
        if state is None or subject_of(state.held_back) != question.subject:
            return "what was asked about is not there any more"
        return approval_text("en", state)


def _or_refused(found: T | ToolResult) -> T:
    """Raises Refused with what the person is told instead."""
    if isinstance(found, ToolResult):
        raise Refused(found)
    return found


def _secret_said(language: str) -> str:
    return say(
        language,
        "Your message holds what looks like a secret. I do not use it. Since it stands in this chat now, it "
        "is better to make a new one and give that in a shell.",
    )
