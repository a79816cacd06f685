"""Installs from a chat: the cards that are asked about, and what the tools do after the yes.

A skill's tools reach `SkillInstalls` and `ServerInstalls` as `context.services.installer` and
`context.services.servers`; the turn asks their cards and guards about a call before it runs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Generic, ParamSpec, TypeVar

from app.errors import RecadoError
from app.http.transport import Transport
from app.i18n import program, say
from app.installs import sentences
from app.installs.card_text import PHONE_CHARACTERS, CardWriter
from app.installs.cards import quoted
from app.installs.directory import MAX_CHOICES, Directory, resolve, resolve_local
from app.installs.pipeline import Approval, InstallError, discard_old
from app.installs.servers import ServerInstaller
from app.installs.skills import SkillInstaller, is_written_in, tidy_skills
from app.llm.model import Model
from app.mcp.approved import InstalledServer, hashes, records, subject_of
from app.mcp.configuration import edit_server
from app.mcp.definitions import ServerState
from app.mcp.servers import McpServers
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.routing.tool_catalog import ToolCatalog
from app.settings import Settings
from app.store import approvals
from app.text import holds_secret, visible
from app.tools import ToolContext, ToolResult
from app.tools.plain import loads
from app.tools.result import Refused
from app.turns.cards import CARD_BYTES, ONCE, Card

CARD_LIMIT = CARD_BYTES - 1024  # of a skill's whole card: the sources of a tainted turn stand beside it
SOURCES_CHARACTERS = 140  # for whose words came before, which stands below a short card
START_SECONDS = 20.0  # how long a first start is waited for before the person is told its state
QUARANTINE_SECONDS = 7 * 24 * 3600.0

P = ParamSpec("P")
T = TypeVar("T")
InstallerT = TypeVar("InstallerT", bound=SkillInstaller | ServerInstaller)

log = logging.getLogger(__name__)


class Installs:
    """The installs of an assistant: cards and guards for its turns, services for its tools.

    `model` translates what authors say, None for none.
    """

    def __init__(
        self,
        settings: Settings,
        transport: Transport,
        sandbox: Sandbox,
        catalog: ToolCatalog,
        servers: McpServers,
        model: Model | None,
    ) -> None:
        self._data_dir = settings.data_dir
        self.writer = CardWriter(settings, model)
        self.skills = SkillInstalls(SkillInstaller(settings, transport), self.writer, catalog)
        installer, directory = ServerInstaller(settings, sandbox, catalog), Directory(settings, transport)
        self.servers = ServerInstalls(installer, directory, servers, self.writer)

    def tidy(self) -> None:
        """Finish what a kill interrupted and remove old versions. Blocks; called at the start."""
        self.servers.installer.tidy()
        try:
            tidy_skills(self._data_dir)
        except OSError as error:
            log.warning("earlier versions of skills could not be removed: %s", error)

    def discard_old(self, now: float, asked_about: Collection[str]) -> None:
        """Empty the quarantine of what is a week old and in none of these subjects of questions. Blocks."""
        discard_old(self._data_dir, now - QUARANTINE_SECONDS, asked_about)


def _in_words(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Turn errors of a method into `Refused` with words for the person; its last argument is the context."""

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except Refused:
            raise
        except RecadoError as error:
            context = args[-1]
            assert isinstance(context, ToolContext)
            raise Refused(sentences.refusal(context.language, error)) from error

    return call


class _ChatInstalls(Generic[InstallerT]):
    def __init__(self, installer: InstallerT, writer: CardWriter) -> None:
        self.installer = installer
        self._writer = writer

    def whole_card(self, question: approvals.Approval, language: str) -> str:
        """Write the card of an install for the console, of any length. Blocks."""
        try:
            return self._writer.whole(language, self.installer.load(question.subject)).text
        except RecadoError as error:
            return visible(str(error))


class SkillInstalls(_ChatInstalls[SkillInstaller]):
    """Previews, installs and removes skills for an owner; every method may raise `Refused`."""

    def __init__(self, installer: SkillInstaller, writer: CardWriter, catalog: ToolCatalog) -> None:
        super().__init__(installer, writer)
        self._catalog = catalog

    @_in_words
    async def preview(self, url: str, context: ToolContext) -> ToolResult:
        """Show the card of the skill at an address. Nothing is installed."""
        candidate = await self.installer.propose(url)
        card = await asyncio.to_thread(self._writer.whole, context.language, candidate)
        return _previewed(context.language, candidate.name, card)

    @_in_words
    async def install(self, url: str, context: ToolContext) -> ToolResult:
        """Install the skill whose card the person said yes to."""
        installed = await self.installer.commit(_consent(context, "skills add ADDRESS", url))
        self._catalog.refresh_soon()
        name, mark = installed.name, installed.sha256[:12]
        said = say(context.language, "✓ Installed: {name} ({hash})", name=name, hash=mark)
        return ToolResult.success({"name": name, "summary": said})

    @_in_words
    async def remove(self, name: str, context: ToolContext) -> ToolResult:
        """Remove the version of a skill that the person was asked about."""
        _consent(context, "skills remove NAME")
        await self.installer.remove(name, context.subject)
        self._catalog.refresh_soon()
        said = say(context.language, "✓ Removed: {name}", name=name)
        return ToolResult.success({"name": name, "summary": said})

    @_in_words
    async def install_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        await self.refuse_foreign_address(arguments, context)
        candidate = await self.installer.propose(str(arguments["url"]))
        whole = await asyncio.to_thread(self._writer.whole, context.language, candidate)
        if "details" in context.shown_again or len(whole.text.encode()) > CARD_LIMIT:
            return whole
        return await self._writer.short(context.language, candidate, _room(context))

    @_in_words
    async def removal_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        installed = await asyncio.to_thread(self.installer.installed, str(arguments["name"]))
        name, mark = installed.name, installed.sha256[:12]
        said = say(context.language, "Remove the skill {name}? ({hash})", name=name, hash=mark)
        subject = self.installer.removal_subject(installed)
        return Card(f"{said}\n{quoted(installed.source)}", name, ONCE, subject)

    async def refuse_foreign_address(self, arguments: Mapping[str, JSON], context: ToolContext) -> None:
        """Refuse an address that the person did not write, before anything is fetched."""
        address = str(arguments.get("url", ""))
        if not is_written_in(address, context.own_words):  # another's text, or the model, brought it
            said = say(
                context.language,
                "I fetch skills only from addresses that you write to me yourself. Send me this one if you "
                "want it: {address}",
                address=visible(address),
            )
            hint = "tell the person, and do not try another address on your own"
            raise Refused(ToolResult.failure("BAD_REQUEST", said, hint))


class ServerInstalls(_ChatInstalls[ServerInstaller]):
    """Finds, installs, switches and removes servers for an owner; every card may raise `Refused`."""

    def __init__(
        self, installer: ServerInstaller, directory: Directory, servers: McpServers, writer: CardWriter
    ) -> None:
        super().__init__(installer, writer)
        self.directory = directory
        self._servers = servers

    @_in_words
    async def search(self, words: str, context: ToolContext) -> ToolResult:
        """List servers of the registry by what they are for, also those that cannot be installed and why."""
        language = context.language
        found = await self.directory.search(words)
        if not found:
            return sentences.not_found(language, words)
        names = [entry.name for entry in found]
        return ToolResult.success({"names": names, "summary": sentences.list_text(language, found)})

    @_in_words
    async def info(self, name: str, context: ToolContext) -> ToolResult:
        """Describe a server that is here, else show the card of one of the registry."""
        language = context.language
        state = self._state(name)
        if state is not None:
            return ToolResult.success({"name": state.name, "summary": sentences.state_text(language, state)})
        plan = await self._plan({"name": name}, language)
        return _previewed(language, plan.name, self._writer.whole(language, plan))

    @_in_words
    async def install(self, context: ToolContext) -> ToolResult:
        """Install and start the server whose card the person said yes to."""
        language = context.language
        record = await self.installer.commit(_consent(context, "mcp add NAME --registry ID"))
        await self._servers.refresh()
        state = await self._servers.settled(record.name, START_SECONDS)
        summary = sentences.installed_text(language, record, state)
        data = {"name": record.name, "tools": list(state.tools), "summary": summary}
        undo = "" if record.updated_from else sentences.undo_words(language, record)
        # names and last words are the server's
        return ToolResult.success(data, outside=True, undo=undo)

    @_in_words
    async def remove(self, context: ToolContext) -> ToolResult:
        """Remove the server that the person was asked about; one that is gone already counts as removed."""
        _consent(context, "mcp remove NAME")
        name = context.subject.partition("/")[0]
        try:
            await self.installer.remove(name, context.subject)
        except InstallError as error:
            if error.code != "UNKNOWN":
                raise
        await self._servers.refresh()
        said = say(context.language, "✓ Removed: the server {name}", name=name)
        return ToolResult.success({"name": name, "summary": said})

    async def list(self, context: ToolContext) -> ToolResult:
        """List every server that is here with its state."""
        states = self._servers.states()
        listed = [{"name": one.name, "state": one.phase, "tools": list(one.tools)} for one in states]
        summary = sentences.states_text(context.language, states)
        return ToolResult.success({"servers": listed, "summary": summary})

    @_in_words
    async def switch(self, name: str, on: bool, context: ToolContext) -> ToolResult:
        """Turn a server on and tell its state, or off; it stays installed."""
        language = context.language
        known = self._known(name, language).name
        await asyncio.to_thread(edit_server, self.installer.config_path, known, enabled=on, disabled=None)
        await self._servers.refresh()
        if not on:
            said = say(language, "✓ Turned off: {name}", name=known)
            return ToolResult.success({"name": known, "summary": said})
        state = await self._servers.settled(known, START_SECONDS)
        said = say(language, "✓ Turned on: {name}", name=known)
        summary = f"{said}\n{sentences.state_text(language, state)}"
        return ToolResult.success({"name": known, "summary": summary}, outside=True)

    @_in_words
    async def approve(self, name: str, context: ToolContext) -> ToolResult:
        """Approve exactly the definitions that the card showed."""
        _consent(context, "mcp list")
        state = await self._started(name)
        if state is None or subject_of(state) != context.subject:
            raise InstallError("CHANGED", f"{name} was changed meanwhile; ask again")
        await self._servers.approve(state.name, hashes(state.held_back))
        await self._servers.settled(state.name, START_SECONDS)
        said = say(context.language, "✓ Approved: the tools of {name}", name=state.name)
        return ToolResult.success({"name": state.name, "summary": said})

    def whole_approval_card(self, question: approvals.Approval, language: str) -> str:
        """Write the card of tools that are held back for the console."""
        state = self._state(str(loads(question.arguments)["name"]))
        is_there = state is not None and subject_of(state) == question.subject
        gone = say(language, "What was asked about is gone.")
        return sentences.held_back_text(language, state) if is_there and state else gone

    @_in_words
    async def install_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        """Make the card, or raise `Refused` with a list to choose from or with the reason."""
        language = context.language
        asked = {**arguments, "name": _without_secrets(str(arguments["name"]))}
        if "offline" in context.shown_again:
            asked["network"] = False
        plan = await self._plan(asked, language)
        if "details" in context.shown_again:
            return self._writer.whole(language, plan)
        return await self._writer.short(language, plan, _room(context))

    @_in_words
    async def removal_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        language = context.language
        record = await self._record(str(arguments["name"]), language)
        which = f"{record.registry_id} {record.version}"
        asked = say(language, "Remove the server {name}? ({which})", name=record.name, which=which)
        rest = say(language, "Its data and its secrets go with it.")
        return Card(f"{asked}\n{rest}", record.name, ONCE, self.installer.removal_subject(record))

    @_in_words
    async def approval_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        language, name = context.language, str(arguments["name"])
        state = await self._started(name) or self._known(name, language)
        if not state.held_back:
            said = say(language, "Nothing of {name} waits to be approved.", name=quoted(state.name))
            raise Refused(ToolResult.failure("UNAVAILABLE", said))
        text = await asyncio.to_thread(sentences.held_back_text, language, state)
        question = say(language, "Approve these tools of {name}?", name=state.name)
        return Card(text, state.name, ONCE, subject_of(state), question)

    async def _plan(self, arguments: Mapping[str, JSON], language: str) -> InstalledServer:
        name = str(arguments["name"])
        found = await resolve(self.directory, name)
        if isinstance(found, list) and found:
            names = [entry.name for entry in found]
            data = {"names": names, "summary": sentences.list_text(language, found, asks=True)}
            to_pick = names if any(entry.reason is None for entry in found) else []
            # the words are their authors'
            raise Refused(ToolResult.success(data, outside=True, choices=to_pick))
        if isinstance(found, list):
            raise Refused(sentences.not_found(language, name))
        folder, network = str(arguments.get("folder") or ""), arguments.get("network")
        try:
            return await self.installer.propose(found, "", arguments.get("values"), folder, network)
        except InstallError as error:
            if error.code != "NEEDS_FOLDER":
                raise
            folders = await asyncio.to_thread(_folder_names, self._writer.workspace)
            raise Refused(sentences.needs_folder(language, name, folders)) from error

    def _state(self, name: str) -> ServerState | None:
        states = {state.name: state for state in self._servers.states()}
        return states.get(resolve_local(name, states))

    async def _started(self, name: str) -> ServerState | None:
        """Return the state once its tools are known: after a start of ours it may be about to start too."""
        state = self._state(name)
        if state is not None:
            with suppress(KeyError):  # taken out meanwhile
                return await self._servers.settled(state.name, START_SECONDS)
        return None

    async def _record(self, name: str, language: str) -> InstalledServer:
        known = {one.name: one for one in await asyncio.to_thread(records, self.installer.data_dir)}
        if record := known.get(resolve_local(name, known)):
            return record
        known_as = self._known(name, language).name
        said = say(
            language,
            "The server {name} was not installed from a chat: it stands in your own file or belongs to a "
            "skill. In a shell: {command}",
            name=quoted(known_as),
            command=f"{program()} mcp remove {visible(known_as)}",
        )
        raise Refused(ToolResult.failure("UNAVAILABLE", said))

    def _known(self, name: str, language: str) -> ServerState:
        if state := self._state(name):
            return state
        said = say(language, "There are no MCP servers here yet.")
        if known := ", ".join(state.name for state in self._servers.states()):
            named = quoted(name[: sentences.LONGEST_NAME])
            said = say(
                language, "There is no server {name} here. There are: {known}", name=named, known=known
            )
        raise Refused(ToolResult.failure("SERVER_NOT_FOUND", said))


def _consent(context: ToolContext, command: str, address: str = "") -> Approval:
    """Return the yes to the call's card. Raises `Refused` at a terminal without a server: it shows none."""
    if not context.subject:
        shell = f"{program()} {command}"
        said = say(context.language, "I cannot ask you about it here. In a shell: {command}", command=shell)
        raise Refused(ToolResult.failure("DENIED", said))
    assert context.person is not None
    return Approval(context.subject, context.person.id, context.choice == "trust", address)


def _folder_names(workspace: Path) -> list[str]:
    found = (one.name for one in workspace.glob("[!.]*/"))
    return sorted(name for name in found if name != "people")[:MAX_CHOICES]


def _room(context: ToolContext) -> int:
    return PHONE_CHARACTERS - (SOURCES_CHARACTERS if context.sources else 0)


def _previewed(language: str, name: str, card: Card) -> ToolResult:
    said = say(
        language, "{card}\n\nNothing is installed yet. Tell me to install it if you want it.", card=card.text
    )
    return ToolResult.success({"name": name, "summary": said})


def _without_secrets(name: str) -> str:
    """Drop secrets from search words; exact names of the registry have a slash and may look like a key."""
    words = name.split()
    kept = " ".join(word for word in words if "/" in word or not holds_secret(word))
    return kept if len(kept) == len(" ".join(words)) else kept.rstrip(" .,;:")
