"""Where files of one person alone lie, and their end."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

from app.errors import RecadoError
from app.rmtree import rmtree
from app.store.database import Database


class Folders:
    """A person's folders: in the workspace (owners share all of it), and of files on their way to them.

    Its functions block: they are called in threads.
    """

    def __init__(self, workspace: Path, data_dir: Path) -> None:
        self._workspace = workspace
        self._data_dir = data_dir

    def of(self, person: str) -> dict[str, Path]:
        """By what they hold; none for "", who is nobody."""
        if not person:
            return {}
        return {"workspace": self._workspace / "people" / person, "media": self._data_dir / "media" / person}

    def remove(self, people: Iterable[str]) -> None:
        """Removes theirs with all that they hold. Raises RecadoError once every one was tried."""
        faults = []
        for folder in (folder for person in people for folder in self.of(person).values()):
            try:
                if folder.is_symlink():
                    folder.unlink()
                elif folder.exists():
                    rmtree(folder)  # however deep: a server may have written there
            except OSError as error:
                faults.append(f"{folder} could not be removed: {error.strerror or error}")
        if faults:
            raise RecadoError("; ".join(faults))


async def sweep(store: Database, folders: Folders) -> None:
    """Removes what is still there of people who were erased: a crash came between, or a tool that could not
    be stopped wrote on. Raises RecadoError."""
    gone = [row["id"] for row in await store.all("SELECT id FROM erased")]
    if gone:
        await asyncio.to_thread(folders.remove, gone)
