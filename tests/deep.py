"""Folders inside each other beyond what any path can name."""

import os
from pathlib import Path


def make_deep(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("inner", dir_fd=at)
        inner = os.open("inner", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
