"""Structured logs on stderr, without secrets and people's messages; files of a week for these."""

import logging
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, MutableMapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import orjson
import structlog

from app.text import Private, visible, visible_lines

_Event = MutableMapping[str, Any]
KEPT_LINES = 500
LONGEST_KEPT = 1000  # characters of a line that is kept in memory
PRIVATE_FOLDER = "private"
PRIVATE_DAYS = 7  # that a file is kept
PRIVATE_BYTES = 4 * 1024 * 1024  # of a day; what comes after these is not kept
_MESSAGE = re.compile(r"^(\w[\w.]*(?:Error|Exception|Timeout|Warning|Interrupt|Exit|Group|\w))(?::.*)?$")
_LONG_NUMBER = re.compile(r"(?<![\w.])\+?\d{10,15}(?![\w.])")


def configure(level: str, as_json: bool, secrets: Iterable[str], data_dir: Path) -> None:
    """Set up structlog and the standard library's logging to write one form to stderr.

    Texts that may hold people's words are kept in the data folder.
    """
    longest_first = sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True)
    scrub = partial(_scrub, longest_first)
    least = logging.getLevelNamesMapping()[level]
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper("iso", utc=True),
        structlog.processors.format_exc_info,
        partial(_keep_private, data_dir / PRIVATE_FOLDER),
        scrub,
    ]
    renderers: list[Any] = (
        [structlog.processors.JSONRenderer()]
        if as_json
        else [_written_out, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(least),
        cache_logger_on_first_use=True,
    )
    handler = _KeepingHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, scrub, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(logging.WARNING, least))  # libraries would write whole requests at DEBUG
    logging.getLogger("app").setLevel(level)


_recent: deque[tuple[int, str]] = deque(maxlen=KEPT_LINES)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def recent_lines(count: int, level: str) -> list[str]:
    """Return the newest lines of that level and above as they went to stderr, the oldest first."""
    least = logging.getLevelNamesMapping()[level]
    lines = [_COLOUR.sub("", line) for number, line in list(_recent) if number >= least]
    return lines[-count:] if count > 0 else []


class _KeepingHandler(logging.StreamHandler[TextIO]):
    """Writes to a stream and keeps the newest lines, which an owner may ask for in the chat."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        _recent.append((record.levelno, line[:LONGEST_KEPT]))
        return line


def _written_out(logger: object, method: str, event: _Event) -> _Event:
    """Escape what a terminal would obey; keep each value but a traceback on one line."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = visible_lines(value) if key == "exception" else visible(value)
    return event


def _scrub(secrets: Sequence[str], logger: object, method: str, event: _Event) -> _Event:
    """Remove known secrets and whole phone numbers from every value."""
    for key, value in event.items():
        if isinstance(value, str):
            for secret in secrets:
                value = value.replace(secret, "***")
            event[key] = _LONG_NUMBER.sub(lambda number: f"{number[0][:3]}…{number[0][-2:]}", value)
    return event


def _keep_private(folder: Path, logger: object, method: str, event: _Event) -> _Event:
    """Take texts that may hold people's words out, and write them to a file of the day for the operator.

    A traceback keeps its files, lines and types; the messages of its exceptions are private.
    """
    kept = {key: value.text for key, value in event.items() if isinstance(value, Private)}
    event.update({key: str(event[key]) for key in kept})
    if isinstance(event.get("exception"), str):
        kept["exception"] = event["exception"]
        event["exception"] = _without_messages(event["exception"])
    if kept:
        entry = {"at": event.get("timestamp", ""), "event": event.get("event", ""), **kept}
        with suppress(OSError):  # a full disk: the log itself still says what happened
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (folder / f"{datetime.now(UTC):%Y-%m-%d}.jsonl").open("ab") as file:
                if file.tell() < PRIVATE_BYTES:
                    file.write(orjson.dumps(entry, default=str) + b"\n")
    return event


def forget_old(data_dir: Path, now: float) -> None:
    """Delete the files of more than a week ago. Blocks."""
    oldest = f"{datetime.fromtimestamp(now, UTC) - timedelta(days=PRIVATE_DAYS):%Y-%m-%d}"
    for path in (data_dir / PRIVATE_FOLDER).glob("*.jsonl"):
        if path.stem < oldest:
            path.unlink(missing_ok=True)


def forget_all(data_dir: Path) -> None:
    """Delete every file: nobody can tell whose words are in it. Blocks."""
    forget_old(data_dir, time.time() + 2 * PRIVATE_DAYS * 86_400)


def _without_messages(traceback: str) -> str:
    """Return the lines that name files, code and types of exceptions."""
    lines = []
    for line in traceback.splitlines():
        if line.startswith((" ", "Traceback", "During handling", "The above exception")) or not line:
            lines.append(line)
        elif found := _MESSAGE.match(line):
            lines.append(found[1])
    return "\n".join(lines)
