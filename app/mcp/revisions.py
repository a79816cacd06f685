"""Which revision of the protocol each server spoke last, so that nobody has to find out again."""

import hashlib
import json
from pathlib import Path

from app.mcp.definitions import ServerDefinition
from app.security import write_private


class Revisions:
    """DATA_DIR/mcp/<server>/revision.json; it counts as long as the same thing is started. Reads and writes
    the disk: not for the event loop."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def known(self, definition: ServerDefinition) -> str:
        """ "" where it is not known."""
        try:
            kept = json.loads(self._path(definition).read_bytes())
        except (OSError, ValueError):
            return ""
        if not isinstance(kept, dict) or kept.get("of") != _mark(definition):
            return ""
        return str(kept.get("revision", ""))

    def remember(self, definition: ServerDefinition, revision: str) -> None:
        """Raises OSError."""
        kept = {"of": _mark(definition), "revision": revision}
        write_private(self._path(definition), json.dumps(kept))

    def _path(self, definition: ServerDefinition) -> Path:
        return self._folder / definition.name / "revision.json"


def _mark(definition: ServerDefinition) -> str:
    """Of what is started, without what it is told: an argument may be a secret."""
    parts = [definition.version, definition.command, definition.args, definition.url]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
