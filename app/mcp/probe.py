"""One look at servers that nobody runs: each started, listed, compared with what was approved, and ended.

Importing this takes as long as the packages of the protocol do.
"""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from app.mcp.definitions import ServerDefinition, ServerState, at_rest
from app.mcp.names import offered_name
from app.mcp.pins import Comparison, Pins, hashes
from app.mcp.session import Listing, connected
from app.mcp.supervisor import Limits, shown
from app.mcp.wire import Lost, Refused, Unreachable
from app.processes.sandbox import Sandbox


async def visit_all(
    definitions: Iterable[ServerDefinition], sandbox: Sandbox, data_dir: Path
) -> list[ServerState]:
    """How each does, all looked at side by side; takes as long as the slowest, 25 s at most."""
    return list(await asyncio.gather(*(visit(one, sandbox, data_dir) for one in definitions)))


async def visit(definition: ServerDefinition, sandbox: Sandbox, data_dir: Path) -> ServerState:
    """How one does; nothing is approved or kept. Never raises for what becomes of it."""
    if (rest := at_rest(definition)) is not None:
        return rest
    limit = Limits().connect
    try:
        async with asyncio.timeout(limit), connected(definition, sandbox) as connection:
            listing, revision = await connection.list_tools(), connection.revision
            connection.ready()
    except TimeoutError:
        return _broken(definition, f"it was not ready within {limit:g} s")
    except (Unreachable, Lost, Refused) as error:
        return _broken(definition, str(error))
    pins = _pins(data_dir, definition.name)
    compared = await asyncio.to_thread(_compared, pins, listing)
    return ServerState(
        definition.name,
        "ready",
        pins.fault,
        definition,
        revision,
        tuple(offered_name(definition.name, raw["name"]) for raw in compared.approved),
        compared.held_back,
        listing.dropped,
    )


def approve(data_dir: Path, state: ServerState) -> None:
    """Approves the tools held back, as they are here."""
    held_back = state.held_back
    _pins(data_dir, state.name).approve([one.after for one in held_back], hashes(held_back))


def _pins(data_dir: Path, name: str) -> Pins:
    return Pins(data_dir / "mcp" / name / "pins.json")


def _compared(pins: Pins, listing: Listing) -> Comparison:
    """As its first start would: where nothing was ever approved all of it is."""
    return pins.compare(listing.tools) if pins.exists() else Comparison(approved=listing.tools)


def _broken(definition: ServerDefinition, why: str) -> ServerState:
    return ServerState(definition.name, "broken", shown(definition, why), definition)
