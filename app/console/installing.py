"""Installs that the console began: each a task of its own, which goes on while its page is closed."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import structlog

from app.assistant import Assistant
from app.errors import RecadoError
from app.i18n import said, say
from app.installs.chat import START_SECONDS
from app.installs.pipeline import Approval
from app.installs.sentences import installed_text, refusal
from app.store.database import new_id
from app.text import visible

log = structlog.get_logger(__name__)

Kind = Literal["server", "skill"]
MOST_KEPT = 20


@dataclass(slots=True)
class Install:
    """An install: what was done so far, a line each, and whether it is over."""

    id: str
    name: str
    began_at: float
    lines: list[str] = field(default_factory=list)
    state: Literal["running", "done", "failed"] = "running"


class Installing:
    """Carries out what was agreed to, and remembers the last of it."""

    def __init__(self, assistant: Assistant) -> None:
        self._assistant = assistant
        self._tasks: set[asyncio.Task[None]] = set()
        self.installs: dict[str, Install] = {}

    def begin(self, kind: Kind, name: str, approval: Approval, language: str) -> Install:
        """Begin an install, and return it at once."""
        install = Install(new_id("install"), name, time.time())
        self.installs[install.id] = install
        for old in list(self.installs)[:-MOST_KEPT]:
            del self.installs[old]
        work = self._server if kind == "server" else self._skill
        task = asyncio.create_task(self._run(install, work, approval, language), name=f"install {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return install

    async def _run(
        self,
        install: Install,
        work: Callable[[Install, Approval, str], Awaitable[None]],
        approval: Approval,
        language: str,
    ) -> None:
        try:
            await work(install, approval, language)
            install.state = "done"
        except RecadoError as error:
            install.lines.append(in_words(language, error))
            install.state = "failed"
        except Exception:
            log.exception("an install failed")
            install.lines.append(say(language, "This failed on our side: the log says why."))
            install.state = "failed"

    async def _server(self, install: Install, approval: Approval, language: str) -> None:
        servers, installer = self._assistant.servers, self._assistant.installs.servers.installer
        install.lines.append(say(language, "Fetching the package and what it needs …"))
        record = await installer.commit(approval)
        install.lines.append(say(language, "It is in its place, and starts for the first time …"))
        await servers.refresh()
        state = await servers.settled(record.name, START_SECONDS)
        install.name = record.name
        install.lines.append(installed_text(language, record, state))

    async def _skill(self, install: Install, approval: Approval, language: str) -> None:
        install.lines.append(say(language, "Fetching what its programs need …"))
        installed = await self._assistant.installs.skills.installer.commit(approval)
        self._assistant.abilities.refresh_soon()
        install.name = installed.name
        said = say(language, "✓ Installed: {name} ({hash})", name=installed.name, hash=installed.sha256[:12])
        install.lines.append(said)


def in_words(language: str, error: RecadoError) -> str:
    """Return an error of an install in words for a person, with its detail."""
    told = refusal(language, error)
    return f"{told.error.message if told.error else error} ({visible(said(error.told, language))})"
