"""Bytes from the internet: checked into a tree of files, and kept apart until an owner approves them.

DATA_DIR/quarantine/<sha256>/ holds one candidate: the files of a skill, or the plan of a server. Zip archives
are read within limits, and nothing that one says of itself is believed.
"""

import io
import json
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from app.installs.errors import InstallError, QuarantineError
from app.security import write_private
from app.skills.file_tree import (
    MAX_BYTES,
    MAX_FILES,
    TreeError,
    digest,
    read_tree,
    remove_tree,
    write_tree,
)
from app.skills.manifest import Manifest, ManifestError, read_manifest
from app.text import visible

MAX_ENTRIES = 4096
MAX_RATIO = 100
# Any packed size may become this much: a few lines repeated pack better than a hundred to one.
RATIO_FREE_BYTES = 1024 * 1024
MAX_PACKED = 4 * 1024 * 1024
MAX_DEPTH = 10
MAX_PART = 100
MAX_PATH = 240  # bytes of UTF-8: below DATA_DIR it still fits every file system

_SKILL = "SKILL.md"
_ORIGIN = "origin.json"
_PLAN = "plan.json"
# Left behind: files of editors and repositories, and compiled code, which no reader of a card could read.
_IGNORED = re.compile(
    r"\.(?:git.*|DS_Store|_.*|editorconfig|claude-plugin|vscode|idea|prettier.*|eslint.*|markdownlint.*"
    r"|pre-commit.*|flake8|pylintrc|dockerignore|npmignore|nvmrc|python-version|travis\.yml|claude.*"
    r"|cursor.*)|__MACOSX|__pycache__",
    re.IGNORECASE,
)
_KEPT_HIDDEN = frozenset({".env.example", ".env.sample", ".env.template"})
_DEVICES = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)
_CHANGED_BY_SYSTEMS = re.compile(r'[<>:"|?*]|[. ]$|^ ')
_ZIP = b"PK\x03\x04"
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_DAMAGE = (zlib.error, EOFError, ValueError, OSError, RuntimeError, OverflowError, struct.error)
_MODE_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@dataclass(frozen=True)
class Quarantined:
    """A tree of files that passed every check and waits for approval.

    `source` is the person's address with the wanted folder behind a `#`; `sent_on` is the address on another
    host that it redirected to, or "".
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


@dataclass(frozen=True)
class ArchiveEntry:
    """One name of an archive; `kind` is "file", "folder", or in words what it is instead.

    `size` is what the archive says; `read` returns exactly so many bytes or raises `QuarantineError`.
    """

    name: str
    kind: str
    size: int
    mode: int
    read: Callable[[], bytes]


def unpack(data: bytes, source: str, folder: str = "", sent_on: str = "") -> Quarantined:
    """Return the skill in a zip archive or in a single SKILL.md that came from `source`.

    `folder` names the wanted one where an archive holds several; a single folder around everything, as in
    GitHub's archives, is ignored. Call it through `examine_archive`, which has limits. Raises
    `QuarantineError`.
    """
    if len(data) > MAX_PACKED:
        raise QuarantineError(f"it has {len(data)} bytes; at most {MAX_PACKED // 1024**2} MiB are taken")
    try:
        if data.startswith(_ZIP):
            base, files = _archived(list(_zip_entries(data)), folder)
        else:
            base, files = "", {_SKILL: data}
        tree = Quarantined(source, base or _folder_of(source), files, sent_on)
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
        files = read_tree(place / "files")
        tree = Quarantined(origin["source"], origin["folder"], files, origin.get("sent_on", ""))
    except (OSError, ValueError, KeyError, TypeError, TreeError) as error:
        raise QuarantineError(f"what was looked at is no longer there: {error}; fetch it again") from error
    if tree.sha256 != sha256:
        raise QuarantineError("what was looked at has been changed since; fetch it again")
    return tree


def keep_plan(data_dir: Path, subject: str, text: str) -> None:
    """Write the plan of a server to the quarantine; `subject` is the sha256 of its text."""
    place = _place(data_dir, subject)
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(place / _PLAN, text)
    os.utime(place)


def kept_plan(data_dir: Path, subject: str) -> str:
    """Read the text of a plan back. Raise `InstallError` if it is gone."""
    try:
        return (_place(data_dir, subject) / _PLAN).read_text(encoding="utf-8")
    except (OSError, ValueError, QuarantineError) as error:
        raise InstallError("CHANGED", "what was looked at is no longer there; ask again") from error


def discard(data_dir: Path, sha256: str) -> None:
    """Remove a candidate if it is there."""
    remove_tree(_place(data_dir, sha256))


def discard_old(data_dir: Path, before: float, asked_about: Collection[str] = ()) -> int:
    """Remove candidates kept before that time (Unix seconds), and return how many there were.

    Those whose hash begins a subject in `asked_about` stay, however old: their question is still open.
    """
    asked = {subject.partition("/")[0] for subject in asked_about}
    old = [place for place in (data_dir / "quarantine").glob("*") if place.stat().st_mtime < before]
    places = [place for place in old if place.name not in asked]
    for place in places:
        remove_tree(place)
    return len(places)


def plain_name(text: str) -> str:
    """Make a name of the standard's form out of any text; "" if no letter or digit of it is plain."""
    bare = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", bare).strip("-")[:64].rstrip("-")


def _place(data_dir: Path, sha256: str) -> Path:
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise QuarantineError(f"{visible(sha256)!r} is no sha256")
    return data_dir / "quarantine" / sha256


def _archived(entries: list[ArchiveEntry], folder: str) -> tuple[str, dict[str, bytes]]:
    """Return the last part of the wanted folder's name, and its files."""
    named = [(_parts(entry.name), entry) for entry in entries]
    if nameless := next((entry for parts, entry in named if not parts and entry.kind == "file"), None):
        raise QuarantineError(f"the name {_shown(nameless.name)} is no file's")
    base = _base([parts for parts, entry in named if entry.kind == "file"], folder)
    inside = [(parts[len(base) :], entry) for parts, entry in named if parts[: len(base)] == base]
    wanted = [(parts, entry) for parts, entry in inside if parts and not _is_ignored(parts)]
    _check_kinds(entry for _, entry in wanted)
    paths = _Paths()
    chosen = [(paths.take(parts), entry) for parts, entry in wanted if entry.kind == "file"]
    if len(chosen) > MAX_FILES:
        raise QuarantineError(f"it has {len(chosen)} files; at most {MAX_FILES} are taken")
    size = sum(entry.size for _, entry in chosen)
    if size > MAX_BYTES:
        raise QuarantineError(f"it has {size} bytes unpacked; at most {MAX_BYTES // 1024**2} MiB are taken")
    return (base[-1] if base else ""), {path: entry.read() for path, entry in chosen}


def _parts(name: str) -> tuple[str, ...]:
    """Split a name of an archive. Raise `QuarantineError` if it leads out of the archive."""
    if "\\" in name or "\0" in name or name.startswith("/") or re.match(r"[A-Za-z]:", name):
        raise QuarantineError(f"the name {_shown(name)} leads out of the archive")
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts:
        raise QuarantineError(f"the name {_shown(name)} leads out of the archive")
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
    return any(_IGNORED.fullmatch(part) for part in parts)


def _check_kinds(entries: Iterable[ArchiveEntry]) -> None:
    for entry in entries:
        if entry.kind not in ("file", "folder"):
            raise QuarantineError(f"{_shown(entry.name)} is {entry.kind}; only files are taken")
        if entry.mode & 0o7000:
            raise QuarantineError(f"{_shown(entry.name)} has a setuid, setgid or sticky bit")


class _Paths:
    """The paths taken so far, so that no two become one file on a system that ignores case."""

    def __init__(self) -> None:
        self._taken: dict[str, tuple[str, bool]] = {}

    def take(self, parts: tuple[str, ...]) -> str:
        """Return the path in NFC. Raise `QuarantineError` if it would be the same file as another."""
        path = "/".join(_kept_part(part) for part in parts)
        if len(parts) > MAX_DEPTH or len(path.encode()) > MAX_PATH:
            raise QuarantineError(f"the name {_shown(path)} is too deep or too long")
        for place in (PurePosixPath(path), *PurePosixPath(path).parents):
            here = (str(place), str(place) != path)
            blind = unicodedata.normalize("NFC", here[0].casefold())
            first = self._taken.setdefault(blind, here)
            if first != here or (first is not here and not here[1]):
                raise QuarantineError(
                    f"two names would be the same file: {_shown(first[0])} and {_shown(path)}"
                )
        return path


def _kept_part(part: str) -> str:
    """Return one part of a path in NFC. Raise `QuarantineError` for a name that a system changes or hides."""
    part = unicodedata.normalize("NFC", part)
    if part.startswith(".") and part not in _KEPT_HIDDEN:
        raise QuarantineError(f"{_shown(part)} is hidden; a skill has nothing to hide")
    if any(unicodedata.category(character) in _UNSEEN for character in part):
        raise QuarantineError(f"the name {_shown(part)} has characters that cannot be seen")
    if _CHANGED_BY_SYSTEMS.search(part) or _DEVICES.fullmatch(part):
        raise QuarantineError(f"the name {_shown(part)} means something else on Windows or macOS")
    if len(part.encode()) > MAX_PART:
        raise QuarantineError(f"the name {_shown(part)} is too long")
    return part


def _folder_of(source: str) -> str:
    """Return the folder that an address of a SKILL.md names, else "skill"."""
    parts = [part for part in unquote(urlsplit(source).path).split("/") if part]
    return next((part for part in reversed(parts) if plain_name(part) and "." not in part), "skill")


def _shown(name: str) -> str:
    text = visible(name)
    return repr(text if len(text) <= 120 else f"{text[:120]}…")


def _zip_entries(data: bytes) -> Iterator[ArchiveEntry]:
    """Yield the entries; their bytes are unpacked when read. Raise `QuarantineError`."""
    if data.count(b"PK\x01\x02") > MAX_ENTRIES:  # before zipfile makes an object of each
        raise QuarantineError(f"the archive has more than {MAX_ENTRIES} entries")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, NotImplementedError, *_DAMAGE) as error:
        raise QuarantineError(f"the zip is damaged: {visible(str(error))}") from error
    for info in archive.infolist():
        if info.flag_bits & _ENCRYPTED:
            raise QuarantineError("the zip is encrypted; pack it without a password")
        name = _zip_name(info)
        mode = info.external_attr >> 16
        kind = _MODE_KINDS.get(stat.S_IFMT(mode), "folder" if name.endswith("/") else "file")
        yield ArchiveEntry(name, kind, info.file_size, mode, partial(_read_zipped, archive, info))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Return the name as written: zipfile's `filename` ends at a NUL and has its backslashes turned."""
    name = info.orig_filename
    if info.flag_bits & 0x800 or name.isascii():
        return name
    try:
        return name.encode("cp437").decode("utf-8")  # many packers write UTF-8 and do not say so
    except UnicodeError:
        return name


def _read_zipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise QuarantineError("the zip is packed in an unusual way; pack it with deflate")
    _check_ratio(info.file_size, info.compress_size)
    try:
        with archive.open(info) as file:
            content = file.read(info.file_size)
    except (zipfile.BadZipFile, *_DAMAGE) as error:
        raise QuarantineError(f"the zip is damaged: {visible(str(error))}") from error
    if len(content) != info.file_size:
        raise QuarantineError("the zip is damaged: a file is not as long as it says")
    return content


def _check_ratio(unpacked: int, packed: int) -> None:
    if unpacked > max(RATIO_FREE_BYTES, packed * MAX_RATIO):
        raise QuarantineError(f"it unpacks to more than {MAX_RATIO} times its size, as archive bombs do")
