"""Files in `DATA_DIR/media/<person>`: those that tools made for people, and those that came with messages.

Both are removed after two days. What a tool made is named by the hash of its content. What came is taken up
before its message is: `new` → `kept` (its bytes are here) → `read`, or `failed` with a reason. What was found
in it is written into the message itself, where prompts, answers to questions and the history read it.
"""

import hashlib
import os
import re
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import orjson
from pydantic import TypeAdapter

from app.errors import RecadoError
from app.messages import JSON, Attachment, Inbound, MediaFile, MediaKind
from app.people import Conversation
from app.security import write_private
from app.store.conditions import MAY_TALK, UNCLAIMED
from app.store.database import Connection, exists, insert, placeholders, read_row, scalar, update
from app.store.disk_space import MEGABYTE, Disk
from app.store.people import KnownPerson, by_id
from app.text import visible

LARGEST = 16 * MEGABYTE  # Meta takes documents of 100 MB; nothing that a tool makes for a chat needs that
LARGEST_PICTURE = 5 * MEGABYTE
LONGEST_NAME = 80
NAME_BYTES = 200  # a file system takes 255, and a name that is there already gets a number
KEPT_SECONDS = 48 * 3600.0  # a question may wait for a day, and then a message

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = frozenset('<>:"|?*')
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}$")


READABLE = frozenset({"audio", "voice", "image", "sticker", "document"})
MOST_ATTEMPTS = 3
_ATTACHMENT = TypeAdapter(Attachment)

Reason = Literal[
    "away", "damaged", "empty", "gone", "locked", "no_room", "too_large", "too_many", "too_slow", "unheard"
]


class NotKept(RecadoError):
    """A file cannot be sent; the message tells a model why."""


class _Format(NamedTuple):
    """A file format: what WhatsApp shows it as, its file endings, and how its bytes begin."""

    kind: MediaKind
    endings: tuple[str, ...]
    start: bytes  # a regular expression


_ZIPPED, _OLE, _MP4 = rb"PK\x03\x04", rb"\xd0\xcf\x11\xe0", rb".{4}ftyp"
_ALIKE = frozenset({_ZIPPED, _OLE, _MP4})  # how formats begin that only their name tells apart
_OFFICE = "application/vnd.openxmlformats-officedocument."
_FORMATS = {  # the types that the Graph API takes, as its own error 100 lists them; it refuses all others
    "image/jpeg": _Format("image", (".jpg", ".jpeg"), rb"\xff\xd8\xff"),
    "image/png": _Format("image", (".png",), rb"\x89PNG\r\n\x1a\n"),
    "audio/ogg": _Format("audio", (".ogg", ".opus", ".oga"), rb"OggS.{0,60}OpusHead"),
    "audio/mpeg": _Format("audio", (".mp3",), rb"ID3|\xff[\xfb\xf3\xf2]"),
    "audio/aac": _Format("audio", (".aac",), rb"\xff[\xf1\xf9]"),
    "audio/amr": _Format("audio", (".amr",), rb"#!AMR"),
    "audio/mp4": _Format("audio", (".m4a", ".mp4"), _MP4),
    "video/mp4": _Format("video", (".mp4", ".m4v"), _MP4),
    "video/3gpp": _Format("video", (".3gp",), _MP4),
    "application/pdf": _Format("document", (".pdf",), rb"%PDF-"),
    "application/msword": _Format("document", (".doc",), _OLE),
    "application/vnd.ms-excel": _Format("document", (".xls",), _OLE),
    "application/vnd.ms-powerpoint": _Format("document", (".ppt",), _OLE),
    f"{_OFFICE}wordprocessingml.document": _Format("document", (".docx",), _ZIPPED),
    f"{_OFFICE}spreadsheetml.sheet": _Format("document", (".xlsx",), _ZIPPED),
    f"{_OFFICE}presentationml.presentation": _Format("document", (".pptx",), _ZIPPED),
}


class MediaFolder:
    """The files below a folder: at most `quota` bytes for each person (0: no limit), and none on a disk with
    less than `least_free` bytes.

    Its functions block: call them in threads.
    """

    def __init__(self, folder: Path, *, quota: int = 0, least_free: int = 0) -> None:
        self._folder = folder
        self._quota = quota
        self._disk = Disk(folder, least_free)
        self._lock = threading.Lock()  # held while files are counted, written and removed

    def keep(self, person: str, data: bytes, mime_type: str, name: str) -> MediaFile:
        """Write a file and return it with its true type, whatever the tool called it. Raises NotKept."""
        true_type, kind, endings = _detect_format(data, mime_type)
        most = LARGEST_PICTURE if kind == "image" else LARGEST
        if not 0 < len(data) <= most:
            raise NotKept(f"{kind} files must have 1 byte to {most // MEGABYTE} MB")
        called = safe_name(name, endings)
        ending = endings[0] if endings else ".txt"
        if not _PLAIN_ID.fullmatch(person):
            raise NotKept("this person has no folder: the id is not a plain name")
        path = f"{person}/{hashlib.sha256(data).hexdigest()}{ending}"
        try:
            with self._lock:
                if (file := self._folder / path).exists():
                    os.utime(file)  # it has the same content, and only becomes newer
                else:
                    self.make_room(path, len(data))
                    write_private(file, data)
        except OSError as error:
            raise NotKept(f"it could not be kept: {error.strerror or type(error).__name__}") from error
        return MediaFile(path, true_type, called, kind, len(data))

    def make_room(self, path: str, size: int = 0) -> None:
        """Make the folder of a file that is to come. Raises NotKept where there is no room for it."""
        folder = (self._folder / path).parent
        if not self._disk.has_room_for("traces"):
            raise NotKept("the disk is nearly full, so no file is kept")
        kept = sum(path.stat().st_size for path in folder.glob("*"))
        if self._quota and kept + size > self._quota:
            raise NotKept(f"this person's files may have {self._quota / MEGABYTE:g} MB in all")
        for one in (self._folder, folder):
            one.mkdir(mode=0o700, parents=True, exist_ok=True)

    def absolute(self, path: str) -> Path:
        return self._folder.absolute() / path

    def remove(self, path: str) -> None:
        """Remove a file; nothing happens if it is gone."""
        self.absolute(path).unlink(missing_ok=True)

    def read(self, file: MediaFile) -> bytes:
        """Return the bytes. Raises OSError."""
        return self.absolute(file.path).read_bytes()

    def discard_old(self, now: float) -> None:
        """Remove the files that are older than `KEPT_SECONDS`. Raises OSError."""
        for path in list(self._folder.glob("*/*")):
            with self._lock, suppress(FileNotFoundError):
                if path.stat().st_mtime < now - KEPT_SECONDS:
                    path.unlink()


def describe_file(file: MediaFile) -> str:
    """Return a line such as "plan.pdf (application/pdf, 34 KB)"."""
    return f"{file.name} ({file.mime_type}, {-(-file.size // 1024)} KB)"


def safe_name(name: str, endings: tuple[str, ...]) -> str:
    """Return a file name that a phone may show and keep: no folders, nothing invisible, one of `endings`."""
    last = re.split(r"[/\\]", name)[-1][-4 * LONGEST_NAME :]
    shown = "".join("_" if visible(c) != c or c in _NOT_IN_NAMES else c for c in last).strip(" .")
    found = _ENDING.search(shown)
    ending = found[0] if found else ""
    if endings and ending.lower() not in endings:
        ending = endings[0]
    stem = shown.removesuffix(ending) if ending else shown
    ending = ending or ".txt"
    short = stem[: LONGEST_NAME - len(ending)].encode()[: NAME_BYTES - len(ending)].decode(errors="ignore")
    return (short or "file") + ending


def _detect_format(data: bytes, said: str) -> tuple[str, MediaKind, tuple[str, ...]]:
    """Return type, kind and endings by the bytes; what was said decides between formats that begin alike."""
    said = said.partition(";")[0].strip().lower()
    named = _FORMATS.get(said)
    if named is not None and _begins(data, named):
        return said, named.kind, named.endings
    for true_type, one in _FORMATS.items():
        if one.start not in _ALIKE and _begins(data, one):
            return true_type, one.kind, one.endings
    with suppress(UnicodeDecodeError):
        if "\0" not in data.decode():  # HTML, SVG and scripts too are sent as a plain text document
            return "text/plain", "document", ()
    raise NotKept("WhatsApp takes JPEG, PNG, MP3, Opus, MP4, PDF, Office and text files, and this is none")


def _begins(data: bytes, format: _Format) -> bool:
    return re.match(format.start, data, re.DOTALL) is not None


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file whose message waits for it; `path` is where its bytes are, "" before they were fetched."""

    message: int
    kind: str
    path: str
    channel: str
    attachment: Attachment
    person: KnownPerson


def expect_file(conn: Connection, where: Conversation, row: int, message: Inbound, now: float) -> None:
    """Note that a message's file is to be fetched and read before the message is taken up."""
    if message.attachment is None or message.kind not in READABLE:
        return
    insert(conn, "attachments", or_skip=True, message_id=row, **where.columns, state="new", created_at=now)


def is_file_awaited(conn: Connection, messages: Sequence[int]) -> bool:
    """Return whether one of these messages has a file that is still to be read."""
    marks = placeholders(messages)
    sql = f"SELECT 1 FROM attachments WHERE message_id IN ({marks}) AND state IN ('new', 'kept')"
    return exists(conn, sql, *messages)


def waiting_files(conn: Connection, messages: Sequence[int]) -> list[WaitingFile]:
    """Return the files of these messages that are still to be read."""
    unread = (
        f"JOIN inbox ON inbox.message_id = a.message_id JOIN people ON people.id = a.person_id AND {MAY_TALK}"
        f" WHERE a.message_id IN ({placeholders(messages)}) AND a.state IN ('new', 'kept') AND {UNCLAIMED}"
    )
    return _files(conn, unread, *messages)


def waiting_file(conn: Connection, message: int) -> WaitingFile:
    """Return a file with its message and its person."""
    return _files(conn, "WHERE a.message_id = ?", message)[0]


def _files(conn: Connection, which: str, *messages: int) -> list[WaitingFile]:
    rows = conn.execute(
        "SELECT m.id AS message, m.kind, m.payload, a.path, a.person_id, c.channel FROM attachments a"
        " JOIN messages m ON m.id = a.message_id JOIN conversations c ON c.id = a.conversation_id"
        f" {which} ORDER BY a.message_id",
        messages,
    )
    found = []
    for row in rows.fetchall():
        attachment = _ATTACHMENT.validate_python(orjson.loads(row["payload"])["attachment"])
        found.append(read_row(WaitingFile, row, attachment=attachment, person=by_id(conn, row["person_id"])))
    return found


def count_files_read(conn: Connection, messages: Sequence[int]) -> int:
    """Return how many files of these messages were read, or tried in vain."""
    is_read = "state NOT IN ('new', 'kept') AND reason <> 'too_many'"
    sql = f"SELECT count(*) FROM attachments WHERE message_id IN ({placeholders(messages)}) AND {is_read}"
    return int(scalar(conn, sql, *messages))


def begin_file(conn: Connection, message: int) -> bool:
    """Count one more attempt to read a file; return False if `MOST_ATTEMPTS` had no end, which fails it."""
    sql = "UPDATE attachments SET attempts = attempts + 1 WHERE message_id = ? AND attempts < ?"
    counted = conn.execute(sql, (message, MOST_ATTEMPTS))
    if not counted.rowcount:
        fail_file(conn, message, "damaged")
    return counted.rowcount > 0


def file_kept(conn: Connection, message: int, path: str) -> None:
    """Note that the bytes of a file are at `path` below DATA_DIR/media."""
    update(conn, "attachments", "message_id = ? AND state = 'new'", message, state="kept", path=path)


def finish_file(conn: Connection, message: int, found: Mapping[str, JSON], transcript: str = "") -> bool:
    """Write what was found into a file's message, a voice note's words as its text; False if done before."""
    if not _end_file(conn, message, {**found, "state": "read"}):
        return False
    if transcript:
        update(conn, "messages", "id = ?", message, text=transcript, recalled=0)
    return True


def fail_file(conn: Connection, message: int, reason: Reason) -> None:
    """End a file that cannot be had or read; its message says why."""
    _end_file(conn, message, {"state": "failed", "reason": reason}, reason)


def _end_file(conn: Connection, message: int, found: Mapping[str, JSON], reason: str = "") -> bool:
    """End a file, and add what was found to the attachment in the message's own row."""
    is_open = "message_id = ? AND state IN ('new', 'kept', 'unheard')"
    if not update(conn, "attachments", is_open, message, state=found["state"], reason=reason, path=""):
        return False
    payload = orjson.loads(scalar(conn, "SELECT payload FROM messages WHERE id = ?", message))
    payload["attachment"] = {**(payload.get("attachment") or {}), **found}
    update(conn, "messages", "id = ?", message, payload=orjson.dumps(payload).decode(), recalled=0)
    return True


def give_up_old_files(conn: Connection, before: float, most: int) -> int:
    """End files that nobody waits for any more, and voice notes that an earlier version kept."""
    rows = conn.execute(
        "SELECT a.message_id FROM attachments a WHERE a.state IN ('new', 'kept', 'unheard')"
        " AND a.created_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.message_id = a.message_id AND i.done_at IS NULL)"
        " LIMIT ?",
        (before, most),
    ).fetchall()
    for row in rows:
        fail_file(conn, row["message_id"], "gone")
    return len(rows)
