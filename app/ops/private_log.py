"""Texts that may hold people's words, kept apart from the log: for the operator alone, for a week."""

import re
import time
from collections.abc import MutableMapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from app.text import Private

FOLDER = "private"
KEPT_DAYS = 7
DAY_BYTES = 4 * 1024 * 1024  # what comes after these of a day is not kept
_MESSAGE = re.compile(r"^(\w[\w.]*(?:Error|Exception|Timeout|Warning|Interrupt|Exit|Group|\w))(?::.*)?$")


class PrivateLog:
    """A processor of log events: it takes out private texts, and writes them to a file of the day.

    A traceback keeps its files, lines and types; the messages of its exceptions are private.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __call__(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        kept = {key: value.text for key, value in event.items() if isinstance(value, Private)}
        event.update({key: str(event[key]) for key in kept})
        if isinstance(event.get("exception"), str):
            kept["exception"] = event["exception"]
            event["exception"] = _without_messages(event["exception"])
        if kept and self._folder is not None:
            entry = {"at": event.get("timestamp", ""), "event": event.get("event", ""), **kept}
            with suppress(OSError):  # a full disk: the log itself still says what happened
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with (self._folder / f"{datetime.now(UTC):%Y-%m-%d}.jsonl").open("ab") as file:
                    if file.tell() < DAY_BYTES:
                        file.write(orjson.dumps(entry, default=str) + b"\n")
        return event


def forget_old(data_dir: Path, now: float) -> None:
    """Delete the files of more than a week ago. Blocks."""
    oldest = f"{datetime.fromtimestamp(now, UTC) - timedelta(days=KEPT_DAYS):%Y-%m-%d}"
    for path in (data_dir / FOLDER).glob("*.jsonl"):
        if path.stem < oldest:
            path.unlink(missing_ok=True)


def forget_all(data_dir: Path) -> None:
    """Delete every file: nobody can tell whose words are in it. Blocks."""
    forget_old(data_dir, time.time() + 2 * KEPT_DAYS * 86_400)


def _without_messages(traceback: str) -> str:
    """Return the lines that name files, code and types of exceptions."""
    lines = []
    for line in traceback.splitlines():
        if line.startswith((" ", "Traceback", "During handling", "The above exception")) or not line:
            lines.append(line)
        elif found := _MESSAGE.match(line):
            lines.append(found[1])
    return "\n".join(lines)
