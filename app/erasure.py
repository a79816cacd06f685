"""A person and everything of theirs taken out, from a running assistant too."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from app.errors import RecadoError
from app.people import Realm
from app.settings import Settings
from app.store import belongings
from app.store.belongings import Erased
from app.store.database import Database


async def _nothing_runs(conversations: Sequence[str]) -> None:
    """For a database without a server."""


class Erasure:
    """Erases from the database, the workspace, the files that wait to be sent, and the simulator's phones.

    `end_turns(conversations)` ends what runs there, and returns once it has ended; `forget_phones(names)`
    empties the phones of a simulator that runs.
    """

    def __init__(
        self,
        store: Database,
        settings: Settings,
        end_turns: Callable[[Sequence[str]], Awaitable[None]] = _nothing_runs,
        forget_phones: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._end_turns = end_turns
        self._forget_phones = forget_phones or self._forget_transcript

    async def erase(self, realm: Realm, who: str) -> Erased:
        """Returns once nothing of them is on the disk any more. Raises RecadoError for somebody unknown, and
        where files or the log of the database stay though the rows are gone.
        """
        erased = await self._store.tx(lambda conn: belongings.erase(conn, realm, who))
        await self._end_turns(erased.conversations)
        if erased.who.realm == "simulator":
            self._forget_phones(erased.who.names)
        await self._store.empty_log()
        await asyncio.to_thread(self._remove_files, erased.who.id)
        return erased

    def _remove_files(self, person: str) -> None:
        for folder in folders_of(self._settings, person).values():
            try:
                shutil.rmtree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise RecadoError(
                    f"{folder} could not be removed ({error.strerror}): remove it by hand"
                ) from error

    def _forget_transcript(self, names: Sequence[str]) -> None:
        """Empties the phones of a simulator that does not run."""
        from app.simulator.history import TRANSCRIPT, History
        from app.simulator.people import PEOPLE, named

        history = History(self._settings.data_dir / TRANSCRIPT)
        history.load()
        for phone in named([*PEOPLE, *history.people.values()], names):
            history.forget(phone.id)
        history.close()


def folders_of(settings: Settings, person: str) -> dict[str, Path]:
    """Where files of theirs alone lie, by what they are; those of owners lie together in the workspace."""
    if not person:
        return {}
    return {
        "workspace": settings.workspace_dir / "people" / person,
        "media": settings.data_dir / "media" / person,
    }
