"""The servers and how they do, as JSON: without commands, addresses and secrets."""

from collections.abc import Sequence
from dataclasses import asdict

from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition, ServerState
from app.messages import JSON


def report(configuration: Configuration, states: Sequence[ServerState]) -> JSON:
    """All that is known of them, of whole files and of what skills would like to have."""
    return {
        "servers": [_row(state) for state in states],
        "faults": list(configuration.faults),
        "wanted": [asdict(one) for one in configuration.wanted],
    }


def _row(state: ServerState) -> JSON:
    definition = state.definition or ServerDefinition(state.name)
    return {
        "name": state.name,
        "phase": state.phase,
        "reason": state.reason,
        "kind": "remote" if definition.url else "program",
        "origin": definition.origin,
        "version": definition.version,
        "audience": definition.audience,
        "sandboxed": definition.sandboxed,
        "trusted": definition.trusted,
        "revision": state.revision,
        "tools": list(state.tools),
        "held_back": [
            {"tool": one.tool, "before": one.before, "after": one.after} for one in state.held_back
        ],
        "dropped": [{"tool": tool, "reason": reason} for tool, reason in state.dropped],
        "missing": list(definition.missing),
        "exposed": list(definition.exposed),
        "deaths": state.deaths,
    }
