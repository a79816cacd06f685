"""`recado mcp approve`: tools of a server that are new or changed."""

import asyncio
import sys

from app.commands.running import RunningServer, find_server
from app.commands.servers import configuration, definition_of
from app.commands.shell import agreed, show
from app.errors import RecadoError
from app.installs.card_text import held_back_question, held_back_text
from app.mcp.definitions import HeldBack, ServerDefinition, ServerState
from app.mcp.pins import hashes
from app.processes.sandbox import Sandbox
from app.settings import Settings


def approve_tools(settings: Settings, name: str, *, asks: bool) -> str:
    """Show what is held back of a server's tools, ask, and approve exactly that.

    Raise RecadoError if the server does not run, the answer is no, or nobody can be asked.
    """
    definition = definition_of(configuration(settings), name)
    server = find_server(settings.data_dir)
    state = _visited(settings, definition) if server is None else _told(server, name)
    if state.phase != "ready":
        raise RecadoError(f"{name} does not run: {state.reason or state.phase}; see: recado doctor")
    if not state.held_back:
        return f"Nothing of {name} is held back."
    show(held_back_text("en", state))
    if asks and not sys.stdin.isatty():
        raise RecadoError("tools are approved after a yes: run this in a terminal, or with --yes")
    if asks and not agreed(f"\n{held_back_question('en', name)}"):
        raise RecadoError("nothing was approved")
    shown = hashes(state.held_back)
    if server is not None:
        server.ask("servers/approve", {"name": name, "hashes": shown})
    else:
        from app.mcp.probe import approve

        approve(settings.data_dir, state)
    return f"Approved for {name}: {', '.join(shown)}. They can be used at the next message."


def _told(server: RunningServer, name: str) -> ServerState:
    """Return the state that the running server reports. Raise RecadoError for an unknown name."""
    for one in server.ask("servers")["servers"]:
        if one["name"] == name:
            held_back = tuple(HeldBack(**held) for held in one["held_back"])
            return ServerState(name, one["phase"], one["reason"], held_back=held_back)
    raise RecadoError(f"the running server does not know {name} yet; try again")


def _visited(settings: Settings, definition: ServerDefinition) -> ServerState:
    """Start the server just to read its tools."""
    from app.mcp.probe import probe

    return asyncio.run(probe(definition, Sandbox(settings), settings.data_dir))
