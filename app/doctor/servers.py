"""Check of the MCP servers: the running server's word, or a real start of each."""

import asyncio
import shutil
from collections.abc import Iterator, Mapping, Sequence

from app.commands.running import find_server
from app.commands.servers import configuration, exposed_cure, exposed_text
from app.doctor.finding import FAIL, OK, WARN, Finding, Level
from app.errors import RecadoError
from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition
from app.mcp.report import report
from app.messages import JSON
from app.processes.sandbox import Sandbox
from app.settings import Settings

_PART = "MCP servers"
_NODE = frozenset({"node", "npx", "npm"})


def check_servers(settings: Settings) -> Iterator[Finding]:
    """Report faults of the configuration, then each server's state."""
    written = configuration(settings)
    definitions = written.look()
    for fault in written.faults:
        fact, _, cure = fault.partition("; ")
        yield Finding(FAIL, _PART, fact, cure or "mend the file; it counts at the next message")
    for wanted in written.wanted:
        fact = f"the skill {wanted.skill} would use the server {wanted.registry_id}"
        yield Finding(WARN, _PART, fact, f"recado mcp add NAME --registry {wanted.registry_id}")
    if not definitions and not written.faults:
        yield Finding(OK, _PART, "none", "find one: recado mcp search WORDS")
    by_name = {one.name: one for one in definitions}
    for row in _rows(settings, written) if definitions else ():
        definition = by_name.get(row["name"])
        if definition is not None:
            yield from _findings(row, definition)


def _rows(settings: Settings, written: Configuration) -> Sequence[Mapping[str, JSON]]:
    """Ask the running server, because some cannot run twice; else start each."""
    try:
        server = find_server(settings.data_dir)
        if server is not None:
            return list(server.ask("servers")["servers"])
    except RecadoError:  # the line about the server says so
        pass
    from app.mcp.probe import visit_all

    states = asyncio.run(visit_all(written.look(), Sandbox(settings), settings.data_dir))
    return list(report(written, states)["servers"])


def _findings(row: Mapping[str, JSON], definition: ServerDefinition) -> Iterator[Finding]:
    name = definition.name
    yield _state(row, definition)
    if row["held_back"]:
        tools = ", ".join(one["tool"] for one in row["held_back"])
        yield Finding(
            WARN, _PART, f"{name}: new or changed, and held back: {tools}", f"recado mcp approve {name}"
        )
    if row["dropped"]:
        dropped = "; ".join(f"{one['tool']}: {one['reason']}" for one in row["dropped"][:3])
        more = f" and {len(row['dropped']) - 3} more" if len(row["dropped"]) > 3 else ""
        fact = f"{name}: tools that cannot be used: {dropped}{more}"
        yield Finding(WARN, _PART, fact, "tell its authors")
    if definition.exposed:
        yield Finding(WARN, _PART, f"{name}: {exposed_text(definition)}", exposed_cure(name))


def _state(row: Mapping[str, JSON], definition: ServerDefinition) -> Finding:
    name, phase, reason = definition.name, row["phase"], row["reason"]
    if phase == "off":
        return Finding(OK, _PART, f"{name} is turned off")
    if phase == "starting":
        fact = f"{name} is starting" + (f" again: {reason}" if reason else "")
        return Finding(WARN, _PART, fact, "look again in a moment")
    if phase == "ready":
        tools = f"{len(row['tools'])} tools" if len(row["tools"]) != 1 else "1 tool"
        fact = (
            f"{name} answers: {tools}, protocol {row['revision']}, {_place(definition)}, {_for(definition)}"
        )
        return (
            Finding(WARN, _PART, f"{fact}; {reason}", _cure(definition))
            if reason
            else Finding(OK, _PART, fact)
        )
    if definition.missing and not definition.fault:
        fact = f"{name} needs {', '.join(definition.missing)}"
        return Finding(WARN, _PART, fact, f"recado mcp secret {name} {definition.missing[0]}")
    if phase == "waiting":
        return Finding(WARN, _PART, f"{name} ended and is started again: {reason}", _cure(definition, reason))
    level: Level = WARN if definition.url and not definition.fault else FAIL
    return Finding(level, _PART, f"{name} does not work: {reason}", _cure(definition, reason))


def _place(definition: ServerDefinition) -> str:
    if definition.url:
        return "elsewhere"
    return "in the sandbox" if definition.sandboxed else "without a sandbox"


def _for(definition: ServerDefinition) -> str:
    return "for owners" if definition.audience == "owners" else "for everyone"


def _cure(definition: ServerDefinition, reason: str = "") -> str:
    if "sandbox" in reason:
        return "see the line about the sandbox"
    program = definition.command.rpartition("/")[2]
    if program in _NODE and shutil.which("node") is None:
        return "install Node.js 20 or newer, or remove the server"
    if definition.command and shutil.which(definition.command) is None:
        return f"{definition.command} is not found: install it, or write its whole path"
    if definition.url:
        return "see that its address and secrets are right and it is reached; then turn it off and on"
    if definition.downloads and "was not ready" in reason:
        return "it fetches its program at its first start: run its command once by hand"
    if definition.origin == "installed":
        name = definition.name
        return f"try it once more: recado mcp remove {name}, and recado mcp add {name} --registry ID"
    if definition.origin == "skill":
        return "mend the skill's mcp.json, or remove the skill"
    return "mend its entry; it counts at the next message"
