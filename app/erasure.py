"""Erase a person, in a running server too."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from app.ops.private_log import forget_all
from app.people import Realm
from app.simulator import history
from app.store import Store, personal_data
from app.store.personal_data import ErasedPerson


class Phones(Protocol):
    """The simulator's phones, which keep messages of their own."""

    def forget(self, names: Sequence[str], /) -> None:
        """Delete the messages of the people with these names."""


class RunningWork(Protocol):
    """The turns and sends of a running server."""

    async def end(self, erased: ErasedPerson, /) -> None:
        """End what runs for an erased person, and return once it has ended."""


@dataclass(frozen=True)
class StoredPhones:
    """The phones of a simulator that does not run."""

    data_dir: Path

    def forget(self, names: Sequence[str], /) -> None:
        history.forget(self.data_dir, names)


class Erasure:
    """Erases a person from the database, from the folders of people, and from the simulator's phones."""

    def __init__(self, store: Store, phones: Phones, running: RunningWork | None = None) -> None:
        self._store = store.database
        self._data_dir = store.disk.folder
        self._folders = store.folders
        self._phones = phones
        self._running = running

    async def erase(self, realm: Realm, who: str) -> ErasedPerson:
        """Erase a person and return once nothing of them is on the disk.

        Raise RecadoError for an unknown person, or if rows are gone but a folder (which the next sweep
        tries again) or the database's log is not.
        """
        now = time.time()
        erased = await self._store.tx(lambda conn: personal_data.erase(conn, realm, who, now))
        if self._running is not None:
            await self._running.end(erased)
        if erased.who.realm == "simulator":
            self._phones.forget(erased.who.names)
        await asyncio.to_thread(forget_all, self._data_dir)
        try:
            await asyncio.to_thread(self._folders.remove, [erased.who.id])
        finally:
            await self._store.truncate_log()
        return erased
