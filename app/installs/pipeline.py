"""The way of every install: source → quarantine → findings → card → yes → commit → remove.

`SkillInstaller` and `ServerInstaller` fill in what differs; chat and shell use both alike.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Generic, Literal, Protocol, TypeVar

from app.installs.errors import InstallError
from app.installs.quarantine import discard
from app.messages import Channel, Wakeable
from app.store import outbox, people
from app.store.database import Database
from app.store.outbox import Draft
from app.tools import ToolContext

FIRST_SECONDS = 8.0  # of an install without a notice
BETWEEN_SECONDS = 20.0
MAX_NOTICES = 3

Stage = Literal["downloading", "trying", "older-sdk", "keeping"]
ReportStage = Callable[[Stage], None]


class Candidate(Protocol):
    """A skill or a server that waits in quarantine; everything a yes is about is in its `subject`."""

    @property
    def name(self) -> str: ...

    @property
    def subject(self) -> str: ...

    @property
    def label(self) -> str:
        """Return the name with the version or hash, on one short line."""


@dataclass(frozen=True)
class Approval:
    """A yes: to what, by whom (a person's id, or "shell"), and whether its tools are trusted.

    `address` is the one that the person gave for a skill.
    """

    subject: str
    approved_by: str
    trusted: bool = False
    address: str = ""


RequestT = TypeVar("RequestT")
CandidateT = TypeVar("CandidateT", bound=Candidate)
RecordT = TypeVar("RecordT")


def ignore_stage(stage: Stage) -> None:
    """Report nothing."""


class InstallPipeline(ABC, Generic[RequestT, CandidateT, RecordT]):
    """Proposes, commits and removes one kind of thing; every error is a `RecadoError`."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._lock = asyncio.Lock()

    @abstractmethod
    async def propose(self, request: RequestT) -> CandidateT:
        """Fetch what was asked for into the quarantine. Nothing of it runs."""

    async def commit(self, approval: Approval, report: ReportStage = ignore_stage) -> RecordT:
        """Install exactly what was approved; a second time is the same as once.

        Raises an error if the candidate is gone from the quarantine, or would replace something else than its
        card said; then nothing has changed.
        """
        async with self._lock:
            record = await asyncio.to_thread(self._find_committed, approval)
            if record is None:
                candidate = await asyncio.to_thread(self.load, approval.subject)
                record = await self._commit(candidate, approval, report)
            await asyncio.to_thread(discard, self.data_dir, approval.subject.partition("/")[0])
            return record

    async def remove(self, name: str, subject: str = "") -> None:
        """Remove what is installed under a name; `subject` is the removal that was agreed to, "" for any.

        Raises `InstallError` if there is none of that name, or another one by now.
        """
        async with self._lock:
            record = await asyncio.to_thread(self.installed, name)
            if subject and self.removal_subject(record) != subject:
                raise InstallError("CHANGED", f"{name} was changed meanwhile; ask again")
            await asyncio.shield(asyncio.to_thread(self._remove, record))

    @abstractmethod
    def load(self, subject: str) -> CandidateT:
        """Read a candidate back from the quarantine. Blocks. Raises `InstallError` if it is gone."""

    @abstractmethod
    def installed(self, name: str) -> RecordT:
        """Return what is installed under a name. Blocks. Raises `InstallError` if there is none."""

    @abstractmethod
    def removal_subject(self, record: RecordT) -> str:
        """Return what a yes to the removal of this very install is about."""

    @abstractmethod
    def _find_committed(self, approval: Approval) -> RecordT | None:
        """Return what this approval installed already, if it did."""

    @abstractmethod
    async def _commit(self, candidate: CandidateT, approval: Approval, report: ReportStage) -> RecordT:
        """Move the candidate to its place."""

    @abstractmethod
    def _remove(self, record: RecordT) -> None: ...


@dataclass(frozen=True)
class Notices:
    """Sends notices about a call that is under way, each once even if a crash repeats the call."""

    store: Database
    channels: Mapping[str, Channel]
    sender: Wakeable

    async def tell(self, context: ToolContext, number: int, text: str) -> None:
        """Send the notice of that number about a call."""
        person, channel = context.person, self.channels[context.channel]
        assert person is not None
        now, source = time.time(), f"progress:{context.idempotency_key}:{number}"

        def put(conn: Connection) -> None:
            conversation = people.conversation(conn, person.id, context.channel, "", now)
            outbox.put_reply(conn, conversation, source, Draft(text, tuple(channel.render(text))), now)

        await self.store.tx(put)
        self.sender.wake(person.id)


class Progress:
    """Tells the stage that a long install is in, once each: three notices at most, none if it is short."""

    def __init__(
        self,
        notices: Notices,
        context: ToolContext,
        stage: str,
        *,
        first: float = FIRST_SECONDS,
        between: float = BETWEEN_SECONDS,
    ) -> None:
        self._notices = notices
        self._context = context
        self._stage = stage
        self._first = first
        self._between = between
        self._changed = asyncio.Event()
        self._changed.set()
        self._telling: asyncio.Task[None] | None = None

    def reach(self, stage: str) -> None:
        """Note the stage, as a sentence for the person."""
        if stage != self._stage:
            self._stage = stage
            self._changed.set()

    async def __aenter__(self) -> "Progress":
        self._telling = asyncio.create_task(self._follow(), name="progress of an install")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _follow(self) -> None:
        await asyncio.sleep(self._first)
        for number in range(MAX_NOTICES):
            await self._changed.wait()
            self._changed.clear()
            await self._notices.tell(self._context, number, self._stage)
            await asyncio.sleep(self._between)
