"""Installing skills from a chat, loaded when somebody first asks: what reads archives and code is large."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from app.http.transport import Transport
from app.mcp.skill_servers import forget_gone, kept_for
from app.messages import JSON
from app.people import Person
from app.store.approvals import OpenQuestion
from app.tools import ToolContext, ToolResult
from app.tools.plain import loads
from app.turns.approvals import Guard, MakesCard
from app.turns.cards import Card, call_card, with_sources
from app.turns.state import TurnContext

if TYPE_CHECKING:
    from app.installs.install_cards import InstallCards
    from app.installs.skill_service import InstallService

INSTALL_TOOL = "install_skill_from_url"
REMOVE_TOOL = "remove_skill"
PREVIEW_TOOL = "preview_skill_from_url"


@dataclass(frozen=True, slots=True)
class _Loaded:
    cards: "InstallCards"
    service: "InstallService"


class Installing:
    """What the tools of `expand` ask and do: as `InstallCards` and `InstallService`, which it loads.

    `on_change` is called once what is installed may be another.
    """

    def __init__(
        self,
        transport: Transport,
        data_dir: Path,
        skills_dir: Path,
        *,
        sandboxed: bool,
        mode: str,
        on_change: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._data_dir = data_dir
        self._skills_dir = skills_dir
        self._sandboxed = sandboxed
        self._mode = mode
        self._on_change = on_change
        self.cards: Mapping[str, MakesCard] = {
            INSTALL_TOOL: self._install_card,
            REMOVE_TOOL: self._remove_card,
        }
        self.guards: Mapping[str, Guard] = {INSTALL_TOOL: self._guard, PREVIEW_TOOL: self._guard}

    async def preview(self, url: str, person: Person) -> ToolResult:
        return await (await self._load()).service.preview(url, person)

    async def install(self, url: str, context: ToolContext) -> ToolResult:
        loaded, name = await self._load(), context.subject.partition("/")[2].partition("/")[0]
        return await self._changed(name, loaded.service.install(url, context))

    async def remove(self, name: str, context: ToolContext) -> ToolResult:
        loaded = await self._load()
        return await self._changed(name, loaded.service.remove(name, context))

    def whole(self, question: OpenQuestion) -> str:
        """The card of any question for the console, in English and of any length. Blocks."""
        if question.tool != INSTALL_TOOL:
            return call_card("en", question.tool, loads(question.arguments), question.sources)
        return with_sources("en", self._loaded.cards.whole(question), question.sources)

    def discard_old(self, before: float, asked_about: Collection[str]) -> None:
        """Removes what was looked at before that time (Unix seconds), not installed, and is in none of these
        subjects of questions. Blocks."""
        if (self._data_dir / "quarantine").exists():
            from app.installs.quarantine import discard_old

            discard_old(self._data_dir, before, {subject.partition("/")[0] for subject in asked_about})

    async def _changed(self, name: str, change: Awaitable[ToolResult]) -> ToolResult:
        """What a change of that skill comes to; the secrets of servers that it has no more go."""
        secrets = await asyncio.to_thread(kept_for, self._data_dir, name)
        result = await change
        await asyncio.to_thread(forget_gone, self._data_dir, name, secrets)
        self._on_change()
        return result

    async def _install_card(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        return await (await self._load()).cards.install(arguments, run)

    async def _remove_card(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        return await (await self._load()).cards.remove(arguments, run)

    async def _guard(self, arguments: Mapping[str, JSON], run: TurnContext) -> None:
        await self._load()
        from app.installs.install_cards import own_address

        own_address(arguments, run)

    async def _load(self) -> _Loaded:
        """Off the loop: the imports take longer than anybody else should wait."""
        return await asyncio.to_thread(lambda: self._loaded)

    @cached_property
    def _loaded(self) -> _Loaded:
        from app.installs.install_cards import InstallCards
        from app.installs.skill_installer import Installer
        from app.installs.skill_service import InstallService

        installer = Installer(self._transport, self._data_dir, self._skills_dir)
        return _Loaded(
            InstallCards(installer, sandboxed=self._sandboxed, mode=self._mode),
            InstallService(installer, sandboxed=self._sandboxed),
        )
