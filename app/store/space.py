"""Free space on the disk, and what is kept no more when it runs low: traces first, then data, the inbox last.

The sweep looks and writes what follows as alerts; whoever writes asks them in its own transaction.
"""

import errno
import shutil
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection
from typing import Final, Literal

from app.store import alerts

MEGABYTE: Final = 1024 * 1024
Kind = Literal["traces", "data"]

_SHARES: Final[dict[Kind, float]] = {"traces": 1.0, "data": 0.4}
"""Of the least that should be free: below it this is kept no more."""
_FACTS: Final[dict[Kind, tuple[str, str]]] = {
    "traces": ("traces and media are not kept", "traces and media are kept"),
    "data": (
        "notes and other data of skills, and files, are refused",
        "notes and other data of skills, and files, are taken",
    ),
}
"""Below the limit, and above it again."""
_EASED = 1.1
"""Of a limit: free space that hovers around it does not change things at every look."""


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of a folder, or the fuller one of two. `least`: bytes that should be free on it, 0 where
    nobody cares."""

    folder: Path
    least: int
    other: Path | None = None

    def free(self) -> int:
        """Bytes that are free, for a folder that is still to be made too. Raises OSError."""
        return min(_free(folder.absolute()) for folder in (self.folder, self.other) if folder is not None)

    def has_room_for(self, kind: Kind) -> bool:
        """Whether `kind` is still kept, as the disk is now."""
        return not self.least or self.free() >= self.least * _SHARES[kind]


def is_full(error: OSError) -> bool:
    """Whether a disk or a quota that has no room is the reason."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def _free(folder: Path) -> int:
    return shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free


def keeps(conn: Connection, kind: Kind) -> bool:
    """Whether there was room for `kind` when the sweep looked last."""
    row = conn.execute("SELECT 1 FROM alerts WHERE code = ? AND mended_at IS NULL", (f"space:{kind}",))
    return row.fetchone() is None


def update_alerts(conn: Connection, free: int, least: int, now: float) -> list[str]:
    """Opens and closes alerts as `free` bytes demand it; gives what changed, in words."""
    changes = []
    for kind, share in _SHARES.items():
        limit, kept = least * share, keeps(conn, kind)
        short, enough = _FACTS[kind]
        if kept and free < limit:
            fact = f"only {free // MEGABYTE} MB are free on the disk: {short}"
            alerts.raise_alert(conn, f"space:{kind}", fact, now)
            changes.append(fact)
        elif not kept and free >= limit * _EASED:
            alerts.mend(conn, f"space:{kind}", now)
            changes.append(f"{free // MEGABYTE} MB are free on the disk again: {enough}")
    return changes
