"""What the tools of the skill `expand` find as `context.services.servers`; it speaks to the person."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from app.errors import RecadoError
from app.i18n import say
from app.installs.directory import Directory
from app.installs.meaning import MOST_LISTED, Meant, local_meant, meant
from app.installs.progress import Progress
from app.installs.server_card_text import card_text
from app.installs.server_installer import ServerInstaller, Stage
from app.installs.server_plan import Plan
from app.installs.server_refusals import (
    changed_meanwhile,
    not_found,
    not_installable,
    not_installed,
    nothing_installed,
    refusal,
    unknown_here,
)
from app.installs.server_service_text import choices_text, found_text, installed_text, state_text, states_text
from app.installs.skill_refusals import not_asked
from app.mcp import installed
from app.mcp.definitions import ServerState
from app.mcp.installed import InstalledServer
from app.mcp.mapping import set_enabled
from app.mcp.pins import hashes, subject_of
from app.mcp.servers import McpServers
from app.tools import ToolContext, ToolResult

START_SECONDS = 20.0
"""How long a first start is waited for before the person is told how it stands."""

Tell = Callable[[ToolContext, int, str], Awaitable[None]]
"""Sends the notice of that number about a call to the person, once."""


class ServerService:
    """Finds, installs, switches and removes servers for an owner; a call's context has what was agreed to."""

    def __init__(
        self,
        directory: Directory,
        installer: ServerInstaller,
        servers: McpServers,
        *,
        data_dir: Path,
        config_path: Path,
        sandboxed: bool,
        tell: Tell,
    ) -> None:
        self._directory = directory
        self._installer = installer
        self._servers = servers
        self._data_dir = data_dir
        self._config_path = config_path
        self._sandboxed = sandboxed
        self._tell = tell

    async def search(self, words: str, context: ToolContext) -> ToolResult:
        """Servers of the registry by what they are for; beside those that cannot be installed stands why."""
        language = _language(context)
        try:
            found = await self._directory.search(words, MOST_LISTED)
        except RecadoError as error:
            return refusal(language, error)
        if not found:
            return not_found(language, words)
        names = [entry.name for entry in found]
        return ToolResult.success({"names": names, "summary": found_text(language, found)})

    async def info(self, name: str, context: ToolContext) -> ToolResult:
        """One that is here and how it does, else one of the registry as its card shows it."""
        language = _language(context)
        state = self.here(name)
        if state is not None:
            return ToolResult.success({"name": state.name, "summary": state_text(language, state)})
        plan = await self.plan(name, language)
        if isinstance(plan, ToolResult):
            return plan
        said = say(
            language,
            "{card}\n\nNothing is installed yet. Tell me to install it if you want it.",
            card=self.card(language, plan),
        )
        return ToolResult.success({"name": plan.name, "summary": said})

    async def install(self, context: ToolContext) -> ToolResult:
        """Installs and starts what the card showed that the person said yes to."""
        language = _language(context)
        if not context.subject:
            return not_asked(language, "recado mcp add NAME --registry ID")
        assert context.person is not None
        stages = _stages(language)
        try:
            async with Progress(partial(self._tell, context), stages["downloading"]) as progress:
                record = await self._installer.install(
                    context.subject,
                    approved_by=context.person.id,
                    trusted=context.choice == "trust",
                    on_stage=lambda stage: progress.reach(stages[stage]),
                )
                await self._servers.refresh()
                state = await self._servers.settled(record.name, START_SECONDS)
        except RecadoError as error:
            return refusal(language, error)
        said = installed_text(language, record, state)
        data = {"name": record.name, "tools": list(state.tools), "summary": said}
        return ToolResult.success(data, outside=True)  # names and last words are the server's

    async def remove(self, context: ToolContext) -> ToolResult:
        """Removes the server that the person was asked about; one that is gone already is removed."""
        language = _language(context)
        if not context.subject:
            return not_asked(language, "recado mcp remove NAME")
        name = context.subject.partition("/")[0]
        record = await asyncio.to_thread(installed.read, self._data_dir, name)
        if record is not None and removal_subject(record) != context.subject:
            return changed_meanwhile(language)
        if record is not None:
            try:
                await self._installer.remove(name)
            except RecadoError as error:
                return refusal(language, error)
            await self._servers.refresh()
        return ToolResult.success(
            {"name": name, "summary": say(language, "✓ Removed: the server {name}", name=name)}
        )

    async def list(self, context: ToolContext) -> ToolResult:
        """Every server that is here and how it does."""
        states = self._servers.states()
        listed = [{"name": one.name, "state": one.phase, "tools": list(one.tools)} for one in states]
        return ToolResult.success({"servers": listed, "summary": states_text(_language(context), states)})

    async def enable(self, name: str, context: ToolContext) -> ToolResult:
        """Turns one on again, and tells how it does then."""
        language = _language(context)
        found = await self._turned(name, True, language)
        if isinstance(found, ToolResult):
            return found
        state = await self._servers.settled(found, START_SECONDS)
        done = say(language, "✓ Turned on: {name}", name=found)
        data = {"name": found, "summary": f"{done}\n{state_text(language, state)}"}
        return ToolResult.success(data, outside=True)

    async def disable(self, name: str, context: ToolContext) -> ToolResult:
        """Turns one off; it stays installed."""
        language = _language(context)
        found = await self._turned(name, False, language)
        if isinstance(found, ToolResult):
            return found
        said = say(language, "✓ Turned off: {name}", name=found)
        return ToolResult.success({"name": found, "summary": said})

    async def approve(self, name: str, context: ToolContext) -> ToolResult:
        """Approves exactly the definitions that the card showed."""
        language = _language(context)
        if not context.subject:
            return not_asked(language, "recado mcp approve NAME")
        state = await self.started(name)
        if state is None or subject_of(state) != context.subject:
            return changed_meanwhile(language)
        try:
            await self._servers.approve(state.name, hashes(state.held_back))
        except RecadoError as error:
            return refusal(language, error)
        await self._servers.settled(state.name, START_SECONDS)
        said = say(language, "✓ Approved: the tools of {name}", name=state.name)
        return ToolResult.success({"name": state.name, "summary": said})

    # What cards are made of

    def card(self, language: str, plan: Plan) -> str:
        """What a plan means, in words."""
        return card_text(language, plan, sandboxed=self._sandboxed)

    async def plan(
        self,
        name: str,
        language: str,
        *,
        values: dict[str, str] | None = None,
        network: bool | None = None,
    ) -> Plan | ToolResult:
        """What an install would do, else what the person is told: several to choose from, or why not."""
        try:
            found = await meant(self._directory, name)
            if found.entry is None:
                return _not_one(language, name, found)
            if (reason := found.entry.reason) is not None:
                return not_installable(language, found.entry.name, reason)
            return await self._installer.plan(found.entry, values=values, network=network)
        except RecadoError as error:
            return refusal(language, error)

    def here(self, name: str) -> ServerState | None:
        """The server here that is meant, by its name or by words for it."""
        states = {state.name: state for state in self._servers.states()}
        return states.get(local_meant(name, states))

    async def started(self, name: str) -> ServerState | None:
        """The same once it is known what it offers: after a start of ours it may be about to start too."""
        state = self.here(name)
        if state is not None:
            with suppress(KeyError):  # taken out meanwhile
                return await self._servers.settled(state.name, START_SECONDS)
        return None

    async def installed(self, name: str, language: str) -> InstalledServer | ToolResult:
        """The record of the server that is meant, of the newest one where no name is given; else what the
        person is told."""
        records = {one.name: one for one in await asyncio.to_thread(installed.records, self._data_dir)}
        if not name.strip():
            newest = max(records.values(), key=lambda one: one.installed_at, default=None)
            return newest or nothing_installed(language)
        record = records.get(local_meant(name, records))
        if record is not None:
            return record
        state = self.here(name)
        return not_installed(language, state.name) if state is not None else self.unknown(name, language)

    def unknown(self, name: str, language: str) -> ToolResult:
        """No server of that name is here."""
        known = ", ".join(state.name for state in self._servers.states())
        return unknown_here(language, name, known)

    async def _turned(self, name: str, on: bool, language: str) -> str | ToolResult:
        """The name of the one that is now as wanted."""
        state = self.here(name)
        if state is None:
            return self.unknown(name, language)
        try:
            await asyncio.to_thread(set_enabled, self._config_path, state.name, on)
        except RecadoError as error:
            return refusal(language, error)
        await self._servers.refresh()
        return state.name


def removal_subject(record: InstalledServer) -> str:
    """What a yes to a removal is about: this server as it was installed then."""
    return f"{record.name}/{record.installed_at}"


def _not_one(language: str, name: str, found: Meant) -> ToolResult:
    """Those to choose from, in their authors' words."""
    if not found.choices:
        return not_found(language, name)
    names = [entry.name for entry in found.choices]
    said = choices_text(language, found.choices)
    return ToolResult.success({"names": names, "summary": said}, outside=True)


def _stages(language: str) -> dict[Stage, str]:
    return {
        "downloading": say(language, "I am downloading the server and what it needs. This takes a while."),
        "trying": say(language, "It is here, and I am trying whether it starts."),
        "older-sdk": say(language, "It needs an older MCP library: I am installing it again with that one."),
        "keeping": say(language, "It is installed, and I am starting it."),
    }


def _language(context: ToolContext) -> str:
    return context.person.language if context.person is not None else "en"
