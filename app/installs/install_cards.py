"""The cards of installing and removing skills, made of bytes fetched for the person who gave the address."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from app.errors import RecadoError
from app.i18n import say
from app.installs.skill_card_text import CardText, asking, came_from, card_text
from app.installs.skill_installer import Installer, Preview, is_written_in
from app.installs.skill_refusals import not_written_by_them, refusal
from app.messages import JSON
from app.store.approvals import OpenQuestion
from app.text import visible
from app.turns.approvals import Refused
from app.turns.cards import CARD_BYTES, INSTALL, ONCE, Card, with_sources
from app.turns.state import TurnContext

SHOWN_BYTES = CARD_BYTES - 1024
"""Of a skill's card in the chat: there is room beside it for whose words came before."""
_CONSOLE = "recado approvals list"


class InstallCards:
    """Makes the cards of the tools of `expand` that ask in every mode."""

    def __init__(self, installer: Installer, *, sandboxed: bool, mode: str) -> None:
        self._installer = installer
        self._sandboxed = sandboxed
        self._mode = mode

    async def install(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        """Fetches the skill and shows what its bytes say. Raises Refused, before any request where the
        address is not the person's own."""
        own_address(arguments, run)
        language = run.person.language
        try:
            preview = await self._installer.preview(str(arguments["url"]))
        except RecadoError as error:
            raise Refused(refusal(language, error)) from error
        card, shown = preview.card, await asyncio.to_thread(self._card_text, language, preview, SHOWN_BYTES)
        return Card(
            with_sources(language, shown.whole, run.sources, run.is_bundled),
            f"{card.name} ({card.sha256[:12]})",
            INSTALL,
            subject=preview.subject,
            question=shown.question,
        )

    def whole(self, question: OpenQuestion) -> str:
        """The card of a question about installing, for the console: English, of any length. Blocks."""
        try:
            return self._card_text("en", self._installer.look(question.subject)).whole
        except RecadoError as error:
            return visible(str(error))

    async def remove(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        """Raises Refused where no skill of that name came from elsewhere."""
        language = run.person.language
        try:
            installed = await self._installer.installed(str(arguments["name"]))
        except RecadoError as error:
            raise Refused(refusal(language, error)) from error
        said = say(
            language, "Remove the skill {name}? ({hash})", name=installed.name, hash=installed.sha256[:12]
        )
        source = came_from(language, installed.source, installed.sent_on)
        return Card(
            with_sources(language, f"{said}\n{source}", run.sources, run.is_bundled),
            installed.name,
            ONCE,
            installed.sha256,
        )

    def _card_text(self, language: str, preview: Preview, most_bytes: int | None = None) -> CardText:
        card, sandboxed = preview.card, self._sandboxed
        text = card_text(language, card, preview.change, sandboxed=sandboxed, most_bytes=most_bytes)
        lines = [text.whole]
        if text.is_shortened:
            lines.append(
                say(
                    language, "This is shortened. The owner reads all of it with: {command}", command=_CONSOLE
                )
            )
        if card.tools:
            lines.append(asking(language, self._mode))
        return replace(text, whole="\n".join(lines))


def own_address(arguments: Mapping[str, JSON], run: TurnContext) -> None:
    """Raises Refused for an address that the person did not write: nothing is asked of it."""
    address = str(arguments.get("url", ""))
    if not is_written_in(address, run.own_words):
        raise Refused(not_written_by_them(run.person.language, address))
