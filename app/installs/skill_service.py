"""What the tools of the skill `expand` find as `context.services.installer`; it speaks to the person."""

import asyncio

from app.errors import RecadoError
from app.i18n import say
from app.installs.skill_card_text import card_text
from app.installs.skill_installer import Installer
from app.installs.skill_refusals import not_asked, refusal
from app.people import Person
from app.tools import ToolContext, ToolResult

SHOWN_BYTES = 12 * 1024
"""Of a card as the answer to a person, which has at most 16,000 characters."""


class InstallService:
    """Looks, installs and removes for an owner; what was agreed to is in the call's own context."""

    def __init__(self, installer: Installer, *, sandboxed: bool) -> None:
        self._installer = installer
        self._sandboxed = sandboxed

    async def preview(self, url: str, person: Person) -> ToolResult:
        """The card of the skill at an address. Nothing is installed, and nobody is asked."""
        try:
            preview = await self._installer.preview(url)
        except RecadoError as error:
            return refusal(person.language, error)
        shown = await asyncio.to_thread(
            card_text,
            person.language,
            preview.card,
            preview.change,
            sandboxed=self._sandboxed,
            most_bytes=SHOWN_BYTES,
        )
        said = say(
            person.language,
            "{card}\n\nNothing is installed yet. Tell me to install it if you want it.",
            card=shown.whole,
        )
        return ToolResult.success({"name": preview.card.name, "summary": said})

    async def install(self, url: str, context: ToolContext) -> ToolResult:
        """Installs what the card showed that the person said yes to, and nothing where there was none."""
        assert context.person is not None
        language = context.person.language
        if not context.subject:
            return not_asked(language, "recado skills add ADDRESS")
        try:
            installed = await self._installer.install(
                context.subject, url, approved_by=context.person.id, trusted=context.choice == "trust"
            )
        except RecadoError as error:
            return refusal(language, error)
        said = say(language, "✓ Installed: {name} ({hash})", name=installed.name, hash=installed.sha256[:12])
        return ToolResult.success({"name": installed.name, "summary": said})

    async def remove(self, name: str, context: ToolContext) -> ToolResult:
        """Removes the version of a skill from elsewhere that the person was asked about."""
        assert context.person is not None
        language = context.person.language
        if not context.subject:
            return not_asked(language, "recado skills remove NAME")
        try:
            await self._installer.remove(name, context.subject)
        except RecadoError as error:
            return refusal(language, error)
        return ToolResult.success({"name": name, "summary": say(language, "✓ Removed: {name}", name=name)})
