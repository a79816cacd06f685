"""Structured logs on stderr, without secrets and without people's messages."""

import logging
import re
import sys
from collections import deque
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any, TextIO

import structlog

from app.ops.private_log import PrivateLog
from app.text import visible, visible_lines

_NOISY = (  # at DEBUG these would write whole requests, or a line for each step of theirs
    "procrastinate",
    *("httpx2", "httpcore2", "httpx", "httpcore", "aiohttp", "openai"),
    *("aiosqlite", "apscheduler", "asyncio", "uvicorn.access"),
    *("mcp", "client", "sse_starlette"),  # "client" is of mcp
    *("markdown_it", "tzlocal"),
)
KEPT_LINES = 500
LONGEST_KEPT = 1000  # characters of a line that is kept in memory
_LONG_NUMBER = re.compile(r"(?<![\w.])\+?\d{10,15}(?![\w.])")


def configure(level: str, as_json: bool, secrets: Iterable[str], private: Path | None = None) -> None:
    """Set up structlog and the standard library's logging to write one form to stderr.

    `private` is the folder for texts that may hold people's words; None keeps none of them.
    """
    scrub = _Scrub([secret for secret in secrets if len(secret) >= 4])
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper("iso", utc=True),
        structlog.processors.format_exc_info,
        PrivateLog(private),
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
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level)),
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
    root.setLevel(level)
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)


_recent: deque[tuple[int, str]] = deque(maxlen=KEPT_LINES)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def recent_lines(count: int, level: str = "DEBUG") -> list[str]:
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


def _written_out(logger: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape what a terminal would obey; keep each value but a traceback on one line."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = visible_lines(value) if key == "exception" else visible(value)
    return event


class _Scrub:
    """Removes known secrets and whole phone numbers from every value."""

    def __init__(self, secrets: list[str]) -> None:
        self._secrets = sorted(set(secrets), key=len, reverse=True)

    def __call__(
        self, logger: object, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        for key, value in event.items():
            if isinstance(value, str):
                event[key] = self._clean(value)
        return event

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return _LONG_NUMBER.sub(lambda number: f"{number[0][:3]}…{number[0][-2:]}", text)
