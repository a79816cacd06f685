"""Checks of the running server, the skills, the sandbox and the MCP servers."""

import asyncio
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from app.cli.mcp import configuration, exposed
from app.cli.server import find_server
from app.doctor.finding import CURES, Finding, fail, ok, warn
from app.errors import RecadoError
from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition
from app.mcp.servers import try_servers
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings
from app.skills import RELEASE_SKILLS, SkillLoader
from app.skills.loader import InstalledSkills
from app.skills.skill import bundled_names


def check_skills(settings: Settings) -> Iterator[Finding]:
    """Report the skills that work, missing bundled ones, faults, and those that cannot be used and why."""
    folder = settings.skills_dir
    if "skills_dir" in settings.model_fields_set and not folder.is_dir():
        fact = f"SKILLS_DIR={folder} is no folder: no skill of your own is there"
        yield fail("skills", fact, "make it, or mend SKILLS_DIR")
    loader = SkillLoader(folder, installed=InstalledSkills.of(settings))
    loader.refresh()
    working = [skill for skill in loader.skills if skill.available]
    yield ok("skills", f"{len(working)} work: {', '.join(skill.name for skill in working)}")
    missing = bundled_names(RELEASE_SKILLS) - {skill.folder.name for skill in working if skill.bundled}
    if missing:
        fact = f"of the release's skills these do not work: {', '.join(sorted(missing))}"
        yield fail("skills", fact, "bring back their folders from the release")
    for skill in loader.skills:
        where = f"{skill.name} ({skill.folder})"
        for fault in skill.faults:
            yield fail("skills", f"{where}: {fault}", "mend it and try: recado skills check")
        if skill.reason and not skill.faults:
            yield warn("skills", f"{where}: {skill.reason}")
    for clash in loader.clashes:
        yield warn("skills", clash, "rename one of the two")


_MORE = "Code from elsewhere in docs/operating.md"
_APT = "sudo apt install bubblewrap, version 0.7 or newer (Debian 12, Ubuntu 24.04)"


def check_sandbox(settings: Settings) -> Iterator[Finding]:
    """Try the sandbox for real, and say how to get it if it does not work."""
    sandbox = Sandbox(settings)
    if sandbox.off:
        fact = "SANDBOX=off: code that came from a URL or from chat has all the rights of this user"
        yield warn("sandbox", fact, "take SANDBOX=off away")
        return
    if fault := sandbox.probe():
        fact = f"code that came from elsewhere does not run: {fault}"
        yield warn("sandbox", fact, _sandbox_cure(fault))
    else:
        yield ok("sandbox", "tried: code that came from elsewhere sees its own folder and no network")


def _sandbox_cure(reason: str) -> str:
    if "not installed" in reason or "Unknown option" in reason:
        return _APT
    for name, forbidden, cure in CURES["namespaces"]:
        setting = Path("/proc/sys", name)
        if setting.is_file() and setting.read_text().strip() == forbidden:
            return str(cure)
    return f"a container has to be allowed to make namespaces: {_MORE}"


_PART = "MCP servers"


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Report faults of the configuration, then each server's state."""
    written = configuration(settings)
    definitions = {one.name: one for one in written.look()}
    for fault in written.faults:
        fact, _, cure = fault.partition("; ")
        yield fail(_PART, fact, cure or "mend the file; it counts at the next message")
    if not definitions and not written.faults:
        yield ok(_PART, "none", "find one: recado mcp search WORDS")
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
        yield warn(_PART, f"{name}: new or changed, and held back: {tools}", f"recado mcp approve {name}")
    if row["dropped"]:
        dropped = "; ".join(f"{one['tool']}: {one['reason']}" for one in row["dropped"])
        yield warn(_PART, f"{name}: tools that cannot be used: {dropped}", "tell its authors")
    if definition.exposed:
        fact, cure = exposed(definition)
        yield warn(_PART, f"{name}: {fact}", cure)


def _state(row: Mapping[str, JSON], definition: ServerDefinition) -> Finding:
    name, phase, reason = definition.name, row["phase"], row["reason"]
    if phase == "off":
        return ok(_PART, f"{name} is turned off")
    if phase == "ready":
        place = "elsewhere" if definition.url else "without a sandbox"
        place = "in the sandbox" if definition.sandboxed else place
        fact = f"{name} answers: {len(row['tools'])} tools, protocol {row['revision']}, {place}"
        fact += f", for {definition.audience}"
        return warn(_PART, f"{fact}; {reason}", _cure(definition)) if reason else ok(_PART, fact)
    if definition.missing and not definition.fault:
        fact = f"{name} needs {', '.join(definition.missing)}"
        return warn(_PART, fact, f"recado mcp secret {name} {definition.missing[0]}")
    if phase in ("starting", "waiting"):
        return warn(_PART, f"{name} is being started: {reason or 'look again'}", _cure(definition, reason))
    told = warn if definition.url and not definition.fault else fail
    return told(_PART, f"{name} does not work: {reason}", _cure(definition, reason))


def _cure(definition: ServerDefinition, reason: str = "") -> str:
    if "sandbox" in reason:
        return "see the line about the sandbox"
    program = definition.command
    if program and shutil.which(program) is None:
        node = " (Node.js 20 or newer)" if program in ("node", "npx", "npm") else ""
        return f"{program} is not found: install it{node}, or write its whole path"
    if definition.url:
        return "see that its address and secrets are right and it is reached; then turn it off and on"
    if definition.downloads and "was not ready" in reason:
        return "it fetches its program at its first start: see that there is a network; it is tried again"
    if definition.origin == "installed":
        name = definition.name
        return f"try it once more: recado mcp remove {name}, and recado mcp add {name} --registry ID"
    if definition.origin == "skill":
        return "mend the skill's mcp.json, or remove the skill"
    return "mend its entry; it counts at the next message"


def check_server(settings: Settings) -> Iterator[Finding]:
    """Report the running server's own health; without one, check that its port is free."""
    try:
        server = find_server(settings.data_dir)
        state = server.ask("health") if server is not None else {}
    except RecadoError as error:
        yield fail("server", str(error))
        return
    if server is None:
        yield _absent(settings)
        return
    where = f"runs at {server.url} (process {server.pid})"
    if state.get("status") == "ok":
        yield ok("server", where)
    else:
        told = fail if state.get("status") == "down" else warn
        yield told("server", f"{where}, {state.get('status')}: {state.get('reason')}")


def _absent(settings: Settings) -> Finding:
    try:
        with socket.create_connection((urlsplit(settings.own_url).hostname, settings.port), timeout=1):
            pass
    except OSError:
        return ok("server", "is not running", "start it with: recado serve")
    fact = f"is not running, and something else listens at port {settings.port}"
    return warn("server", fact, "stop that, or choose another port with PORT")
