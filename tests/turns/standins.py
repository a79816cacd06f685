"""Stand-ins for the parts of the house that a turn uses, and turns made by hand."""

import tempfile
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from app.channels.terminal import TerminalChannel
from app.http.transport import Transport
from app.llm.model import Model
from app.people import Conversation, Person
from app.routing.tool_catalog import Selection, ToolCatalog
from app.settings import Settings
from app.skills.skill import ToolSentences
from app.store import journal
from app.store.database import Connection, Database
from app.store.media import MediaFolder
from app.store.people import KnownPerson
from app.store.turn_state import InboxMessage, TurnState
from app.tools import ConfirmationPolicy, ExecutionEngine, Tool, ToolRegistry
from app.tools.files import Files
from app.tools.tool import Services
from app.turns.actions import Round, Transcript
from app.turns.profiles import Profiles
from app.turns.state import ToolContexts, TurnContext, TurnServices
from tests.store.rows import T, begun, conversation, inbound, no_limits, take

FOLDER = Path(tempfile.mkdtemp())


class Catalog:
    """Stands in for `ToolCatalog`: the tools of a registry; the category "bundled" belongs to the release."""

    def __init__(
        self,
        registry: ToolRegistry | None = None,
        outside: Collection[str] = (),
        bundled: Collection[str] = (),
    ) -> None:
        self.registry = registry or ToolRegistry()
        self.foreign_skills: tuple[str, ...] = ()
        self._outside = outside
        self._bundled = bundled

    def tool(self, name: str) -> Tool | None:
        return self.registry.find(name)

    def settings(self, _: str) -> dict[str, str]:
        return {}

    def hosts(self, _: Tool) -> None:
        return None

    def sentences(self, tool: Tool) -> ToolSentences | None:
        return None

    def is_bundled(self, name: str) -> bool:
        tool = self.tool(name)
        return name in self._bundled or (tool is not None and tool.category == "bundled")

    def is_outside(self, name: str) -> bool:
        tool = self.tool(name)
        return name in self._outside or (tool is not None and tool.outside and not self._outside)

    def acts(self, name: str) -> bool:
        return name != "search_tools"

    def foreign(self, skills: Iterable[str], tools: Iterable[str]) -> tuple[str, ...]:
        return self.foreign_skills


class NoWakes:
    def wake(self, person: str) -> None: ...


class NobodyKnown:
    def access_rules(self, realm: str) -> None: ...


def services_of(
    store: Database, catalog: Catalog, policy: ConfirmationPolicy | None = None, **settings: Any
) -> TurnServices:
    tools = cast(ToolCatalog, catalog)
    return TurnServices(
        store,
        cast(Model, None),
        tools,
        {},
        Profiles(NobodyKnown(), "UTC", store),
        NoWakes(),
        Settings(_env_file=None, **settings),
        ExecutionEngine(catalog.registry, policy or ConfirmationPolicy("yolo")),
        ToolContexts(store, tools, Services(), Transport(), data_quota=1000),
        MediaFolder(FOLDER),
        Files(FOLDER),
        no_limits(),
    )


def state_of(*members: InboxMessage, group: str = "", **options: Any) -> TurnState:
    given: dict[str, Any] = {
        "id": "t",
        "attempts": 1,
        "created_at": 0.0,
        "person": cast(KnownPerson, None),
        "conversation": Conversation("c", "ana", "whatsapp", group),
        "sticky_tools": (),
        "sticky_categories": (),
        "active_skills": (),
        "members": members,
        "journal": {},
        "exchanges": (),
        "quoted": {},
        "tokens_today": 0,
        "first_contact": False,
    }
    return TurnState(**{**given, **options})


async def begin(store: Database) -> TurnState:
    """Begin a turn of Ana's, in which the model was asked twice."""

    def write(conn: Connection) -> TurnState:
        where = conversation(conn)
        take(conn, inbound("w1"))
        state = begun(conn, where, "t1")
        for number in range(2):
            journal.record(conn, "t1", f"llm:{number}", "llm", '{"text": "", "calls": []}', T)
        return state

    return await store.tx(write)


def turn_of(
    store: Database | None,
    state: TurnState,
    catalog: Catalog,
    rounds: Sequence[Round] = (),
    policy: ConfirmationPolicy | None = None,
    **settings: Any,
) -> TurnContext:
    """Return a turn that is offered every tool of the catalogue."""
    offered = Selection((), tuple(tool.name for tool in catalog.registry.list_all()))
    person = Person(state.conversation.person_id, "whatsapp")
    services = services_of(cast(Database, store), catalog, policy, **settings)
    return TurnContext(state, person, TerminalChannel(), "", Transcript(offered, tuple(rounds)), services)
