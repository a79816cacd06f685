"""Files that tools made for people: kept on disk from the call's result until a day after they were sent.

A person's lie in `DATA_DIR/media/<person>`, each named by its content.
"""

import asyncio
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from app.errors import RecadoError
from app.messages import MediaFile, MediaKind
from app.store.database import Database
from app.store.space import MEGABYTE, Disk
from app.text import visible

LARGEST = 16 * MEGABYTE
"""Meta takes documents of 100 MB; nothing that a tool makes for a chat needs that."""
LARGEST_PICTURE = 5 * MEGABYTE
LONGEST_NAME = 80
KEPT_SECONDS = 24 * 3600.0
NEW_SECONDS = 60.0
"""Whoever has a folder this young may be newer than the list of people."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAMES = frozenset('<>:"|?*')
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}$")


class NotKept(RecadoError):
    """A file cannot be sent; the message says why, to a model."""


@dataclass(frozen=True, slots=True)
class _Format:
    """What WhatsApp shows a file as, the endings of its name, and how its bytes begin.

    `told_apart`: no other format begins like this, whatever a tool calls it.
    """

    kind: MediaKind
    endings: tuple[str, ...]
    start: re.Pattern[bytes]
    told_apart: bool = True


def _begins(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL)


_ZIPPED, _OLE, _MP4 = _begins(rb"PK\x03\x04"), _begins(rb"\xd0\xcf\x11\xe0"), _begins(rb".{4}ftyp")
_OFFICE = "application/vnd.openxmlformats-officedocument."
_FORMATS = {  # the types that the Graph API takes, as its own error 100 lists them; it refuses all others
    "image/jpeg": _Format("image", (".jpg", ".jpeg"), _begins(rb"\xff\xd8\xff")),
    "image/png": _Format("image", (".png",), _begins(rb"\x89PNG\r\n\x1a\n")),
    "audio/ogg": _Format("audio", (".ogg", ".opus", ".oga"), _begins(rb"OggS.{0,60}OpusHead")),
    "audio/mpeg": _Format("audio", (".mp3",), _begins(rb"ID3|\xff[\xfb\xf3\xf2]")),
    "audio/aac": _Format("audio", (".aac",), _begins(rb"\xff[\xf1\xf9]")),
    "audio/amr": _Format("audio", (".amr",), _begins(rb"#!AMR")),
    "audio/mp4": _Format("audio", (".m4a", ".mp4"), _MP4, told_apart=False),
    "video/mp4": _Format("video", (".mp4", ".m4v"), _MP4, told_apart=False),
    "video/3gpp": _Format("video", (".3gp",), _MP4, told_apart=False),
    "application/pdf": _Format("document", (".pdf",), _begins(rb"%PDF-")),
    "application/msword": _Format("document", (".doc",), _OLE, told_apart=False),
    "application/vnd.ms-excel": _Format("document", (".xls",), _OLE, told_apart=False),
    "application/vnd.ms-powerpoint": _Format("document", (".ppt",), _OLE, told_apart=False),
    f"{_OFFICE}wordprocessingml.document": _Format("document", (".docx",), _ZIPPED, told_apart=False),
    f"{_OFFICE}spreadsheetml.sheet": _Format("document", (".xlsx",), _ZIPPED, told_apart=False),
    f"{_OFFICE}presentationml.presentation": _Format("document", (".pptx",), _ZIPPED, told_apart=False),
}


class MediaFolder:
    """The files below a folder. Each person's may have `quota` bytes in all, 0 for no limit; nothing is kept
    on a disk with less than `least_free` bytes.

    Its functions block: they are called in threads.
    """

    def __init__(self, folder: Path, *, quota: int = 0, least_free: int = 0) -> None:
        self._folder = folder
        self._quota = quota
        self._disk = Disk(folder, least_free)
        self._one_writer = threading.Lock()
        """Held while files are counted, written and removed: none goes that was just asked for again."""

    def keep(self, person: str, data: bytes, mime_type: str, name: str) -> MediaFile:
        """Writes a file to the disk and gives what it is, whatever the tool called it. Raises NotKept."""
        true_type, kind, endings = _what_it_is(data, mime_type)
        most = LARGEST_PICTURE if kind == "image" else LARGEST
        if not 0 < len(data) <= most:
            raise NotKept(f"{kind} files must have 1 byte to {most // MEGABYTE} MB")
        called = safe_name(name, endings)
        ending = endings[0] if endings else ".txt"
        path = f"{_checked(person)}/{hashlib.sha256(data).hexdigest()}{ending}"
        try:
            with self._one_writer:
                self._write(self._folder / path, data)
        except OSError as error:
            raise NotKept(f"it could not be kept: {error.strerror or type(error).__name__}") from error
        return MediaFile(path, true_type, called, kind, len(data))

    def path(self, file: MediaFile) -> Path:
        """Where it lies."""
        return self._folder.absolute() / file.path

    def read(self, file: MediaFile) -> bytes:
        """Its bytes. Raises OSError."""
        return self.path(file).read_bytes()

    def is_empty(self) -> bool:
        """Whether nobody has files here."""
        return next(self._folders(), None) is None

    def discard(self, used: Collection[str], people: Collection[str], now: float) -> None:
        """Removes what nobody waits for: old files that are not among `used`, and all of who is no longer
        among `people`. Raises OSError."""
        for folder in list(self._folders()):
            with self._one_writer:
                if folder.name not in people and folder.stat().st_mtime < now - NEW_SECONDS:
                    shutil.rmtree(folder)
                    continue
                for path in list(folder.iterdir()):
                    old = path.stat().st_mtime < now - KEPT_SECONDS
                    if old and f"{folder.name}/{path.name}" not in used:
                        path.unlink()
                with suppress(OSError):  # it holds files
                    folder.rmdir()

    def _folders(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from (path for path in self._folder.iterdir() if path.is_dir())

    def _write(self, path: Path, data: bytes) -> None:
        """A file is there whole or not at all; one that is there already is as good as new."""
        if path.exists():
            os.utime(path)
            return
        if not self._disk.has_room_for("traces"):
            raise NotKept("the disk is nearly full, so no file is kept")
        if self._quota and _size(path.parent) + len(data) > self._quota:
            raise NotKept(f"this person's files may have {self._quota / MEGABYTE:g} MB in all")
        for folder in (self._folder, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        half = path.with_suffix(".part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(half, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        half.replace(path)
        _sync(path.parent)


async def sweep(store: Database, media: MediaFolder, now: float) -> None:
    """Removes what is old and waits for nobody, and what belonged to who is gone. Raises OSError."""
    if await asyncio.to_thread(media.is_empty):
        return
    used, people = await in_use(store, now)
    await asyncio.to_thread(media.discard, used, people, now)


async def in_use(store: Database, now: float) -> tuple[frozenset[str], frozenset[str]]:
    """Paths of the files that are still wanted, and who there is.

    A file waits in the journal of a turn, then in the outbox, so they are asked in this order.
    """
    waiting = await store.all(
        "SELECT j.payload FROM turns t JOIN journal j ON j.turn_id = t.id"
        " WHERE t.state <> 'done' AND j.key > 'files:' AND j.key < 'files;'"
    )
    going = await store.all(
        "SELECT media FROM outbox WHERE media <> '' AND (due_at IS NOT NULL"
        " OR coalesce(sent_at, created_at) > ?)",
        now - KEPT_SECONDS,
    )
    people = await store.all("SELECT id FROM people")
    kept = {file["path"] for row in waiting for file in orjson.loads(row["payload"])}
    return frozenset(kept | {row["media"] for row in going}), frozenset(row["id"] for row in people)


def described(file: MediaFile) -> str:
    """Such as "plan.pdf (application/pdf, 34 KB)"."""
    return f"{file.name} ({file.mime_type}, {-(-file.size // 1024)} KB)"


def safe_name(name: str, endings: tuple[str, ...]) -> str:
    """A file's name as a phone may show and keep it: no folders, nothing invisible, and one of these endings
    (any that is one, where there are none)."""
    last = re.split(r"[/\\]", name)[-1][-4 * LONGEST_NAME :]
    shown = "".join("_" if visible(c) != c or c in _NOT_IN_NAMES else c for c in last).strip(" .")
    found = _ENDING.search(shown)
    ending = found[0] if found else ""
    if endings and ending.lower() not in endings:
        ending = endings[0]
    stem = shown.removesuffix(ending) if ending else shown
    ending = ending or ".txt"
    return (stem[: LONGEST_NAME - len(ending)] or "file") + ending


def _checked(person: str) -> str:
    if not _PLAIN_ID.fullmatch(person):
        raise NotKept("this person has no folder: the id is not a plain name")
    return person


def _what_it_is(data: bytes, said: str) -> tuple[str, MediaKind, tuple[str, ...]]:
    """Type, kind and endings by the bytes; what a tool says only decides between formats that begin alike."""
    said = said.partition(";")[0].strip().lower()
    named = _FORMATS.get(said)
    if named is not None and named.start.match(data):
        return said, named.kind, named.endings
    for true_type, one in _FORMATS.items():
        if one.told_apart and one.start.match(data):
            return true_type, one.kind, one.endings
    if _is_text(data):
        return "text/plain", "document", ()
    raise NotKept("WhatsApp takes JPEG, PNG, MP3, Opus, MP4, PDF, Office and text files, and this is none")


def _is_text(data: bytes) -> bool:
    """Also what a browser would obey (HTML, SVG, scripts): it goes as a document that says it is text."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0


def _sync(folder: Path) -> None:
    """What was renamed into a folder is there after a power cut too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
