"""Files that travel both ways: kept in memory, the oldest dropped first."""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message

from app.messages import JSON
from app.simulator.bodies import MEDIA_KINDS
from app.simulator.objections import Objection
from app.simulator.refusals import Refusal
from app.simulator.voice import canned_clip

MB = 1024 * 1024
LARGEST = 100 * MB
_SHELF = 128 * MB

_KINDS = {
    "image/jpeg": ("image", 5 * MB),
    "image/png": ("image", 5 * MB),
    "image/webp": ("sticker", 500 * 1024),
    "audio/aac": ("audio", 16 * MB),
    "audio/amr": ("audio", 16 * MB),
    "audio/mpeg": ("audio", 16 * MB),
    "audio/mp4": ("audio", 16 * MB),
    "audio/ogg": ("audio", 16 * MB),
    "video/mp4": ("video", 16 * MB),
    "video/3gpp": ("video", 16 * MB),
}
_DOCUMENTS = ("text/plain", "application/")
_OFFICE = "application/vnd.openxmlformats-officedocument."
_UPLOADED = frozenset(
    {
        *_KINDS,
        "audio/opus",
        "text/plain",
        "application/pdf",
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        f"{_OFFICE}wordprocessingml.document",
        f"{_OFFICE}spreadsheetml.sheet",
        f"{_OFFICE}presentationml.presentation",
    }
)
"""What Meta's own error 100 lists; people send each other more."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file; `sha256` is base64 in webhooks and hex in the answer about its address, as at Meta."""

    id: str
    mime_type: str
    data: bytes
    filename: str = ""

    @property
    def webhook_block(self) -> dict[str, JSON]:
        digest = hashlib.sha256(self.data).digest()
        return {
            "mime_type": self.mime_type,
            "sha256": base64.b64encode(digest).decode(),
            "id": self.id,
        }


class MediaShelf:
    """Holds at most 128 MB; what is older is gone, as it is at Meta after 30 days."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}
        self._size = 0

    def put(self, data: bytes, mime_type: str, filename: str = "") -> StoredFile:
        """Keeps a file. Raises Refusal for a type or size that Meta does not take."""
        bare = mime_type.partition(";")[0].strip().lower()
        kind, limit = _KINDS.get(bare, ("document", LARGEST))
        if kind == "document" and not bare.startswith(_DOCUMENTS):
            raise Refusal(100, f"Param file must be a file with one of the supported types; got {bare!r}.")
        if not data or len(data) > limit:
            raise Refusal(131053, f"A file of this type ({kind}) must have 1 to {limit} bytes.")
        stored = StoredFile(str(secrets.randbelow(9 * 10**15) + 10**15), mime_type, data, filename)
        self._files[stored.id] = stored
        self._size += len(data)
        while self._size > _SHELF:
            self.remove(next(iter(self._files)))
        return stored

    def upload(self, data: bytes, mime_type: str, filename: str) -> StoredFile:
        """Keeps what a business uploads. Raises Refusal for a type or size that Meta does not take."""
        if mime_type.partition(";")[0].strip().lower() not in _UPLOADED:
            kinds = ", ".join(sorted(_UPLOADED))
            raise Refusal(100, f"Param file must be a file with one of the following types: {kinds}.")
        return self.put(data, mime_type, filename)

    def take(self, message: Mapping[str, JSON]) -> StoredFile | None:
        """Keeps the file of what a person sends; None where there is none. Raises Objection."""
        kind, data = message.get("type"), message.get("data")
        if kind == "voice" and data is None:
            return self.put(canned_clip(), "audio/ogg; codecs=opus")
        if kind not in MEDIA_KINDS | {"voice"} or not isinstance(data, bytes):
            return None
        try:
            return self.put(data, str(message.get("mime_type", "")), str(message.get("filename", "")))
        except Refusal as refusal:
            raise Objection("file") from refusal

    def get(self, media_id: str) -> StoredFile | None:
        return self._files.get(media_id)

    def remove(self, media_id: str) -> bool:
        stored = self._files.pop(media_id, None)
        if stored is None:
            return False
        self._size -= len(stored.data)
        return True


def parse_form(body: bytes, content_type: str) -> Mapping[str, tuple[bytes, str, str]]:
    """The parts of a multipart form by name: bytes, mime type and file name. Raises Refusal."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/form-data" or not isinstance(boundary, str):
        raise Refusal(100, "The file must be uploaded as multipart/form-data.")
    parts = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.encode())[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        fields = _headers(head)
        name = fields.get_param("name", header="content-disposition")
        if isinstance(name, str):
            parts[name] = (data, str(fields.get("Content-Type", "")), fields.get_filename() or "")
    return parts


def _headers(head: bytes) -> Message:
    fields = Message()
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields[name.strip()] = value.strip()
    return fields
