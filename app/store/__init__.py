"""The store: the database and the folders that belong to it."""

from dataclasses import dataclass
from pathlib import Path

from app.settings import Settings
from app.store.database import Database
from app.store.disk_space import MEGABYTE, Disk
from app.store.media import MediaFolder
from app.store.personal_data import PersonFolders


@dataclass(frozen=True, slots=True)
class Store:
    """The database, the files on their way to people, people's folders, and the disk below them."""

    database: Database
    media: MediaFolder
    folders: PersonFolders
    disk: Disk


def build_store(settings: Settings) -> Store:
    """Return the store of these settings; its database is still to be opened."""
    free = settings.free_space_mb * MEGABYTE
    quota = int(settings.files_quota_mb * MEGABYTE)
    media = MediaFolder(settings.data_dir / "media", quota=quota, least_free=free)
    beside = settings.database.parent if isinstance(settings.database, Path) else settings.data_dir
    return Store(
        Database(settings.database, shared=settings.role != "all"),
        media,
        PersonFolders(settings.workspace_dir, settings.data_dir),
        Disk(settings.data_dir, free, beside),
    )
