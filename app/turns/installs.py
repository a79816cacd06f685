"""Installing and removing skills in a chat: what is fetched for whom, and the cards of the questions."""

from collections.abc import Mapping
from dataclasses import replace

import orjson

from app.characters import visible
from app.errors import RecadoError
from app.language import say
from app.messages import JSON
from app.skills.card_text import CardText, card_text
from app.skills.cards import quoted
from app.skills.installer import Installer, Preview, is_written_in
from app.skills.refusals import not_written_by_them, refusal
from app.store.approvals import OpenQuestion
from app.turns.consent import Refused
from app.turns.questions import INSTALL, ONCE, Card, call_card, with_sources
from app.turns.run import Run

INSTALL_TOOL = "install_skill_from_url"
REMOVE_TOOL = "remove_skill"
PREVIEW_TOOL = "preview_skill_from_url"


class InstallQuestions:
    """Makes the cards of the tools of `expand` that ask in every mode."""

    def __init__(self, installer: Installer, *, sandboxed: bool) -> None:
        self._installer = installer
        self._sandboxed = sandboxed

    async def install(self, arguments: Mapping[str, JSON], run: Run) -> Card:
        """Fetches the skill and shows what its bytes say. Raises Refused, before any request where the
        address is not the person's own."""
        own_address(arguments, run)
        language = run.person.language
        try:
            preview = await self._installer.preview(str(arguments["url"]))
        except RecadoError as error:
            raise Refused(refusal(language, error)) from error
        card, shown = preview.card, self._card_text(language, preview)
        return Card(
            with_sources(language, shown.whole, run.sources),
            f"{card.name} ({card.sha256[:12]})",
            INSTALL,
            subject=preview.subject,
            question=shown.question,
        )

    def whole(self, question: OpenQuestion) -> str:
        """The card of a question for the console, in English and of any length. Blocks."""
        if question.tool != INSTALL_TOOL:
            return call_card("en", question.tool, orjson.loads(question.arguments), ())
        try:
            return self._card_text("en", self._installer.look(question.subject)).whole
        except RecadoError as error:
            return visible(str(error))

    async def remove(self, arguments: Mapping[str, JSON], run: Run) -> Card:
        """Raises Refused where no skill of that name came from elsewhere."""
        language = run.person.language
        try:
            installed = await self._installer.installed(str(arguments["name"]))
        except RecadoError as error:
            raise Refused(refusal(language, error)) from error
        said = say(
            language, "Remove the skill {name}? ({hash})", name=installed.name, hash=installed.sha256[:12]
        )
        source = say(language, "From: {source}", source=quoted(installed.source))
        return Card(
            with_sources(language, f"{said}\n{source}", run.sources), installed.name, ONCE, installed.sha256
        )

    def _card_text(self, language: str, preview: Preview) -> CardText:
        text = card_text(language, preview.card, preview.change, sandboxed=self._sandboxed)
        if not preview.card.tools:
            return text
        choices = say(
            language, "Install: I ask before each of its calls. Install+trust: only where it says so itself."
        )
        return replace(text, whole=f"{text.whole}\n{choices}")


def own_address(arguments: Mapping[str, JSON], run: Run) -> None:
    """Raises Refused for an address that the person did not write: nothing is asked of it."""
    address = str(arguments.get("url", ""))
    if not is_written_in(address, run.own_words):
        raise Refused(not_written_by_them(run.person.language, address))
