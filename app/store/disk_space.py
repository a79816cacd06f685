"""Free space on the disk, and what is refused when it runs low: traces first, then data, the inbox last.

The sweep measures and raises alerts; whoever writes checks those alerts in its own transaction.
"""

import errno
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from app.i18n import lazy
from app.store import alerts
from app.store.database import Connection, exists

MEGABYTE: Final = 1024 * 1024
Kind = Literal["traces", "data"]

# below this share of the space that should be free, the kind is refused
_SHARES: Final[dict[Kind, float]] = {"traces": 1.0, "data": 0.4}
_REFUSED: Final[dict[Kind, str]] = {
    "traces": lazy("traces and media are not kept"),
    "data": lazy("notes and other data of skills, and files, are refused"),
}
_HYSTERESIS = 1.1  # of a limit: free space that hovers around it does not raise an alert at every sweep


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of a folder, or the fuller one of two; `least` bytes should be free on it (0: no limit)."""

    folder: Path
    least: int
    other: Path | None = None

    def free(self) -> int:
        """Return the free bytes, also for a folder that does not exist yet. Raises OSError."""
        folders = [folder.absolute() for folder in (self.folder, self.other) if folder is not None]
        there = [next(one for one in (folder, *folder.parents) if one.exists()) for folder in folders]
        return min(shutil.disk_usage(folder).free for folder in there)

    def has_room_for(self, kind: Kind) -> bool:
        """Return whether `kind` is kept with the space that is free now."""
        return not self.least or self.free() >= self.least * _SHARES[kind]


def is_full(error: OSError) -> bool:
    """Return whether the error says that a disk or a quota has no room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def is_kept(conn: Connection, kind: Kind) -> bool:
    """Return whether there was room for `kind` at the last sweep."""
    return not exists(conn, "SELECT 1 FROM alerts WHERE code = ? AND mended_at IS NULL", f"space:{kind}")


def update_alerts(conn: Connection, free: int, least: int, now: float) -> list[str]:
    """Open and close the alerts about `free` bytes; return what changed, in words."""
    changes: list[str] = []
    for kind, share in _SHARES.items():
        limit, kept = least * share, is_kept(conn, kind)
        if kept and free < limit:
            fact = lazy("only {n} MB are free on the disk: {fact}", n=free // MEGABYTE, fact=_REFUSED[kind])
            alerts.raise_alert(conn, f"space:{kind}", fact, now)
            changes.append(fact)
        elif not kept and free >= limit * _HYSTERESIS:
            alerts.close_alerts(conn, f"space:{kind}", now)
            changes.append(f"{free // MEGABYTE} MB are free on the disk: {kind} are kept again")
    return changes
