"""`recado mcp search`, `add --registry` and `remove`."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from app.commands.servers import configuration, definition_of
from app.commands.shell import agreed, show
from app.commands.skill_folders import read_skills
from app.commands.tables import moment
from app.errors import RecadoError
from app.http.transport import Transport
from app.installs.card_text import CardWriter
from app.installs.directory import FIRST_SECONDS, FRESH_SECONDS, MAX_CHOICES, Directory, build_directory
from app.installs.entries import Entry
from app.installs.errors import RegistryError
from app.installs.pipeline import Approval, Stage
from app.installs.sentences import reason_said
from app.installs.servers import ServerInstaller, ServerRequest
from app.mcp import installed
from app.mcp.definitions import is_server_name
from app.mcp.mapping_file import remove_server as remove_entry
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills.file_tree import remove_tree

_STAGES: dict[Stage, str] = {
    "downloading": "Downloading it and what it needs …",
    "trying": "Trying it …",
    "older-sdk": "It does not run with the newest SDK: once more with an older one …",
    "keeping": "Keeping it …",
}


@dataclass(frozen=True)
class _SkillNames:
    skill_names: frozenset[str]


def search_text(settings: Settings, words: str, *, as_json: bool) -> str:
    """Return the registry's servers that fit best, with the reason for those that cannot be installed.

    Raise RecadoError if none fits, or there is no list to search.
    """
    found, as_of = asyncio.run(_search(settings, words))
    if not found:
        raise RecadoError(f"no server of the registry fits {words!r}; try other words, in English")
    if as_json:
        return json.dumps([_as_json(one) for one in found], ensure_ascii=False, indent=2)
    lines = [line for one in found for line in _listed(one)]
    return "\n".join([*lines, "", f"Install one: recado mcp add NAME --registry ID ({as_of})"])


def install_server(settings: Settings, name: str, registry_id: str, *, trusted: bool, asks: bool) -> str:
    """Show what an entry would install, ask, install it and return what to tell.

    Raise RecadoError if it cannot be installed, the answer is no, or nobody can be asked.
    """
    if asks and not sys.stdin.isatty():
        raise RecadoError("a server is installed after a yes: run this in a terminal, or with --yes")
    return asyncio.run(_install(settings, name, registry_id, trusted=trusted, asks=asks))


def remove_server(settings: Settings, name: str) -> str:
    """Remove a server, its secrets and its approvals. Raise RecadoError if it has to stay."""
    written = configuration(settings)
    is_installed = is_server_name(name) and installed.read(settings.data_dir, name) is not None
    if not is_installed and definition_of(written, name).origin == "skill":
        raise RecadoError(f"{name} comes with a skill; remove that one: recado skills list")
    if is_installed:  # also where its entry was taken out of the file by hand
        asyncio.run(ServerInstaller(settings, Sandbox(settings)).remove(name))
        return f"Removed {name}, which came from the registry, with its files and secrets."
    remove_entry(settings.mcp_config_path, name)
    if is_server_name(name):
        written.secrets.forget(name)
        remove_tree(installed.home_of(settings.data_dir, name))
    return (
        f"Removed {name} from {settings.mcp_config_path}, with its secrets. It is gone at the next message."
    )


async def _search(settings: Settings, words: str) -> tuple[Sequence[Entry], str]:
    """Return the best matches, and the date of the list they come from."""
    async with _directory(settings) as directory:
        synced_at = (await directory.kept()).synced_at
        if synced_at is not None and time.time() - synced_at > FRESH_SECONDS:
            with suppress(RegistryError, TimeoutError):
                async with asyncio.timeout(FIRST_SECONDS):
                    await directory.refresh()
        found = await directory.search(words, MAX_CHOICES)
        synced_at = (await directory.kept()).synced_at
    as_of = f"as of {moment(synced_at)}" if synced_at else "the list is not whole yet"
    return found, f"{as_of}; {directory.trouble}" if directory.trouble else as_of


async def _install(settings: Settings, name: str, registry_id: str, *, trusted: bool, asks: bool) -> str:
    async with _directory(settings) as directory:
        entry = await directory.get(registry_id)
    if entry is None:
        raise RecadoError(f"the registry has no server {registry_id!r}; find one: recado mcp search WORDS")
    if entry.reason is not None:
        raise RecadoError(f"{entry.name} cannot be installed: {reason_said('en', entry.reason)}")
    skills = _SkillNames(frozenset(skill.name for skill in read_skills(settings).skills))
    installer = ServerInstaller(settings, Sandbox(settings), skills)
    plan = await installer.propose(ServerRequest(entry, name))
    if plan.name != name:
        raise RecadoError(f"{entry.name} is installed already, as {plan.name}; remove that one first")
    text = CardWriter(settings.sandbox != "off", settings.confirmation_mode).install("en", plan)
    show(text.whole)
    if asks and not agreed(f"\n{text.question}"):
        raise RecadoError("nothing was installed")
    approval = Approval(plan.subject, "shell", trusted)
    record = await installer.commit(approval, lambda stage: show(_STAGES[stage]))
    missing = definition_of(configuration(settings), name).missing
    lines = [f"Installed {record.name} {record.version}. It is started at the next message."]
    lines += [f"It needs {variable}: recado mcp secret {name} {variable}" for variable in missing]
    return "\n".join(lines)


@asynccontextmanager
async def _directory(settings: Settings) -> AsyncIterator[Directory]:
    transport = Transport()
    directory = build_directory(settings, transport)
    try:
        yield directory
    finally:
        await directory.close()
        await transport.close()


def _listed(entry: Entry) -> Iterator[str]:
    yield f"{entry.name}  {entry.version}"
    yield f"    {entry.description or entry.title}"
    if entry.reason is not None:
        yield f"    not here: {reason_said('en', entry.reason)}"


def _as_json(entry: Entry) -> JSON:
    return {
        "name": entry.name,
        "version": entry.version,
        "title": entry.title,
        "description": entry.description,
        "repository": entry.repository,
        "reason": reason_said("en", entry.reason) if entry.reason is not None else "",
    }
