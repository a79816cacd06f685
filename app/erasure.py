"""Erase a person, in a running server too."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from app.people import Realm
from app.store import personal_data
from app.store.database import Database
from app.store.personal_data import ErasedPerson, PersonFolders


class Erasure:
    """Erases from the database, from people's folders, and from the simulator's phones.

    `end` ends a person's running work and returns once it has ended; `forget_phones` empties the
    simulator's phones of these names.
    """

    def __init__(
        self,
        store: Database,
        folders: PersonFolders,
        end: Callable[[ErasedPerson], Awaitable[None]],
        forget_phones: Callable[[Sequence[str]], None],
    ) -> None:
        self._store = store
        self._folders = folders
        self._end = end
        self._forget_phones = forget_phones

    async def erase(self, realm: Realm, who: str) -> ErasedPerson:
        """Erase a person and return once nothing of them is on the disk.

        Raise RecadoError for an unknown person, or if rows are gone but a folder (which the next sweep
        tries again) or the database's log is not.
        """
        now = time.time()
        erased = await self._store.tx(lambda conn: personal_data.erase(conn, realm, who, now))
        await self._end(erased)
        if erased.who.realm == "simulator":
            self._forget_phones(erased.who.names)
        try:
            await asyncio.to_thread(self._folders.remove, [erased.who.id])
        finally:
            await self._store.truncate_log()
        return erased
