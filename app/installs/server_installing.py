"""Installing MCP servers from a chat, loaded when somebody first asks: most conversations never do."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from sqlite3 import Connection
from typing import TYPE_CHECKING

import orjson

from app.messages import JSON, Channel
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.store import outbox, people
from app.store.approvals import OpenQuestion
from app.store.database import Database
from app.store.outbox import Draft
from app.tools import ToolContext
from app.turns.approvals import MakesCard
from app.turns.cards import Card, with_sources
from app.turns.state import TurnContext

if TYPE_CHECKING:
    from app.installs.directory import Directory
    from app.installs.server_cards import ServerCards
    from app.installs.server_installer import ServerInstaller
    from app.installs.server_service import ServerService
    from app.mcp.servers import McpServers

INSTALL_TOOL = "install_mcp_server"
REMOVE_TOOL = "remove_mcp_server"
APPROVE_TOOL = "approve_mcp_tools"


@dataclass(frozen=True, slots=True)
class _Loaded:
    directory: "Directory"
    cards: "ServerCards"
    service: "ServerService"


class ServerInstalling:
    """What the tools of `expand` ask and do about servers, as `ServerCards` and `ServerService`.

    `directory` and `installer` make theirs when they are first needed; `wake_person` is told of a notice.
    """

    def __init__(
        self,
        settings: Settings,
        servers: "McpServers",
        directory: Callable[[], "Directory"],
        installer: Callable[[], "ServerInstaller"],
        *,
        store: Database,
        channels: Mapping[str, Channel],
        sandbox: Sandbox,
        wake_person: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._servers = servers
        self._directory = directory
        self._installer = installer
        self._store = store
        self._channels = channels
        self._sandbox = sandbox
        self._wake_person = wake_person
        self.cards: Mapping[str, MakesCard] = {
            INSTALL_TOOL: self._install_card,
            REMOVE_TOOL: self._remove_card,
            APPROVE_TOOL: self._approval_card,
        }

    async def close(self) -> None:
        """Ends what was begun in the background, where anything was."""
        if "_loaded" in self.__dict__:
            await self._loaded.directory.close()

    async def loaded(self) -> "ServerService":
        """What searches, installs, switches and removes."""
        return (await self._load()).service

    def asks_about(self, question: OpenQuestion) -> bool:
        """Whether a question has a card of this kind."""
        return question.tool in (INSTALL_TOOL, APPROVE_TOOL)

    def whole(self, question: OpenQuestion) -> str:
        """The card of such a question for the console, in English and of any length. Blocks."""
        cards = self._loaded.cards
        if question.tool == INSTALL_TOOL:
            return with_sources("en", cards.whole(question), question.sources)
        name = str(orjson.loads(question.arguments)["name"])
        return with_sources("en", cards.whole_approval(question, name), question.sources)

    async def _install_card(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        return await (await self._load()).cards.install(arguments, run)

    async def _remove_card(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        return await (await self._load()).cards.remove(arguments, run)

    async def _approval_card(self, arguments: Mapping[str, JSON], run: TurnContext) -> Card:
        return await (await self._load()).cards.approve(arguments, run)

    async def _load(self) -> _Loaded:
        """Off the loop: the imports take longer than anybody else should wait."""
        return await asyncio.to_thread(lambda: self._loaded)

    @cached_property
    def _loaded(self) -> _Loaded:
        from app.installs.server_cards import ServerCards
        from app.installs.server_service import ServerService

        settings, directory, installer = self._settings, self._directory(), self._installer()
        service = ServerService(
            directory,
            installer,
            self._servers,
            data_dir=settings.data_dir,
            config_path=settings.mcp_config_path,
            sandboxed=not self._sandbox.off,
            tell=self._tell,
        )
        cards = ServerCards(service, installer, mode=settings.confirmation_mode)
        return _Loaded(directory, cards, service)

    async def _tell(self, context: ToolContext, number: int, text: str) -> None:
        """A notice about a call; made again after a crash it is not sent again."""
        person, channel = context.person, self._channels[context.channel]
        assert person is not None
        now, source = time.time(), f"progress:{context.idempotency_key}:{number}"

        def put(conn: Connection) -> None:
            conversation = people.conversation(conn, person.id, context.channel, "", now)
            outbox.put_reply(conn, conversation, source, Draft(text, tuple(channel.render(text))), now)

        await self._store.tx(put)
        self._wake_person(person.id)
