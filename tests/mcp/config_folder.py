"""A data folder in which servers are configured."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from app.mcp.configuration import Configuration
from app.mcp.definitions import ServerDefinition
from app.settings import Settings

SOURCE = "https://example.org/{}.zip"
"""The address that an installed skill came from."""
ENVIRONMENT = {"API_KEY": "of-the-operator", "REGION": "sur"}


class Config:
    """A data folder with an `mcp_servers.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp_servers.json"
        self.settings = Settings(
            _env_file=None,  # type: ignore[call-arg]
            DATA_DIR=folder,
            mcp_config_path=self.path,
        )
        self.skills: list[Any] = []
        self.configuration = Configuration(self.settings, ENVIRONMENT, self)

    def write(self, content: Any) -> None:
        text = content if isinstance(content, str | bytes) else json.dumps({"mcpServers": content})
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def look(self) -> dict[str, ServerDefinition]:
        found = self.configuration.look()
        assert len({one.name for one in found}) == len(found)
        return {one.name: one for one in found}

    def one(self, entry: Any) -> ServerDefinition:
        self.write({"one": entry})
        return self.look()["one"]

    def skill(self, name: str, servers: Any, *, foreign: bool) -> Path:
        path = self.folder / "skills" / name / "mcp.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"mcpServers": servers}))
        installed = SimpleNamespace(source=SOURCE.format(name)) if foreign else None
        self.skills.append(
            SimpleNamespace(name=name, folder=path.parent, available=True, installed=installed)
        )
        return path
