"""Whose tools a person wants used: "¿qué hora es en Tokio según el server?", "… with the time server"."""

import re
from dataclasses import dataclass

_SAID = re.compile(
    r"[\s,]*\b(?:según|segun|con|us[aá]r?|usando|use|using|with|according to|via|por medio del?|pelo|com"
    r"|segundo|de acuerdo (?:con|com))"
    r"\s+(?:(?:el|o|a|the|your|mi|my|tu|seu) )?(?:mcp )?(?:(?P<before>[\w-]+) )?(?:server|servidor|mcp)\b"
    r"(?:\s+(?:mcp|de|del|da|do|of|la|el|the|llamado|chamado|called)\b)*(?:\s+(?P<after>[\w-]+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class NamedServer:
    """What is wanted of a server, and the word that may be its name; "" where any is meant."""

    wanted: str
    name: str

    def has(self, tool: str) -> bool:
        """Whether a tool, by its name, belongs to a server, and to this one where it has a name."""
        return tool.startswith(f"mcp_{self.name}_" if self.name else "mcp_")


def named_server(said: str) -> NamedServer | None:
    """None where no server is named as the one to use."""
    found = _SAID.search(said)
    if found is None:
        return None
    wanted = f"{said[: found.start()]} {said[found.end() :]}".strip(" ,")
    return NamedServer(wanted, (found["before"] or found["after"] or "").lower()) if wanted else None
