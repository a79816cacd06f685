"""Fetch and read the files that came with messages, before a turn takes the messages up.

A voice note becomes its message's text; a picture is turned upright, made smaller and kept without metadata;
of a document the text is read. Each step is a row before the next one begins, so a crash repeats no finished
one.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import structlog

from app.errors import StoreError
from app.llm.audio import NotTranscribed, Transcriber
from app.messages import JSON, FetchFailed
from app.people import Person
from app.store import media
from app.store.database import Connection
from app.store.disk_space import MEGABYTE
from app.store.media import NotKept, Reason, WaitingFile, safe_name
from app.tools import ToolContext
from app.tools.documents import AT_ONCE as DOCUMENTS_AT_ONCE
from app.tools.documents import DocumentError, is_picture, kind_of
from app.tools.files import NoRoom
from app.turns.state import TurnServices

log = structlog.get_logger(__name__)

AT_ONCE = 16
GUESTS_AT_ONCE = 2  # of all guests, so that a transcriber on this machine is soon free for a member
GUESTS_FILES = 5  # of one turn
NOTE_TOKENS = 100  # a voice note counts so many of TOKEN_LIMIT, and one more for each `TOKEN_BYTES`
TOKEN_BYTES = 200  # 0.1 s of a voice note: what hearing models count as a token (OpenAI, 2026)
AT_ONCE_OF_ONE = 3  # of one conversation, so that slow files of a person keep nobody else's waiting
SECONDS = 150.0
FETCH_PAUSES = (1.0, 3.0)
FIRST_PAGE = 5_500  # characters of a document that the prompt holds
LARGEST = {"document": 32 * MEGABYTE, "image": 16 * MEGABYTE, "sticker": MEGABYTE}
LARGEST_AUDIO = 16 * MEGABYTE
FOLDERS = {"es": "recibidos", "pt": "recebidos", "en": "received"}
_NAMES = {"es": "foto", "pt": "foto", "en": "photo"}
_ENDING = re.compile(r"\.[A-Za-z0-9]{1,8}")
_WHY: dict[str, Reason] = {
    "LOCKED": "locked",
    "TOO_LARGE": "too_large",
    "BUSY": "too_slow",
    "UNREADABLE": "damaged",
    "NO_WORDS": "empty",
}


class _NotRead(Exception):
    def __init__(self, reason: Reason) -> None:
        self.reason: Reason = reason


class AttachmentReader:
    """Reads the files of waiting messages, a few at a time."""

    def __init__(self, services: TurnServices, transcriber: Transcriber | None) -> None:
        self._store = services.store
        self._channels = services.channels
        self._profiles = services.profiles
        self._limits = services.limits
        self._media = services.media
        self._files = services.files
        self._transcriber = transcriber
        self._places = asyncio.Semaphore(AT_ONCE)
        self._guests_places = asyncio.Semaphore(GUESTS_AT_ONCE)
        self._guests_documents = asyncio.Semaphore(DOCUMENTS_AT_ONCE - 1)  # one is left for members

    async def read(self, messages: Sequence[int]) -> None:
        """Fetch and read what came with the messages of a burst; return when each file has its end.

        Those of a guest who has reached a limit are left; of a burst only the first few are read.
        """
        waiting = await self._store.tx(lambda conn: media.waiting_files(conn, messages))
        if not waiting:
            return
        first = waiting[0]
        person = await self._store.tx(lambda conn: self._profiles.known(conn, first.person))
        room = len(waiting)
        if person.is_guest:
            read_before = await self._store.tx(lambda conn: media.count_files_read(conn, messages))
            room = max(GUESTS_FILES - read_before, 0)
        own_places = asyncio.Semaphore(AT_ONCE_OF_ONE)
        read = (self._read(file, person, own_places) for file in waiting[:room])
        left = (self._give_up(file, "too_many") for file in waiting[room:])
        for outcome in await asyncio.gather(*read, *left, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome  # once all have ended

    async def _read(self, file: WaitingFile, person: Person, own_places: asyncio.Semaphore) -> None:
        try:
            guests = self._guests_places if person.is_guest else nullcontext()
            documents = nullcontext() if _is_audio(file) or not person.is_guest else self._guests_documents
            async with own_places, documents, guests, self._places, asyncio.timeout(SECONDS):
                if not await self._store.tx(lambda conn: self._may_begin(conn, file, person)):
                    return
                if not file.path:
                    file = await self._fetch(file)
                await self._understand(file, person)
        except _NotRead as error:
            await self._give_up(file, error.reason)
        except TimeoutError:
            await self._give_up(file, "too_slow")
        except (NotKept, NoRoom):
            await self._give_up(file, "no_room")
        except DocumentError as error:
            await self._give_up(file, _WHY.get(error.code, "damaged"))
        except FileNotFoundError:  # it was here before a restart
            await self._give_up(file, "gone")
        except StoreError:
            raise
        except Exception as error:  # whatever a file makes our readers raise: its text may be the file's own
            log.error("an attachment was not read", error=type(error).__name__)
            await self._give_up(file, "damaged")

    def _may_begin(self, conn: Connection, file: WaitingFile, person: Person) -> bool:
        """Return whether a file may be read now: a guest may have waited long for the place."""
        if person.is_guest and self._limits.is_reached(conn, person.id, time.time()):
            return False
        return media.begin_file(conn, file.message)

    async def _fetch(self, file: WaitingFile) -> WaitingFile:
        path = _place(file)
        await asyncio.to_thread(self._media.make_room, path)
        channel, limit = self._channels[file.channel], LARGEST.get(file.kind, LARGEST_AUDIO)
        for pause in (*FETCH_PAUSES, None):
            try:
                await channel.fetch(file.attachment.media_id, self._media.absolute(path), limit)
                break
            except FetchFailed as error:
                if not error.again or pause is None:
                    raise _NotRead(error.reason) from error
            await asyncio.sleep(pause)
        await self._store.tx(lambda conn: media.file_kept(conn, file.message, path))
        return await self._store.tx(lambda conn: media.waiting_file(conn, file.message))

    async def _understand(self, file: WaitingFile, person: Person) -> None:
        source = self._media.absolute(file.path)
        if _is_audio(file):
            await self._hear(file, person, source)
            return
        data = await asyncio.to_thread(source.read_bytes)
        if file.kind in ("image", "sticker") or is_picture(data):
            picture = await asyncio.to_thread(self._files.documents.picture, source)
            path = await self._keep(person, _name(file, person, ".jpg"), picture)
            await self._finish(file, {"path": path, "pictures": [path]})
        else:
            await self._read_document(file, person, source, data)

    async def _hear(self, file: WaitingFile, person: Person, source: Path) -> None:
        if self._transcriber is None:
            raise _NotRead("unheard")
        tokens = NOTE_TOKENS + (await asyncio.to_thread(source.stat)).st_size // TOKEN_BYTES
        if not await self._store.tx(lambda conn: self._limits.take_tokens(conn, person, tokens, time.time())):
            raise _NotRead("too_large")
        spoken = str(file.person.row["language"])  # "" before they said anything: no guess by their number
        try:
            text = await self._transcriber.transcribe(source, file.attachment.mime_type, spoken)
        except NotTranscribed as error:
            raise _NotRead("damaged" if error.final else "unheard") from error
        if not text:
            raise _NotRead("empty")
        if file.attachment.voice:
            await self._finish(file, {}, transcript=text)
        else:  # a recording of anybody: its words are data, as those of a document
            await self._finish(file, {"text": text, "pages": 1})

    async def _read_document(self, file: WaitingFile, person: Person, source: Path, data: bytes) -> None:
        ending = Path(file.attachment.filename).suffix
        name = _name(file, person, ending if _ENDING.fullmatch(ending) else "")
        path = await self._keep(person, name, data)
        found: dict[str, JSON] = {"path": path}
        try:
            text, pages = await asyncio.to_thread(self._files.first_page, source, name)
            found |= {"text": text[:FIRST_PAGE], "pages": pages}
        except DocumentError as error:
            found["reason"] = _WHY.get(error.code, "damaged")
            if error.code == "NO_WORDS" and kind_of(name, data) == "pdf":
                found["pictures"] = await self._scanned_pages(source, person, Path(name).stem)
        await self._finish(file, found)

    async def _scanned_pages(self, source: Path, person: Person, stem: str) -> list[str]:
        try:
            pictures = await asyncio.to_thread(self._files.documents.scans, source)
        except DocumentError:
            return []
        return [
            await self._keep(person, f"{stem}-{number}.jpg", data) for number, data in enumerate(pictures, 1)
        ]

    async def _keep(self, person: Person, name: str, data: bytes) -> str:
        folder = FOLDERS.get(person.language, FOLDERS["en"])
        context = ToolContext(person=person)
        if await self._store.one("SELECT 1 FROM people WHERE id = ?", person.id) is None:
            raise _NotRead("gone")  # erased meanwhile
        return await asyncio.to_thread(self._files.receive, f"{folder}/{name}", data, context)

    async def _finish(self, file: WaitingFile, found: Mapping[str, JSON], transcript: str = "") -> None:
        await self._store.tx(lambda conn: media.finish_file(conn, file.message, found, transcript))
        await asyncio.to_thread(self._media.remove, file.path)

    async def _give_up(self, file: WaitingFile, reason: Reason) -> None:
        log.info("an attachment was not read", kind=file.kind, reason=reason)
        await self._store.tx(lambda conn: media.fail_file(conn, file.message, reason))
        await asyncio.to_thread(self._media.remove, _place(file))


def _is_audio(file: WaitingFile) -> bool:
    return file.kind in ("audio", "voice") or file.attachment.mime_type.startswith("audio/")


def _place(file: WaitingFile) -> str:
    """Return the path below DATA_DIR/media that a file has until it was read."""
    return f"{file.person.id}/in-{file.message}"


def _name(file: WaitingFile, person: Person, ending: str) -> str:
    """Return the name under which a file is kept: its own, else the day and the number of its message."""
    if file.attachment.filename:
        stem = Path(file.attachment.filename).stem
        return safe_name(f"{stem}{ending}", (ending,) if ending else ())
    day = datetime.fromtimestamp(time.time(), ZoneInfo(person.timezone or "UTC"))
    return f"{day:%Y-%m-%d} {_NAMES.get(person.language, 'photo')} {file.message}{ending}"
