"""The homes of workers: a folder for each, empty at first, gone with it whatever was made in there."""

import os
import tempfile
import threading
from pathlib import Path

from app.rmtree import remove


def make_home(homes: Path | None) -> str:
    """A new home in a folder of the server's, or where temporary files go. Raises OSError."""
    return os.path.abspath(tempfile.mkdtemp(prefix="recado-worker-", dir=homes))


def clear(homes: Path) -> None:
    """Makes the folder, and begins to remove what a server that was killed left in it. Raises OSError."""
    homes.mkdir(mode=0o700, parents=True, exist_ok=True)
    left = [str(path) for path in homes.iterdir()]
    threading.Thread(target=lambda: list(map(remove, left)), daemon=True).start()
