"""The way of every install: source → quarantine → findings → card → yes → commit → remove.

`SkillInstaller` and `ServerInstaller` fill in what differs; chat and shell use both alike.
"""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from app.installs.errors import InstallError
from app.installs.quarantine import discard


@dataclass(frozen=True)
class Approval:
    """A yes: to what, by whom (a person's id, or "shell"), and whether its tools are trusted.

    `address` is the one that the person gave for a skill.
    """

    subject: str
    approved_by: str
    trusted: bool = False
    address: str = ""


CandidateT = TypeVar("CandidateT")
RecordT = TypeVar("RecordT")


class InstallPipeline(ABC, Generic[CandidateT, RecordT]):
    """Commits and removes one kind of thing; every error is a `RecadoError`.

    Its `propose` fetches what is asked for into the quarantine, and runs nothing of it.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._lock = asyncio.Lock()

    async def commit(self, approval: Approval) -> RecordT:
        """Install exactly what was approved; a second time is the same as once.

        Raises an error if the candidate is gone from the quarantine, or would replace something else than its
        card said; then nothing has changed.
        """
        async with self._lock:
            record = await asyncio.to_thread(self._find_committed, approval)
            if record is None:
                candidate = await asyncio.to_thread(self.load, approval.subject)
                record = await self._commit(candidate, approval)
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
    async def _commit(self, candidate: CandidateT, approval: Approval) -> RecordT: ...

    @abstractmethod
    def _remove(self, record: RecordT) -> None: ...
