"""The way of every install: source → quarantine → findings → card → yes → commit → remove.

`SkillInstaller` and `ServerInstaller` fill in what differs; chat and shell use both alike. What they propose
waits in DATA_DIR/quarantine/<sha256>/ until an owner approves it: the files of a skill, or the plan of a
server. Zip archives are read within limits, and nothing that one says of itself is believed.
"""

import asyncio
import hashlib
import io
import json
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Generic, Literal, TypeVar
from urllib.parse import unquote, urlsplit

from app.errors import RecadoError
from app.security import write_private
from app.skills.folder import MAX_BYTES, MAX_FILES
from app.skills.installed import TreeError, digest, read_tree, remove_tree, write_tree
from app.skills.manifest import Manifest, ManifestError, read_manifest
from app.text import shortened, visible

MAX_PACKED = 4 * 1024 * 1024
MAX_PATH = 240  # bytes of UTF-8: below DATA_DIR it still fits every file system

_SKILL = "SKILL.md"
_ORIGIN = "origin.json"
_PLAN = "plan.json"
# Hidden files are left behind, and compiled code, which no reader of a card could read.
_IGNORED = frozenset({"__MACOSX", "__pycache__"})
_ZIP = b"PK\x03\x04"
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(ValueError, OSError, RuntimeError, OverflowError),
)

# Of an entry of the registry; ODD_ENTRY: it asks for what could be more than it seems.
EntryCode = Literal["WITHDRAWN", "OTHER_KIND", "ODD_ENTRY"]
MachineCode = Literal["NO_INSTALLER", "NO_SANDBOX", "NO_SPACE", "TOO_LARGE", "TOO_SLOW", "AWAY", "FAILED"]
ContentCode = Literal["NOT_FOUND", "NOT_A_SKILL", "NOT_INSTALLABLE", "CHANGED", "UNKNOWN", "UNAVAILABLE"]
InstallCode = EntryCode | MachineCode | ContentCode | Literal["NEEDS_VALUE", "NEEDS_FOLDER", "BAD_VALUE"]


class InstallError(RecadoError):
    """Something that was not installed or removed: `code` is the kind of reason, the text is in English.

    `about` is the name of the variable or package that it is about, which a person is told too.
    """

    def __init__(self, code: InstallCode, text: str, about: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.about = about


class QuarantineError(InstallError):
    """Bytes that do not become a skill; outside names in the text are made visible."""

    def __init__(self, text: str) -> None:
        super().__init__("NOT_A_SKILL", text)


@dataclass(frozen=True)
class Approval:
    """A yes: to what, by whom (a person's id, "console" or "shell"), and whether its tools are trusted.

    `address` is the one that the person gave for a skill.
    """

    subject: str
    approved_by: str
    trusted: bool = False
    address: str = ""


CandidateT = TypeVar("CandidateT")
RecordT = TypeVar("RecordT")


class InstallPipeline(ABC, Generic[CandidateT, RecordT]):
    """Commits and removes one kind of thing; every error is a `RecadoError`.

    Its `propose` fetches what is asked for into the quarantine, and runs nothing of it.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._lock = asyncio.Lock()

    async def commit(self, approval: Approval) -> RecordT:
        """Install exactly what was approved; a second time is the same as once.

        Raises an error if the candidate is gone from the quarantine, or would replace something else than its
        card said; then nothing has changed.
        """
        async with self._lock:
            record = await asyncio.to_thread(self._find_committed, approval)
            if record is None:
                candidate = await asyncio.to_thread(self.load, approval.subject)
                record = await self._commit(candidate, approval)
            await asyncio.to_thread(discard, self.data_dir, approval.subject.partition("/")[0])
            return record

    async def remove(self, name: str, subject: str = "") -> None:
        """Remove what is installed under a name; `subject` is the removal that was agreed to, "" for any.

        Raises `InstallError` if there is none of that name, or another one by now.
        """
        async with self._lock:
            record = await asyncio.to_thread(self.installed, name)
            if subject and self.removal_subject(record) != subject:
                raise InstallError("CHANGED", f"{name} was changed meanwhile; ask again")
            await asyncio.shield(asyncio.to_thread(self._remove, record))

    @abstractmethod
    def load(self, subject: str) -> CandidateT:
        """Read a candidate back from the quarantine. Blocks. Raises `InstallError` if it is gone."""

    @abstractmethod
    def installed(self, name: str) -> RecordT:
        """Return what is installed under a name. Blocks. Raises `InstallError` if there is none."""

    @abstractmethod
    def removal_subject(self, record: RecordT) -> str:
        """Return what a yes to the removal of this very install is about."""

    @abstractmethod
    def _find_committed(self, approval: Approval) -> RecordT | None:
        """Return what this approval installed already, if it did."""

    @abstractmethod
    async def _commit(self, candidate: CandidateT, approval: Approval) -> RecordT: ...

    @abstractmethod
    def _remove(self, record: RecordT) -> None: ...


@dataclass(frozen=True)
class Quarantined:
    """A tree of files that passed every check and waits for approval.

    `source` is the person's address with the wanted folder behind a `#`; `sent_on` is the other host that it
    redirected to, or "".
    """

    source: str
    folder: str
    files: Mapping[str, bytes] = field(repr=False)
    sent_on: str = ""

    @cached_property
    def sha256(self) -> str:
        """The hash of all files, which an approval is given for."""
        return digest(self.files)

    @cached_property
    def manifest(self) -> Manifest:
        """The parsed SKILL.md."""
        return read_manifest(self.files[_SKILL], self.folder)

    @property
    def name(self) -> str:
        """The name of its folder once installed: the skill's own name, made plain."""
        return plain_name(self.manifest.name) or plain_name(self.folder) or "skill"


def unpack(data: bytes, source: str, folder: str = "", sent_on: str = "") -> Quarantined:
    """Return the skill in a zip archive or in a single SKILL.md that came from `source`.

    `folder` names the wanted one where an archive holds several; a single folder around everything, as in
    GitHub's archives, is ignored. Raises `QuarantineError`.
    """
    if len(data) > MAX_PACKED:
        raise QuarantineError(f"it has {len(data)} bytes; at most {MAX_PACKED // 1024**2} MiB are taken")
    try:
        if data.startswith(_ZIP):
            base, files = _unzipped(data, folder)
        else:
            base, files = "", {_SKILL: data}
        named = PurePosixPath(unquote(urlsplit(source).path)).parent.name or "skill"
        tree = Quarantined(source, base or named, files, sent_on)
        _ = tree.manifest
    except ManifestError as error:
        raise QuarantineError(visible(str(error))) from error
    return tree


def keep(data_dir: Path, tree: Quarantined) -> None:
    """Write a tree to the quarantine, where it waits for an answer."""
    place = _place(data_dir, tree.sha256)
    write_tree(tree.files, place / "files")
    origin = {"source": tree.source, "folder": tree.folder, "sent_on": tree.sent_on}
    write_private(place / _ORIGIN, json.dumps(origin))
    os.utime(place)  # a second look makes it wait as long again


def kept(data_dir: Path, sha256: str) -> Quarantined:
    """Read a tree back. Raise `QuarantineError` if it is gone or was changed."""
    place = _place(data_dir, sha256)
    try:
        origin = json.loads((place / _ORIGIN).read_bytes())
        tree = Quarantined(**origin, files=read_tree(place / "files"))
    except (OSError, ValueError, TypeError, TreeError) as error:
        raise QuarantineError(f"what was looked at is no longer there: {error}; fetch it again") from error
    if tree.sha256 != sha256:
        raise QuarantineError("what was looked at has been changed since; fetch it again")
    return tree


def keep_plan(data_dir: Path, text: str) -> str:
    """Write the plan of a server to the quarantine; return the sha256 of its text, its subject."""
    subject = hashlib.sha256(text.encode()).hexdigest()
    place = _place(data_dir, subject)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(place / _PLAN, text)
    os.utime(place)
    return subject


def kept_plan(data_dir: Path, subject: str) -> str:
    """Read the text of a plan back. Raise `InstallError` if it is gone or was changed."""
    try:
        text = (_place(data_dir, subject) / _PLAN).read_text(encoding="utf-8")
    except (OSError, ValueError, QuarantineError) as error:
        raise InstallError("CHANGED", "what was looked at is no longer there; ask again") from error
    if hashlib.sha256(text.encode()).hexdigest() != subject:
        raise InstallError("CHANGED", "what was looked at has been changed; ask again")
    return text


def discard(data_dir: Path, sha256: str) -> None:
    """Remove a candidate if it is there."""
    remove_tree(_place(data_dir, sha256))


def discard_old(data_dir: Path, before: float, asked_about: Collection[str] = ()) -> None:
    """Remove candidates kept before that time (Unix seconds).

    Those whose hash begins a subject in `asked_about` stay, however old: their question is still open.
    """
    asked = {subject.partition("/")[0] for subject in asked_about}
    for place in list((data_dir / "quarantine").glob("*")):
        if place.stat().st_mtime < before and place.name not in asked:
            remove_tree(place)


def plain_name(text: str) -> str:
    """Make a name of the standard's form out of any text; "" if no letter or digit of it is plain."""
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", bare).strip("-")[:64].rstrip("-")


def _place(data_dir: Path, sha256: str) -> Path:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise QuarantineError(f"{visible(sha256)!r} is no sha256")
    return data_dir / "quarantine" / sha256


def _unzipped(data: bytes, folder: str) -> tuple[str, dict[str, bytes]]:
    """Return the last part of the wanted folder's name, and its files."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        named = [
            (_parts(info.filename), info) for info in archive.infolist() if not info.filename.endswith("/")
        ]
        base = _base([parts for parts, _ in named], folder)
        wanted = [(parts[len(base) :], info) for parts, info in named if parts[: len(base)] == base]
        chosen = [(_path(parts), info) for parts, info in wanted if not _is_ignored(parts)]
        if len(chosen) > MAX_FILES:
            raise QuarantineError(f"it has {len(chosen)} files; at most {MAX_FILES} are taken")
        size = sum(info.file_size for _, info in chosen)
        if size > MAX_BYTES:
            most = f"at most {MAX_BYTES // 1024**2} MiB are taken"
            raise QuarantineError(f"it has {size} bytes unpacked; {most}")
        folders = {str(parent) for path, _ in chosen for parent in PurePosixPath(path).parents}
        files: dict[str, bytes] = {}
        for path, info in chosen:
            if path in files or path in folders:
                raise QuarantineError(f"two names are the same file: {_shown(path)}")
            files[path] = _read_zipped(archive, info)
        return (base[-1] if base else ""), files
    except _DAMAGE as error:
        raise QuarantineError(f"the zip is damaged: {visible(str(error))}") from error


def _parts(name: str) -> tuple[str, ...]:
    """Split a name of an archive. Raise `QuarantineError` if it leads out of the archive."""
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts or not parts or "\\" in name or name.startswith("/"):
        raise QuarantineError(f"the name {_shown(name)} is none of a file in the archive")
    return parts


def _base(files: list[tuple[str, ...]], folder: str) -> tuple[str, ...]:
    """Find the folder of the wanted SKILL.md. Raise `QuarantineError` if there is none or no single one."""
    seen = [parts for parts in files if not _is_ignored(parts)]
    roots = {parts[0] for parts in seen}
    top = tuple(roots) if len(roots) == 1 and (_SKILL,) not in seen else ()
    if folder.strip("/"):
        base = (*top, *_parts(folder.strip("/")))
        if (*base, _SKILL) in seen:
            return base
        raise QuarantineError(f"there is no {_SKILL} in the folder {_shown(folder)} of the archive")
    found = sorted({parts[:-1] for parts in seen if parts[-1] == _SKILL}, key=lambda base: (len(base), base))
    if not found:
        raise QuarantineError(f"there is no {_SKILL} in the archive")
    if len(found) == 1 or found[0] in ((), top):
        return found[0]
    names = ", ".join(_shown("/".join(base[len(top) :])) for base in found[:20])
    raise QuarantineError(f"the archive holds {len(found)} skills; say which folder is wanted: {names}")


def _is_ignored(parts: tuple[str, ...]) -> bool:
    return any(part in _IGNORED or part.startswith(".") for part in parts)


def _path(parts: tuple[str, ...]) -> str:
    """Return a path in NFC. Raise `QuarantineError` for one that is too long or not all to be seen."""
    path = unicodedata.normalize("NFC", "/".join(parts))
    if len(path.encode()) > MAX_PATH:
        raise QuarantineError(f"the name {_shown(path)} is too long")
    if path != visible(path):
        raise QuarantineError(f"the name {_shown(path)} has characters that cannot be seen")
    return path


def _shown(name: str) -> str:
    return repr(shortened(visible(name), 120))


def _read_zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise QuarantineError(f"{_shown(info.filename)} is a link or a device; only files are taken")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others unpack without a bound
        raise QuarantineError("the zip is packed in a way that is not taken; pack it with deflate")
    with archive.open(info) as file:
        content = file.read(info.file_size)
    if len(content) != info.file_size:
        raise QuarantineError("the zip is damaged: a file is not as long as it says")
    return content
