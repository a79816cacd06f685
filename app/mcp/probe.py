"""One look at servers that do not run: each is started, listed, compared with what was approved, and ended.

Importing this loads the SDK.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from app.mcp.adapter import offered_name
from app.mcp.client import connect
from app.mcp.pins import Comparison, Pins, ServerDefinition, ServerState, hashes, state_at_rest
from app.mcp.supervisor import Limits, show_reason
from app.mcp.wire import ConnectionLost, Refused, Unreachable
from app.processes.sandbox import Sandbox


async def probe_all(
    definitions: Iterable[ServerDefinition], sandbox: Sandbox, data_dir: Path
) -> list[ServerState]:
    """Return the state of each; takes as long as the slowest, 25 s at most."""
    return list(await asyncio.gather(*(probe(one, sandbox, data_dir) for one in definitions)))


async def probe(definition: ServerDefinition, sandbox: Sandbox, data_dir: Path) -> ServerState:
    """Return a server's state; nothing is approved or kept. Never raises for what becomes of it."""
    if (rest := state_at_rest(definition)) is not None:
        return rest
    name, limit = definition.name, Limits().connect
    try:
        async with asyncio.timeout(limit), connect(definition, sandbox) as connection:
            listing, revision = await connection.list_tools(), connection.revision
            connection.link.grace = True
    except (TimeoutError, Unreachable, ConnectionLost, Refused) as error:
        why = f"it was not ready within {limit:g} s" if isinstance(error, TimeoutError) else str(error)
        return ServerState(name, "broken", show_reason(definition, why), definition)
    pins = _pins(data_dir, name)

    def compare() -> Comparison:
        # As at its first start: all of it is approved if nothing ever was.
        return pins.compare(listing.tools) if pins.exists() else Comparison(approved=listing.tools)

    compared = await asyncio.to_thread(compare)
    tools = tuple(offered_name(name, raw["name"]) for raw in compared.approved)
    return ServerState(
        name, "ready", pins.fault, definition, revision, tools, compared.held_back, listing.dropped
    )


def approve(data_dir: Path, state: ServerState) -> None:
    """Approve the tools held back, as they are in this state."""
    held_back = state.held_back
    _pins(data_dir, state.name).approve([one.after for one in held_back], hashes(held_back))


def _pins(data_dir: Path, name: str) -> Pins:
    return Pins(data_dir / "mcp" / name / "pins.json")
