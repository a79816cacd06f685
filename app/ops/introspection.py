"""The answers to an owner's questions about the server: version, configuration, health, skills and logs."""

import platform
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import SecretStr

from app import __version__
from app.messages import JSON
from app.ops.health import Health
from app.ops.logs import recent_lines
from app.routing.tool_catalog import ToolCatalog
from app.settings import Settings


class Introspection:
    """A service for skills; nothing it returns holds a secret or what people wrote."""

    def __init__(self, settings: Settings, catalog: ToolCatalog, health: Health) -> None:
        self._settings = settings
        self._catalog = catalog
        self._health = health
        self.may_write = settings.agent_write_enabled

    @property
    def closed(self) -> tuple[Path, ...]:
        """Return the folders of people's data, which are never shown as source."""
        return (self._settings.data_dir, self._settings.workspace_dir)

    def version(self) -> dict[str, str]:
        """Return the versions of the project, Python and the system."""
        return {"recado": __version__, "python": platform.python_version(), "system": platform.system()}

    def configuration(self) -> dict[str, str]:
        """Return every setting by its variable; secrets and people only as set or not set."""
        fields = type(self._settings).model_fields
        return {
            (field.alias or name).upper(): _shown(getattr(self._settings, name))
            for name, field in fields.items()
        }

    async def health(self) -> dict[str, JSON]:
        return await self._health.state()

    def skill(self, name: str) -> dict[str, JSON] | None:
        """Describe a skill; None if no skill has that name."""
        skill = self._catalog.skill(name)
        if skill is None:
            return None
        return {
            "name": skill.name,
            "description": skill.description,
            "folder": skill.folder.name,
            "origin": "installed" if skill.installed else "the release" if skill.bundled else "a folder here",
            "audience": skill.audience,
            "available": skill.available,
            "reason": skill.reason or skill.aside or skill.unrun,
            "tools": [
                {"name": tool.name, "sensitive": tool.sensitive, "description": tool.description[:200]}
                for tool in skill.tools
            ],
            "faults": list(skill.faults),
            "warnings": list(skill.warnings),
        }

    def skills(self) -> list[str]:
        return sorted(self._catalog.skill_names)

    def logs(self, count: int, level: str) -> Sequence[str]:
        """Return the newest log lines of that level and above, the oldest first."""
        return recent_lines(count, level)


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return "set" if value.get_secret_value() else "not set"
    if isinstance(value, frozenset | list):  # endpoints and webhooks hold secrets
        return f"{len(value)} set"
    if isinstance(value, str) and "://" in value:  # neither a login in it nor a key behind it
        scheme, _, rest = value.partition("://")
        return f"{scheme}://{re.split(r'[?#]', rest)[0].rpartition('@')[2]}"
    return "" if value is None else str(value)
