"""Erase a person, in a running server too."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from app.ops.logs import forget_all
from app.people import Realm
from app.simulator.graph import StandInGraph
from app.simulator.history import HISTORY_FILE
from app.store import Store, personal_data
from app.store.personal_data import ErasedPerson


class Erasure:
    """Erases a person from the database, from the folders of people, and from the simulator's phones.

    In a running server `phones` are those of the simulator, and `end` ends what runs for the person.
    """

    def __init__(
        self,
        store: Store,
        phones: StandInGraph | None = None,
        end: Callable[[ErasedPerson], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store.database
        self._data_dir = store.disk.folder
        self._folders = store.folders
        self._phones = phones
        self._end = end

    async def erase(self, realm: Realm, who: str) -> ErasedPerson:
        """Erase a person and return once nothing of them is on the disk.

        Raise RecadoError for an unknown person, or if rows are gone but a folder (which the next sweep
        tries again) or the database's log is not.
        """
        now = time.time()
        erased = await self._store.tx(lambda conn: personal_data.erase(conn, realm, who, now))
        if self._end is not None:
            await self._end(erased)
        if erased.who.realm == "simulator":
            if self._phones is not None:
                self._phones.forget(erased.who.names)
            else:
                (self._data_dir / HISTORY_FILE).unlink(missing_ok=True)
        await asyncio.to_thread(forget_all, self._data_dir)
        try:
            await asyncio.to_thread(self._folders.remove, [erased.who.id])
        finally:
            await self._store.engine.truncate_log()
        return erased
