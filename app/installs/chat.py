"""Installs from a chat: the cards that are asked about, and what the tools do after the yes.

A skill's tools reach `SkillInstalls` and `ServerInstalls` as `context.services.installer` and
`context.services.servers`; the turn asks their cards and guards about a call before it runs.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Protocol

from app.errors import RecadoError
from app.http.transport import Transport
from app.i18n import say
from app.installs import quarantine, sentences
from app.installs.card_text import PHONE_CHARACTERS, CardText, CardWriter, origin_lines
from app.installs.cards import quoted
from app.installs.directory import MAX_CHOICES, Directory, build_directory, resolve, resolve_local
from app.installs.errors import InstallError
from app.installs.pipeline import Approval, Candidate, Notices, Stage, telling_progress
from app.installs.plans import Plan
from app.installs.sentences import quoted_name, server_refusal, skill_refusal
from app.installs.servers import ServerInstaller, ServerRequest, SkillNames
from app.installs.skills import SkillInstaller, is_written_in, tidy_skills
from app.llm.model import Model
from app.mcp.definitions import ServerState
from app.mcp.files import set_enabled
from app.mcp.installed import InstalledServer, records
from app.mcp.pins import hashes, subject_of
from app.mcp.servers import McpServers
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.store.approvals import Choice, OpenQuestion
from app.store.disk_space import MEGABYTE
from app.text import visible
from app.tools import ToolContext, ToolResult
from app.tools.masking import holds_secret
from app.tools.plain import loads
from app.turns.approvals import Refused
from app.turns.cards import CARD_BYTES, INSTALL, Card, with_sources

CARD_LIMIT = CARD_BYTES - 1024  # of a skill's whole card: the sources of a tainted turn stand beside it
SOURCES_CHARACTERS = 140  # for whose words came before, which stands below a short card
PREVIEW_LIMIT = 12 * 1024  # of a card as an answer, which has at most 16,000 characters
START_SECONDS = 20.0  # how long a first start is waited for before the person is told its state
QUARANTINE_SECONDS = 7 * 24 * 3600.0

Method = Callable[..., Coroutine[Any, Any, Any]]
Refusal = Callable[[str, RecadoError], ToolResult]

log = logging.getLogger(__name__)


class Catalog(SkillNames, Protocol):
    """The catalogue of tools, which is loaded again after a change."""

    def refresh_soon(self) -> None: ...


@dataclass(frozen=True)
class Installs:
    """The installs of an assistant: cards and guards for its turns, services for its tools."""

    data_dir: Path
    skills: "SkillInstalls"
    servers: "ServerInstalls"

    def tidy(self) -> None:
        """Finish what a kill interrupted and remove old versions. Blocks; called at the start."""
        self.servers.installer.tidy()
        try:
            tidy_skills(self.data_dir)
        except OSError as error:
            log.warning("earlier versions of skills could not be removed: %s", error)

    def discard_old(self, now: float, asked_about: Collection[str]) -> None:
        """Empty the quarantine of what is a week old and in none of these subjects of questions. Blocks."""
        quarantine.discard_old(self.data_dir, now - QUARANTINE_SECONDS, asked_about)

    async def close(self) -> None:
        """End a fetch of the registry that is under way."""
        await self.servers.directory.close()


def build_installs(
    settings: Settings,
    transport: Transport,
    sandbox: Sandbox,
    catalog: Catalog,
    servers: McpServers,
    notices: Notices,
    model: Model | None,
) -> Installs:
    """Build the installs of a server; `model` translates what authors say, None for none."""
    writer = CardWriter.of(settings, model)
    least_free = int(settings.free_space_mb * MEGABYTE)
    skill_installer = SkillInstaller(transport, settings.data_dir, settings.skills_dir, least_free=least_free)
    server_installs = ServerInstalls(
        ServerInstaller(settings, sandbox, catalog),
        writer,
        build_directory(settings, transport),
        servers,
        settings.mcp_config_path,
        notices,
    )
    return Installs(settings.data_dir, SkillInstalls(skill_installer, writer, catalog), server_installs)


def _refusing(refusal: Refusal, *, by_result: bool = False) -> Callable[[Method], Method]:
    """Make a method raise `Refused`, or return its result, for every error, in words of `refusal`.

    The last argument of the method is the context of the call.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        async def call(*args: Any) -> Any:
            try:
                return await method(*args)
            except RecadoError as error:
                refused = error if isinstance(error, Refused) else Refused(refusal(args[-1].language, error))
                if by_result:
                    return refused.result
                raise refused from error.__cause__

        return call

    return decorate


_skill_tool, _skill_card = _refusing(skill_refusal, by_result=True), _refusing(skill_refusal)
_server_tool, _server_card = _refusing(server_refusal, by_result=True), _refusing(server_refusal)


@dataclass(frozen=True)
class SkillInstalls:
    """Previews, installs and removes skills for an owner; every card may raise `Refused`."""

    installer: SkillInstaller
    writer: CardWriter
    catalog: Catalog

    @_skill_tool
    async def preview(self, url: str, context: ToolContext) -> ToolResult:
        """Show the card of the skill at an address. Nothing is installed."""
        candidate = await self.installer.propose(url)
        text = await asyncio.to_thread(self.writer.whole, context.language, candidate, PREVIEW_LIMIT)
        return _previewed(context.language, candidate.name, text)

    @_skill_tool
    async def install(self, url: str, context: ToolContext) -> ToolResult:
        """Install the skill whose card the person said yes to."""
        language = context.language
        _require_consent(context, "recado skills add ADDRESS")
        installed = await self.installer.commit(_approval(context, url))
        self.catalog.refresh_soon()
        said = say(language, "✓ Installed: {name} ({hash})", name=installed.name, hash=installed.sha256[:12])
        return ToolResult.success({"name": installed.name, "summary": said})

    @_skill_tool
    async def remove(self, name: str, context: ToolContext) -> ToolResult:
        """Remove the version of a skill that the person was asked about."""
        _require_consent(context, "recado skills remove NAME")
        await self.installer.remove(name, context.subject)
        self.catalog.refresh_soon()
        said = say(context.language, "✓ Removed: {name}", name=name)
        return ToolResult.success({"name": name, "summary": said})

    def whole_card(self, question: OpenQuestion) -> str:
        """Write the card of an install for the console. Blocks."""
        return _whole_card(self.writer, self.installer, question)

    @_skill_card
    async def install_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        await self.refuse_foreign_address(arguments, context)
        language = context.language
        candidate = await self.installer.propose(str(arguments["url"]))
        whole = await asyncio.to_thread(self.writer.detailed, language, candidate, CARD_LIMIT)
        if "details" in context.shown_again or len(whole.text.encode()) > CARD_LIMIT:
            return _install_card(candidate, whole)
        return _install_card(
            candidate, await self.writer.short(language, candidate, _room(context)), "details"
        )

    @_skill_card
    async def removal_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        language = context.language
        record = await asyncio.to_thread(self.installer.installed, str(arguments["name"]))
        said = say(language, "Remove the skill {name}? ({hash})", name=record.name, hash=record.sha256[:12])
        lines = [said, *origin_lines(language, record.source, record.sent_on)]
        return Card("\n".join(lines), record.name, subject=self.installer.removal_subject(record))

    async def refuse_foreign_address(self, arguments: Mapping[str, JSON], context: ToolContext) -> None:
        """Refuse an address that the person did not write, before anything is fetched."""
        address = str(arguments.get("url", ""))
        if not is_written_in(address, context.own_words):
            said = say(
                context.language,
                "I fetch skills only from addresses that you write to me yourself. Send me this one if you "
                "want it: {address}",
                address=visible(address),
            )
            hint = "tell the person, and do not try another address on your own"
            raise Refused(ToolResult.failure("BAD_REQUEST", said, hint))


@dataclass(frozen=True)
class ServerInstalls:
    """Finds, installs, switches and removes servers for an owner; every card may raise `Refused`."""

    installer: ServerInstaller
    writer: CardWriter
    directory: Directory
    servers: McpServers
    config_path: Path
    notices: Notices

    @_server_tool
    async def search(self, words: str, context: ToolContext) -> ToolResult:
        """List servers of the registry by what they are for, also those that cannot be installed and why."""
        found = await self.directory.search(words, MAX_CHOICES)
        if not found:
            return await self._not_found(words, context.language)
        names = [entry.name for entry in found]
        summary = sentences.found_text(context.language, found)
        return ToolResult.success({"names": names, "summary": summary})

    @_server_tool
    async def info(self, name: str, context: ToolContext) -> ToolResult:
        """Describe a server that is here, else show the card of one of the registry."""
        language = context.language
        state = self._state(name)
        if state is not None:
            summary = sentences.state_text(language, state)
            return ToolResult.success({"name": state.name, "summary": summary})
        plan = await self._plan({"name": name}, language)
        return _previewed(language, plan.name, self.writer.whole(language, plan))

    @_server_tool
    async def install(self, context: ToolContext) -> ToolResult:
        """Install and start the server whose card the person said yes to."""
        language = context.language
        _require_consent(context, "recado mcp add NAME --registry ID")
        stages = _stages(language)
        async with telling_progress(self.notices, context, stages["downloading"]) as reach:
            record = await self.installer.commit(_approval(context), lambda stage: reach(stages[stage]))
            await self.servers.refresh()
            state = await self.servers.settled(record.name, START_SECONDS)
        summary = sentences.installed_text(language, record, state)
        data = {"name": record.name, "tools": list(state.tools), "summary": summary}
        undo = "" if record.updated_from else sentences.undo_words(language, record)
        # names and last words are the server's
        return ToolResult.success(data, outside=True, undo=undo)

    @_server_tool
    async def remove(self, context: ToolContext) -> ToolResult:
        """Remove the server that the person was asked about; one that is gone already counts as removed."""
        _require_consent(context, "recado mcp remove NAME")
        name = context.subject.partition("/")[0]
        try:
            await self.installer.remove(name, context.subject)
        except InstallError as error:
            if error.code == "CHANGED":
                return _changed_meanwhile(context.language)
            if error.code != "UNKNOWN":
                raise
        await self.servers.refresh()
        said = say(context.language, "✓ Removed: the server {name}", name=name)
        return ToolResult.success({"name": name, "summary": said})

    async def list(self, context: ToolContext) -> ToolResult:
        """List every server that is here with its state."""
        states = self.servers.states()
        listed = [{"name": one.name, "state": one.phase, "tools": list(one.tools)} for one in states]
        summary = sentences.states_text(context.language, states)
        return ToolResult.success({"servers": listed, "summary": summary})

    @_server_tool
    async def enable(self, name: str, context: ToolContext) -> ToolResult:
        """Turn a server on again, and tell its state."""
        language = context.language
        found = await self._switch(name, True, language)
        state = await self.servers.settled(found, START_SECONDS)
        done = say(language, "✓ Turned on: {name}", name=found)
        data = {"name": found, "summary": f"{done}\n{sentences.state_text(language, state)}"}
        return ToolResult.success(data, outside=True)

    @_server_tool
    async def disable(self, name: str, context: ToolContext) -> ToolResult:
        """Turn a server off; it stays installed."""
        found = await self._switch(name, False, context.language)
        said = say(context.language, "✓ Turned off: {name}", name=found)
        return ToolResult.success({"name": found, "summary": said})

    @_server_tool
    async def approve(self, name: str, context: ToolContext) -> ToolResult:
        """Approve exactly the definitions that the card showed."""
        _require_consent(context, "recado mcp approve NAME")
        state = await self._started(name)
        if state is None or subject_of(state) != context.subject:
            return _changed_meanwhile(context.language)
        await self.servers.approve(state.name, hashes(state.held_back))
        await self.servers.settled(state.name, START_SECONDS)
        said = say(context.language, "✓ Approved: the tools of {name}", name=state.name)
        return ToolResult.success({"name": state.name, "summary": said})

    def whole_card(self, question: OpenQuestion) -> str:
        """Write the card of an install for the console. Blocks."""
        return _whole_card(self.writer, self.installer, question)

    def whole_approval_card(self, question: OpenQuestion) -> str:
        """Write the card of tools that are held back for the console."""
        state = self._state(str(loads(question.arguments)["name"]))
        text = "what was asked about is gone"
        if state is not None and subject_of(state) == question.subject:
            text = sentences.held_back_text("en", state)
        return with_sources("en", text, question.sources)

    @_server_card
    async def install_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        """Make the card, or raise `Refused` with a list to choose from or with the reason."""
        language = context.language
        warning = _secret_warning(language) if holds_secret(context.message) else ""
        asked = {**arguments, "name": _without_secrets(str(arguments["name"]))}
        if "offline" in context.shown_again:
            asked["network"] = False
        try:
            plan = await self._plan(asked, language)
        except Refused as refused:
            raise Refused(_with_warning(warning, refused.result)) from refused
        written: tuple[Choice, ...] = ("offline",) if plan.grants.network else ()
        if "details" in context.shown_again:
            text = self.writer.detailed(language, plan)
        else:
            written = ("details", *written)
            text = await self.writer.short(language, plan, _room(context) - len(warning))
        text = replace(text, text="\n".join(filter(None, (text.text, warning))))
        return _install_card(plan, text, *written)

    @_server_card
    async def removal_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        language = context.language
        record = await self._record(str(arguments.get("name") or ""), language)
        which = f"{record.registry_id} {record.version}"
        asked = say(language, "Remove the server {name}? ({which})", name=record.name, which=which)
        text = f"{asked}\n{say(language, 'Its data and its secrets go with it.')}"
        return Card(text, record.name, subject=self.installer.removal_subject(record))

    @_server_card
    async def approval_card(self, arguments: Mapping[str, JSON], context: ToolContext) -> Card:
        language, name = context.language, str(arguments["name"])
        state = await self._started(name)
        if state is None:
            raise Refused(self._unknown(name, language))
        if not state.held_back:
            said = say(language, "Nothing of {name} waits to be approved.", name=quoted(state.name))
            raise Refused(ToolResult.failure("UNAVAILABLE", said))
        text = await asyncio.to_thread(sentences.held_back_text, language, state)
        question = sentences.held_back_question(language, state.name)
        return Card(text, state.name, subject=subject_of(state), question=question)

    async def _plan(self, arguments: Mapping[str, JSON], language: str) -> Plan:
        """Plan the install that is meant, or raise `Refused` with what to choose from, or why not."""
        name = str(arguments["name"])
        found = await resolve(self.directory, name)
        if found.entry is None and found.choices:
            names = [entry.name for entry in found.choices]
            data = {"names": names, "summary": sentences.choices_text(language, found.choices)}
            to_pick = names if any(entry.reason is None for entry in found.choices) else []
            # the words are their authors'
            raise Refused(ToolResult.success(data, outside=True, choices=to_pick))
        entry = found.entry
        if entry is None:
            raise Refused(await self._not_found(name, language))
        if entry.reason is not None:
            reason = sentences.reason_said(language, entry.reason)
            shown = quoted(entry.name)
            said = say(language, "{name} cannot be installed here: {reason}", name=shown, reason=reason)
            raise Refused(ToolResult.failure("NOT_INSTALLABLE", said, outside=True))
        values, folder = arguments.get("values") or {}, str(arguments.get("folder") or "")
        request = ServerRequest(entry, values=values, folder=folder, network=arguments.get("network"))
        try:
            return await self.installer.propose(request)
        except InstallError as error:
            if error.code != "NEEDS_FOLDER":
                raise
            folders = await asyncio.to_thread(_folder_names, self.writer.workspace)
            raise Refused(sentences.needs_folder(language, name, folders)) from error

    async def _not_found(self, name: str, language: str) -> ToolResult:
        """Say that the registry has no such server, and what it has servers for."""
        topics = await self.directory.nearest_topics(name, language)
        said = say(language, "I found no server like {name} in the registry.", name=quoted_name(name))
        if topics:
            listed = ", ".join(topics)
            said += " " + say(language, "There are servers for, among others: {topics}.", topics=listed)
        hint = say(
            language,
            "I never take a command or an address of a server from a chat: for those there is recado mcp add "
            "in a shell.",
        )
        return ToolResult.failure("SERVER_NOT_FOUND", said, hint)

    def _state(self, name: str) -> ServerState | None:
        states = {state.name: state for state in self.servers.states()}
        return states.get(resolve_local(name, states))

    async def _started(self, name: str) -> ServerState | None:
        """Return the state once its tools are known: after a start of ours it may be about to start too."""
        state = self._state(name)
        if state is not None:
            with suppress(KeyError):  # taken out meanwhile
                return await self.servers.settled(state.name, START_SECONDS)
        return None

    async def _record(self, name: str, language: str) -> InstalledServer:
        """Return the record of the server that is meant, the newest one for no name. Raises `Refused`."""
        known = {one.name: one for one in await asyncio.to_thread(records, self.installer.data_dir)}
        if name.strip():
            record = known.get(resolve_local(name, known))
        else:
            record = max(known.values(), key=lambda one: one.installed_at, default=None)
        if record is not None:
            return record
        if not name.strip():
            said = say(language, "No MCP server was installed here lately, so there is nothing to undo.")
            raise Refused(ToolResult.failure("SERVER_NOT_FOUND", said))
        state = self._state(name)
        if state is None:
            raise Refused(self._unknown(name, language))
        said = say(
            language,
            "The server {name} was not installed from a chat: it stands in your own file or belongs to a "
            "skill. In a shell: {command}",
            name=quoted(state.name),
            command=f"recado mcp remove {visible(state.name)}",
        )
        raise Refused(ToolResult.failure("UNAVAILABLE", said))

    def _unknown(self, name: str, language: str) -> ToolResult:
        """Say that no server here has that name, and which there are."""
        said = say(language, "There are no MCP servers here yet.")
        if known := ", ".join(state.name for state in self.servers.states()):
            named = quoted_name(name)
            said = say(
                language, "There is no server {name} here. There are: {known}", name=named, known=known
            )
        return ToolResult.failure("SERVER_NOT_FOUND", said)

    async def _switch(self, name: str, on: bool, language: str) -> str:
        """Turn a server on or off and return its name. Raises `Refused`."""
        state = self._state(name)
        if state is None:
            raise Refused(self._unknown(name, language))
        await asyncio.to_thread(set_enabled, self.config_path, state.name, on)
        await self.servers.refresh()
        return state.name


def _require_consent(context: ToolContext, command: str) -> None:
    """Raise `Refused` at a terminal without a server, where no card was shown."""
    if not context.subject:
        said = say(context.language, "I cannot ask you about it here. In a shell: {command}", command=command)
        raise Refused(ToolResult.failure("DENIED", said))


def _changed_meanwhile(language: str) -> ToolResult:
    said = say(
        language, "It changed after you were asked, so I did nothing. Ask me again to see it as it is now."
    )
    return ToolResult.failure("CHANGED", said)


def _folder_names(workspace: Path) -> list[str]:
    """Return the names of the folders in the workspace that a person may mean. Blocks."""
    if not workspace.is_dir():
        return []
    found = (one.name for one in workspace.iterdir() if one.is_dir() and not one.name.startswith("."))
    return sorted(name for name in found if name != "people")[:MAX_CHOICES]


def _whole_card(
    writer: CardWriter, installer: SkillInstaller | ServerInstaller, question: OpenQuestion
) -> str:
    """Write a whole card in English, of any length, or why there is none."""
    try:
        text = writer.detailed("en", installer.load(question.subject)).text
    except RecadoError as error:
        text = visible(str(error))
    return with_sources("en", text, question.sources)


def _room(context: ToolContext) -> int:
    return PHONE_CHARACTERS - (SOURCES_CHARACTERS if context.sources else 0)


def _install_card(candidate: Candidate, text: CardText, *written: Choice) -> Card:
    return Card(text.text, candidate.label, INSTALL, candidate.subject, text.question, written)


def _previewed(language: str, name: str, text: CardText) -> ToolResult:
    said = say(
        language,
        "{card}\n\nNothing is installed yet. Tell me to install it if you want it.",
        card=text.text,
    )
    return ToolResult.success({"name": name, "summary": said})


def _approval(context: ToolContext, address: str = "") -> Approval:
    assert context.person is not None
    return Approval(context.subject, context.person.id, context.choice == "trust", address)


def _stages(language: str) -> dict[Stage, str]:
    return {
        "downloading": say(language, "I am downloading the server and what it needs. This takes a while."),
        "trying": say(language, "It is here, and I am trying whether it starts."),
        "older-sdk": say(language, "It needs an older MCP library: I am installing it again with that one."),
        "keeping": say(language, "It is installed, and I am starting it."),
    }


def _without_secrets(name: str) -> str:
    """Drop secrets from search words; exact names of the registry have a slash and may look like a key."""
    return " ".join(word for word in name.split() if "/" in word or not holds_secret(word))


def _with_warning(warning: str, result: ToolResult) -> ToolResult:
    """Put the warning about a secret above a list to choose from."""
    if not (warning and result.ok):
        return result
    return replace(result, data={**result.data, "summary": f"{warning}\n\n{result.data['summary']}"})


def _secret_warning(language: str) -> str:
    return say(
        language,
        "Your message holds what looks like a secret. I do not use it. Since it stands in this chat now, it "
        "is better to make a new one and give that in a shell.",
    )
