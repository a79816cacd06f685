"""The cards of installing, removing and approving MCP servers; they ask in every mode."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from app.errors import RecadoError
from app.i18n import say
from app.installs.approval_text import approval_question, approval_text
from app.installs.server_card_text import card_question, kinds_of_yes
from app.installs.server_installer import ServerInstaller
from app.installs.server_refusals import nothing_held_back
from app.installs.server_service import ServerService, removal_subject
from app.mcp.pins import subject_of
from app.messages import JSON
from app.store.approvals import OpenQuestion
from app.text import visible
from app.tools import ToolResult
from app.tools.masking import holds_secret
from app.turns.approvals import Refused
from app.turns.cards import INSTALL, ONCE, Card, with_sources
from app.turns.state import TurnContext

T = TypeVar("T")


class ServerCards:
    """Makes the cards of the tools of `expand` that change which servers there are, or what they may do."""

    def __init__(self, service: ServerService, installer: ServerInstaller, *, mode: str) -> None:
        self._service = service
        self._installer = installer
        self._mode = mode

    async def install(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        """Raises Refused with a list where several could be meant, or with why none can be installed."""
        language = run.person.language
        pasted = holds_secret(run.said)
        found = await self._service.plan(
            _without_secrets(str(arguments["name"])),
            language,
            values=arguments.get("values"),
            network=arguments.get("network"),
        )
        plan = _or_refused(_warned(language, found) if pasted and isinstance(found, ToolResult) else found)
        lines = [self._service.card(language, plan), kinds_of_yes(language, self._mode)]
        if pasted:
            lines.append(_secret_said(language))
        return Card(
            with_sources(language, "\n".join(lines), run.sources, run.is_bundled),
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
        return "\n".join([self._service.card("en", plan), kinds_of_yes("en", self._mode)])

    async def remove(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        """Raises Refused where no server of that name was installed."""
        language = run.person.language
        record = _or_refused(await self._service.installed(str(arguments.get("name") or ""), language))
        which = f"{record.registry_id} {record.version}"
        asked = say(language, "Remove the server {name}? ({which})", name=record.name, which=which)
        lines = [asked, say(language, "Its data and its secrets go with it.")]
        text = with_sources(language, "\n".join(lines), run.sources, run.is_bundled)
        return Card(text, record.name, ONCE, removal_subject(record))

    async def approve(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        """Raises Refused where nothing of that server is held back."""
        language, name = run.person.language, str(arguments["name"])
        state = await self._service.started(name)
        if state is None:
            raise Refused(self._service.unknown(name, language))
        if not state.held_back:
            raise Refused(nothing_held_back(language, state.name))
        text = await asyncio.to_thread(approval_text, language, state)
        return Card(
            with_sources(language, text, run.sources, run.is_bundled),
            state.name,
            ONCE,
            subject_of(state),
            approval_question(language, state.name),
        )

    def whole_approval(self, question: OpenQuestion, name: str) -> str:
        """The card of a question about held-back tools, for the console."""
        state = self._service.here(name)
        if state is None or subject_of(state) != question.subject:
            return "what was asked about is not there any more"
        return approval_text("en", state)


def _or_refused(found: T | ToolResult) -> T:
    """Raises Refused with what the person is told instead."""
    if isinstance(found, ToolResult):
        raise Refused(found)
    return found


def _without_secrets(name: str) -> str:
    """What is searched with; exact names of the registry, which have a slash, may be as long as a key."""
    return " ".join(word for word in name.split() if "/" in word or not holds_secret(word))


def _warned(language: str, result: ToolResult) -> ToolResult:
    """A list to choose from, below the word about the secret."""
    if not result.ok:
        return result
    summary = f"{_secret_said(language)}\n\n{result.data['summary']}"
    return replace(result, data={**result.data, "summary": summary})


def _secret_said(language: str) -> str:
    return say(
        language,
        "Your message holds what looks like a secret. I do not use it. Since it stands in this chat now, it "
        "is better to make a new one and give that in a shell.",
    )
