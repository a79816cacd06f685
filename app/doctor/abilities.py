"""Checks of the running server, the skills, the sandbox and the MCP servers."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from app.cli.mcp import configuration, exposed
from app.cli.server import find_server
from app.errors import RecadoError
from app.i18n import from_json, lazy, program
from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition
from app.mcp.servers import try_servers
from app.messages import JSON
from app.ops import Finding, fail, ok, warn
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills import RELEASE_SKILLS, SkillLoader
from app.skills.loader import InstalledSkills
from app.skills.skill import bundled_names


def check_skills(settings: Settings) -> Iterator[Finding]:
    """Report the skills that work, missing bundled ones, faults, and those that cannot be used and why."""
    folder = settings.skills_dir
    if "skills_dir" in settings.model_fields_set and not folder.is_dir():
        fact = lazy("SKILLS_DIR={folder} is no folder: no skill of your own is there", folder=folder)
        yield fail("skills", fact, lazy("make it, or mend SKILLS_DIR"))
    loader = SkillLoader(folder, installed=InstalledSkills(settings))
    loader.refresh()
    working = [skill for skill in loader.skills if skill.available]
    names = ", ".join(skill.name for skill in working)
    yield ok("skills", lazy("{n} work: {names}", n=len(working), names=names))
    missing = bundled_names(RELEASE_SKILLS) - {skill.folder.name for skill in working if skill.bundled}
    if missing:
        names = ", ".join(sorted(missing))
        fact = lazy("of the release's skills these do not work: {names}", names=names)
        yield fail("skills", fact, lazy("bring back their folders from the release"))
    for skill in loader.skills:
        where = f"{skill.name} ({skill.folder})"
        for fault in skill.faults:
            fact = lazy("{fact}: {reason}", fact=where, reason=fault)
            yield fail("skills", fact, lazy("mend it and try: {recado} skills check"))
        if skill.reason and not skill.faults:
            yield warn("skills", lazy("{fact}: {reason}", fact=where, reason=skill.reason))
    for clash in loader.clashes:
        yield warn("skills", clash, lazy("rename one of the two"))


_APT = lazy("sudo apt install bubblewrap, version 0.7 or newer (Debian 12, Ubuntu 24.04)")
_NAMESPACES = lazy("it has to be allowed to make namespaces: Code from elsewhere in docs/operating.md")


def check_sandbox(settings: Settings) -> Iterator[Finding]:
    """Try the sandbox for real, and say how to get it if it does not work."""
    sandbox = Sandbox(settings)
    if sandbox.off:
        fact = lazy("SANDBOX=off: code that came from a URL or from chat has all the rights of this user")
        yield warn("sandbox", fact, lazy("take SANDBOX=off away"))
        return
    if fault := sandbox.probe():
        fact = lazy("code that came from elsewhere does not run: {reason}", reason=fault)
        is_missing = "not installed" in fault or "Unknown option" in fault
        yield warn("sandbox", fact, _APT if is_missing else _NAMESPACES)
    else:
        fact = lazy("tried: code that came from elsewhere sees its own folder and no network")
        yield ok("sandbox", fact)


_PART = "MCP servers"


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Report faults of the configuration, then each server's state."""
    written = configuration(settings)
    definitions = {one.name: one for one in written.look()}
    for fault in written.faults:
        fact, _, cure = fault.partition("; ")
        yield fail(_PART, fact, cure or lazy("mend the file; it counts at the next message"))
    if not definitions and not written.faults:
        yield ok(_PART, lazy("none"), lazy("find one: {recado} mcp search WORDS"))
    for row in _rows(settings, written) if definitions else ():
        if definition := definitions.get(row["name"]):
            yield from _findings(row, definition)


def _rows(settings: Settings, written: Configuration) -> Sequence[Mapping[str, JSON]]:
    """Ask the running server, because some cannot run twice; else start each."""
    with suppress(RecadoError):  # the line about the server says so
        if server := find_server(settings.data_dir):
            return list(server.ask("servers")["servers"])
    states = asyncio.run(try_servers(written, Sandbox(settings), settings.data_dir))
    return list(written.report(states)["servers"])


def _findings(row: Mapping[str, JSON], definition: ServerDefinition) -> Iterator[Finding]:
    name = definition.name
    yield _state(row, definition)
    if row["held_back"]:
        tools = ", ".join(one["tool"] for one in row["held_back"])
        fact = lazy("{name}: new or changed, and held back: {tools}", name=name, tools=tools)
        yield warn(_PART, fact, lazy("look at them, and approve them: Decisions of the console"))
    if row["dropped"]:
        dropped = "; ".join(f"{one['tool']}: {one['reason']}" for one in row["dropped"])
        fact = lazy("{name}: tools that cannot be used: {dropped}", name=name, dropped=dropped)
        yield warn(_PART, fact, lazy("tell its authors"))
    if definition.exposed:
        shown, cure = exposed(definition)
        yield warn(_PART, lazy("{name}: {fault}", name=name, fault=shown), cure)


def _state(row: Mapping[str, JSON], definition: ServerDefinition) -> Finding:
    name, phase, reason = definition.name, row["phase"], from_json(row["said"])
    if phase == "off":
        return ok(_PART, lazy("{name} is turned off", name=name))
    if phase == "ready":
        place = lazy("elsewhere") if definition.url else lazy("without a sandbox")
        fact = lazy(
            "{name} answers: {n} tools, protocol {revision}, {place}, for {audience}",
            name=name,
            n=len(row["tools"]),
            revision=row["revision"],
            place=lazy("in the sandbox") if definition.sandboxed else place,
            audience=definition.audience,
        )
        if reason:
            return warn(_PART, lazy("{fact}; {reason}", fact=fact, reason=reason), _cure(definition))
        return ok(_PART, fact)
    if definition.missing and not definition.fault:
        fact = lazy("{name} needs {names}", name=name, names=", ".join(definition.missing))
        return warn(_PART, fact, f"{program()} mcp secret {name} {definition.missing[0]}")
    if phase == "starting":
        fact = lazy("{name} is being started: {reason}", name=name, reason=reason or "…")
        return warn(_PART, fact, _cure(definition, reason))
    told = warn if definition.url and not definition.fault else fail
    fact = lazy("{name} does not work: {reason}", name=name, reason=reason)
    return told(_PART, fact, _cure(definition, reason))


def _cure(definition: ServerDefinition, reason: str = "") -> str:
    if "sandbox" in reason:
        return lazy("see the line about the sandbox")
    program = definition.command
    if program and shutil.which(program) is None:
        return lazy("{program} is not found: install it, or write its whole path", program=program)
    if definition.url:
        return lazy("see that its address and secrets are right and it is reached; then turn it off and on")
    if definition.origin == "installed":
        name = definition.name
        return lazy(
            "try it once more: {recado} mcp remove {name}, and {recado} mcp add {name} --registry ID",
            name=name,
        )
    return lazy("mend its entry, or the mcp.json of its skill; it counts at the next message")


def check_server(settings: Settings) -> Iterator[Finding]:
    """Report the health of the running server."""
    try:
        server = find_server(settings.data_dir)
        state = server.ask("health") if server is not None else {}
    except RecadoError as error:
        yield fail("server", error.told)
        return
    if server is None:
        yield ok("server", lazy("is not running"), lazy("start it with: {recado} serve"))
        return
    where = lazy("runs at {url} (process {pid})", url=server.url, pid=server.pid)
    if state.get("status") == "ok":
        yield ok("server", where)
    else:
        told = fail if state.get("status") == "down" else warn
        reason = from_json(state.get("said"))
        yield told("server", lazy("{where}: {reason}", where=where, reason=reason))
