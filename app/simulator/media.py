"""Files that travel both ways: kept in memory, the oldest dropped first."""

import base64
import hashlib
import secrets
import zlib
from dataclasses import dataclass

from app.messages import JSON
from app.simulator.faults import LIMITS, Refusal

MB = 1024 * 1024
MEDIA_KINDS = frozenset({"image", "video", "audio", "document", "sticker"})
_SHELF = 128 * MB

_LARGEST = 100 * MB  # of a document
_LIMITS = {kind: most * 1024 for kind, most in LIMITS["file_kilobytes"].items()}
_UPLOADED = {*_LIMITS, *LIMITS["uploads"]}
_DOCUMENTS = ("text/plain", "application/")
_SILENCE = (  # three seconds of Ogg Opus, compressed
    "c-r$%PY-5bVt|4RN8-S=Kv!NKqp*KLX|YFYVhSUp1!Kc*u!KKIIRmnCMj&mljQ"
    "tR!7)W_YVtO$fP^2g|IWZ+4u7jn)hzYI(#Cm))h<h6Ipaehu{~JX^8UX+T2-s@"
)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file; `sha256` is base64 in webhooks and hex in the answer about its address, as at Meta."""

    id: str
    mime_type: str
    data: bytes
    filename: str = ""

    @property
    def webhook_block(self) -> dict[str, JSON]:
        digest = hashlib.sha256(self.data).digest()
        return {"mime_type": self.mime_type, "sha256": base64.b64encode(digest).decode(), "id": self.id}


class MediaShelf:
    """Files of at most 128 MB in all; older ones are gone, as they are at Meta after 30 days."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}

    def put(self, data: bytes, mime_type: str, filename: str = "") -> StoredFile:
        """Keep a file. Raise Refusal for a type or size that Meta does not take."""
        bare = _bare(mime_type)
        limit = _LIMITS.get(bare, _LARGEST)
        if bare not in _LIMITS and not bare.startswith(_DOCUMENTS):
            raise Refusal(100, f"Param file must be a file with one of the supported types; got {bare!r}.")
        if not data or len(data) > limit:
            raise Refusal(131053, f"A file of the type {bare} must have 1 to {limit} bytes.")
        stored = StoredFile(str(secrets.randbelow(9 * 10**15) + 10**15), mime_type, data, filename)
        self._files[stored.id] = stored
        while sum(len(file.data) for file in self._files.values()) > _SHELF:
            self.remove(next(iter(self._files)))
        return stored

    def upload(self, data: bytes, mime_type: str, filename: str) -> StoredFile:
        """Keep a file that a business uploads. Raise Refusal for a type or size that Meta does not take."""
        if _bare(mime_type) not in _UPLOADED:
            kinds = ", ".join(sorted(_UPLOADED))
            raise Refusal(100, f"Param file must be a file with one of the following types: {kinds}.")
        return self.put(data, mime_type, filename)

    def get(self, media_id: str) -> StoredFile | None:
        return self._files.get(media_id)

    def remove(self, media_id: str) -> None:
        del self._files[media_id]


def canned_clip() -> bytes:
    """Return a voice note: three seconds of silence as Ogg Opus."""
    return zlib.decompress(base64.b85decode(_SILENCE))


def _bare(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()
