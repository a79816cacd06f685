"""Pictures in what a model is asked: as it wants them, or as words for one that cannot see.

A prompt names a picture by a part of its own form, `{"type": "picture", "path": …}`; the bytes join it when
the request is posted, so that neither the journal nor a trace holds them.
"""

import asyncio
import base64
from collections.abc import Sequence
from typing import Protocol

import structlog

from app.messages import JSON
from app.people import Person
from app.settings import Settings

log = structlog.get_logger(__name__)

MOST_PICTURES = 6  # of one request, the newest
UNSEEN = "[a picture that you cannot see: say so kindly, and ask what it shows or says]"
_GONE = "[a picture that is no longer there]"


class PictureSource(Protocol):
    """The pictures that people sent."""

    def read_bytes(self, person: Person | None, path: str) -> bytes:
        """Return a JPEG of this person. Blocks. Raises OSError or ValueError."""


class Vision:
    """Puts pictures into requests: until the model refuses them, unless VISION says."""

    def __init__(self, settings: Settings, source: PictureSource | None = None) -> None:
        self._setting = settings.vision
        self._source = source
        self.sees = source is not None and self._setting != "off"

    def refuse(self) -> None:
        """Note that the model takes no pictures."""
        if self._setting == "auto":
            log.warning("the model takes no pictures")
            self.sees = False

    async def filled(self, messages: Sequence[JSON], person: Person | None) -> list[JSON]:
        """Return the messages with their newest pictures as `data:` addresses."""
        left = MOST_PICTURES
        filled: list[JSON] = []
        for message in reversed(messages):
            content = message.get("content")
            if isinstance(content, list):
                parts: list[JSON] = []
                for part in reversed(content):
                    if part.get("type") == "picture":
                        part = await self._part(part["path"], person) if left > 0 else _words(UNSEEN)
                        left -= 1
                    parts.append(part)
                message = {**message, "content": parts[::-1]}
            filled.append(message)
        return filled[::-1]

    async def _part(self, path: str, person: Person | None) -> JSON:
        assert self._source is not None
        try:
            data = await asyncio.to_thread(self._source.read_bytes, person, path)
        except (OSError, ValueError):
            return _words(_GONE)
        url = f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"
        return {"type": "image_url", "image_url": {"url": url}}


def has_pictures(messages: Sequence[JSON]) -> bool:
    """Tell whether a prompt holds a picture."""
    return any(
        part.get("type") == "picture"
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
    )


def in_words(messages: Sequence[JSON]) -> list[JSON]:
    """Return the messages with words in place of pictures."""
    return [
        {**message, "content": "\n".join(part.get("text", UNSEEN) for part in content)}
        if isinstance(content := message.get("content"), list)
        else message
        for message in messages
    ]


def _words(text: str) -> JSON:
    return {"type": "text", "text": text}
