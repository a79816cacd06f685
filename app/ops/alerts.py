"""Alerts about skills and servers."""

import time
from pathlib import Path
from sqlite3 import Connection

from app.skills.installed import is_installed_folder
from app.store import alerts
from app.store.database import Database


class AlertReporter:
    """Raises an alert about a skill or a server, or closes it if the reason is empty."""

    def __init__(self, store: Database, data_dir: Path) -> None:
        self._store = store
        self._data_dir = data_dir

    async def forget(self) -> None:
        """Close all alerts about skills and servers: a start tries each again."""
        await self._store.tx(_forget)

    async def skill_failed(self, folder: Path, reason: str) -> None:
        """Alert that a skill's code is not run any more."""
        skill = folder.parent.name if is_installed_folder(self._data_dir, folder) else folder.name
        await self._tell(f"{alerts.ABOUT_SKILLS}{skill}:", reason and f"the skill {skill} is {reason}")

    async def server_failed(self, server: str, reason: str) -> None:
        """Alert that an MCP server does not run, or holds tools back."""
        await self._tell(f"{alerts.ABOUT_SERVERS}{server}:", reason and f"the MCP server {server}: {reason}")

    async def _tell(self, code: str, text: str) -> None:
        now = time.time()
        if text:
            await self._store.tx(lambda conn: alerts.raise_alert(conn, code, text, now))
        else:
            await self._store.tx(lambda conn: alerts.close_alerts(conn, code, now))


def _forget(conn: Connection) -> None:
    for prefix in (alerts.ABOUT_SKILLS, alerts.ABOUT_SERVERS):
        alerts.close_alerts(conn, prefix, time.time())
