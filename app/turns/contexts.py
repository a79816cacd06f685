"""Make the contexts that tool functions receive."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.http.address import origins
from app.http.transport import THREAD_SECONDS, HttpClient, Transport
from app.routing.tool_catalog import ToolCatalog
from app.store.approvals import Approval
from app.store.database import Database
from app.store.skill_data import READ_SECONDS, SkillStore
from app.tools import Tool, ToolContext
from app.tools.plain import loads
from app.tools.tool import InThread, Services
from app.turns.cards import call_card, named_card, with_sources
from app.turns.state import TurnContext


class ToolContexts:
    """Knows what a call has at hand, whoever makes it: store, addresses, settings and services.

    `services` are given to tools of bundled skills by name; `data_quota` is how many bytes skills may keep
    for a person, 0 for no limit.
    """

    def __init__(
        self,
        store: Database,
        tools: ToolCatalog,
        services: Mapping[str, object] | None = None,
        transport: Transport | None = None,
        data_quota: int = 0,
    ) -> None:
        self._store = store
        self._tools = tools
        self._services = Services(services or {})
        self._transport = transport
        self._data_quota = data_quota

    def store_for(self, tool: Tool, person: str, *, outside: bool) -> SkillStore:
        """Return one call's view of what a tool keeps; `outside`: text of others may come into it."""
        is_outside = outside or tool.outside
        return SkillStore(self._store, person, tool.category, self._data_quota, outside=is_outside)

    def make(self, tool: Tool | None, store: SkillStore | None) -> ToolContext:
        if tool is None:
            return ToolContext()
        settings = self._tools.settings(tool.category)
        kept: Any = store if store is None or tool.is_async else InThread(store, READ_SECONDS)
        return ToolContext(
            store=kept,
            http=self._http(tool, settings),
            settings=settings,
            services=self._services if self._tools.is_bundled(tool.name) else Services(),
        )

    def of_turn(self, turn: TurnContext, tool: Tool | None, store: SkillStore | None = None) -> ToolContext:
        return replace(
            self.make(tool, store),
            person=turn.person,
            conversation=turn.state.conversation.id,
            channel=turn.state.conversation.channel,
            chosen=turn.chosen_skills,
            sources=turn.sources,
            message=turn.said,
            own_words=turn.own_words,
        )

    def whole_card(self, question: Approval, language: str = "en") -> str:
        """Write the card of an open question for the console, of any length. Blocks."""
        tool, arguments = self._tools.tool(question.tool), loads(question.arguments)
        if tool is not None and tool.whole_card is not None:
            return tool.whole_card(question, self._services, language)
        if tool is None:
            text = named_card(language, question.tool, arguments).text
        else:
            text = call_card(language, tool, arguments, self._tools.sentences(tool)).text
        return with_sources(language, text, question.sources, self._tools)

    def _http(self, tool: Tool, settings: Mapping[str, str]) -> HttpClient | InThread | None:
        if self._transport is None:
            return None
        client = HttpClient(self._transport, self._tools.hosts(tool), origins(settings.values()))
        return client if tool.is_async else InThread(client, THREAD_SECONDS)
