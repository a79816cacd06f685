"""What an archive says it holds: zip, tar and tar.gz as entries, read within limits and never believed."""

import gzip
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from app.errors import RecadoError

MAX_ENTRIES = 4096
MAX_STREAM = 64 * 1024 * 1024
"""Bytes of a whole decompressed tar; a repository may hold more than the one folder that is wanted."""
MAX_RATIO = 100
FREE_OF_RATIO = 1024 * 1024
"""What may come of any packed size: text of a few lines repeated packs better than a hundred to one."""

_BLOCK = 512
_MAX_HEADER = 64 * 1024
_MAX_HEADERS = 4 * MAX_ENTRIES
"""Of a tar in all: an entry may have up to three of its own for its long names."""
_MAX_RECORDS = 100
"""Of one pax header; packers write about ten."""
_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_TAR_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a FIFO",
    b"S": "a sparse file",
}
_MODE_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}


class ArchiveError(RecadoError):
    """An archive that cannot be read, or is not meant to be; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of an archive. `kind` is "file", "folder", or in words what it is instead.

    `size` is what the archive says; `read` gives exactly so many bytes or raises ArchiveError.
    """

    name: str
    kind: str
    size: int
    mode: int
    read: Callable[[], bytes]


def is_archive(data: bytes) -> bool:
    """Whether the bytes begin like a zip, a gzip, or a tar."""
    return data.startswith((_ZIP, _GZIP)) or data[257:262] == b"ustar"


def read_archive(data: bytes) -> list[Entry]:
    """The entries in the archive's order; nothing is unpacked until an entry is read. Raises ArchiveError."""
    entries: list[Entry] = []
    for entry in _zip_entries(data) if data.startswith(_ZIP) else _tar_entries(_unzipped(data)):
        if len(entries) == MAX_ENTRIES:
            raise ArchiveError(f"the archive has more than {MAX_ENTRIES} entries")
        entries.append(entry)
    return entries


def _zip_entries(data: bytes) -> Iterator[Entry]:
    if data.count(b"PK\x01\x02") > MAX_ENTRIES:  # before zipfile makes an object of each
        raise ArchiveError(f"the archive has more than {MAX_ENTRIES} entries")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OverflowError, struct.error, NotImplementedError) as error:
        raise ArchiveError(f"the zip is damaged: {error}") from error
    for info in archive.infolist():
        if info.flag_bits & _ENCRYPTED:
            raise ArchiveError("the zip is encrypted; pack it without a password")
        name = _zip_name(info)
        mode = info.external_attr >> 16
        kind = _MODE_KINDS.get(stat.S_IFMT(mode), "folder" if name.endswith("/") else "file")
        yield Entry(name, kind, info.file_size, mode, partial(_zip_read, archive, info))


def _zip_name(info: zipfile.ZipInfo) -> str:
    """The name as it was written: `filename` of zipfile ends at a NUL and has its slashes turned."""
    name = info.orig_filename
    if info.flag_bits & 0x800 or name.isascii():
        return name
    try:
        return name.encode("cp437").decode("utf-8")  # many packers write UTF-8 and do not say so
    except UnicodeError:
        return name


def _zip_read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError("the zip is packed in an unusual way; pack it with deflate")  # no bound on those
    _check_ratio(info.file_size, info.compress_size)
    try:
        with archive.open(info) as file:
            content = file.read(info.file_size)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        ValueError,
        OSError,
        RuntimeError,
        struct.error,
    ) as error:
        raise ArchiveError(f"the zip is damaged: {error}") from error
    if len(content) != info.file_size:
        raise ArchiveError("the zip is damaged: a file is not as long as it says")
    return content


def _unzipped(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(min(MAX_STREAM, max(FREE_OF_RATIO, len(data) * MAX_RATIO)) + 1)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise ArchiveError(f"the gzip is damaged: {error}") from error
    if len(plain) > MAX_STREAM:
        raise ArchiveError(f"unpacked it is more than {MAX_STREAM // 1024**2} MiB")
    _check_ratio(len(plain), len(data))
    return plain


def _check_ratio(unpacked: int, packed: int) -> None:
    if unpacked > max(FREE_OF_RATIO, packed * MAX_RATIO):
        raise ArchiveError(f"it unpacks to more than {MAX_RATIO} times its size, as archive bombs do")


def _tar_entries(data: bytes) -> Iterator[Entry]:
    """ustar, with the long names of pax and GNU.

    Not by tarfile: that of Python before 3.11.14 loops for ever on a negative size (CVE-2025-8194) and
    spends quadratic time on a crafted pax header (CVE-2024-6232).
    """
    position = headers = 0
    long_name = ""
    while header := _header(data, position):
        headers += 1
        if headers > _MAX_HEADERS:
            raise ArchiveError(f"the archive has more than {_MAX_HEADERS} headers")
        start = position + _BLOCK
        size = _number(header[124:136])
        kind = header[156:157]
        if kind in b"xgLK":
            words = _body(data, start, size, _MAX_HEADER)
            if kind in b"xg":
                long_name = _pax_path(words, is_global=kind == b"g") or long_name
            elif kind == b"L":
                long_name = _text(words.rstrip(b"\0"))
        else:
            name = long_name or _ustar_name(header)
            long_name = ""
            yield _tar_entry(name, kind, size, _number(header[100:108]), data, start)
            if kind in b"123456":  # links, devices and folders have no body, whatever they say
                size = 0
        position = start + (size + _BLOCK - 1) // _BLOCK * _BLOCK


def _tar_entry(name: str, kind: bytes, size: int, mode: int, data: bytes, start: int) -> Entry:
    if kind == b"5" or (kind in (b"0", b"\0") and name.endswith("/")):
        words = "folder"
    elif kind in (b"0", b"\0"):
        words = "file"
    else:
        words = _TAR_KINDS.get(kind, "an entry of an unknown kind")
    return Entry(name, words, size, mode, partial(_body, data, start, size, MAX_STREAM))


def _header(data: bytes, position: int) -> bytes:
    """The next header; empty at the end, which is a block of zeros or where the bytes end."""
    header = data[position : position + _BLOCK]
    if not header.strip(b"\0"):
        return b""
    if len(header) < _BLOCK:
        raise ArchiveError("the tar ends in the middle of a header")
    if _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise ArchiveError("the tar is damaged: a header's checksum is wrong")
    return header


def _number(field: bytes) -> int:
    """An octal field. Sizes in base 256 are of files beyond 8 GiB."""
    digits = field.strip(b" \0")
    if digits.strip(b"01234567"):
        raise ArchiveError("the tar is damaged: a number in a header is not octal")
    return int(digits or b"0", 8)


def _body(data: bytes, start: int, size: int, limit: int) -> bytes:
    if size > limit or start + size > len(data):
        raise ArchiveError("the tar is damaged: an entry says it is longer than the archive")
    return data[start : start + size]


def _ustar_name(header: bytes) -> str:
    name = _text(header[:100].split(b"\0", 1)[0])
    prefix = _text(header[345:500].split(b"\0", 1)[0]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _pax_path(words: bytes, *, is_global: bool) -> str:
    """The path that a pax header gives. Raises ArchiveError where one would change what a later entry is."""
    path = ""
    start = records = 0
    while start < len(words):
        length = words[start : start + 16].partition(b" ")[0]
        end = start + int(length) if length.isdigit() else 0
        if not start + len(length) + 2 < end <= len(words):
            raise ArchiveError("the tar is damaged: a pax header's length is wrong")
        records += 1
        if records > _MAX_RECORDS:
            raise ArchiveError(f"a pax header of the tar has more than {_MAX_RECORDS} records")
        key, _, value = words[start + len(length) + 1 : end].removesuffix(b"\n").partition(b"=")
        if key == b"path" and not is_global:
            path = _text(value)
        elif key in (b"path", b"size") or key.startswith(b"GNU.sparse"):
            raise ArchiveError(f"the tar sets {_text(key)!r} by a pax header; pack it plainly")
        start = end
    return path


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ArchiveError("a name in the archive is not UTF-8") from error
