"""Entries of a zip, tar or tar.gz, read within limits; nothing that an archive says of itself is believed."""

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

from app.installs.errors import ArchiveError

MAX_ENTRIES = 4096
# Bytes of a whole decompressed tar: a repository may hold more than the one folder that is wanted.
MAX_STREAM = 64 * 1024 * 1024
MAX_RATIO = 100
# Any packed size may become this much: a few lines repeated pack better than a hundred to one.
RATIO_FREE_BYTES = 1024 * 1024

_MAX_EXTENSION = 16 * 1024  # bytes of a header that holds a long name; honest ones have a few hundred
_EXTENSIONS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_DAMAGE = (zlib.error, EOFError, ValueError, OSError, RuntimeError, OverflowError, struct.error)
_TAR_KINDS = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.DIRTYPE: "folder",
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a FIFO",
}
_MODE_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True)
class Entry:
    """One name of an archive; `kind` is "file", "folder", or in words what it is instead.

    `size` is what the archive says; `read` returns exactly so many bytes or raises `ArchiveError`.
    """

    name: str
    kind: str
    size: int
    mode: int
    read: Callable[[], bytes]


def is_archive(data: bytes) -> bool:
    return data.startswith((_ZIP, _GZIP)) or data[257:262] == b"ustar"


def read_archive(data: bytes) -> list[Entry]:
    """Return the entries in the archive's order; their bytes are unpacked when read. Raise `ArchiveError`."""
    entries: list[Entry] = []
    for entry in _zip_entries(data) if data.startswith(_ZIP) else _tar_entries(_gunzip(data)):
        if len(entries) == MAX_ENTRIES:
            raise ArchiveError(f"the archive has more than {MAX_ENTRIES} entries")
        entries.append(entry)
    return entries


def _zip_entries(data: bytes) -> Iterator[Entry]:
    if data.count(b"PK\x01\x02") > MAX_ENTRIES:  # before zipfile makes an object of each
        raise ArchiveError(f"the archive has more than {MAX_ENTRIES} entries")
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, NotImplementedError, *_DAMAGE) as error:
        raise ArchiveError(f"the zip is damaged: {error}") from error
    for info in archive.infolist():
        if info.flag_bits & _ENCRYPTED:
            raise ArchiveError("the zip is encrypted; pack it without a password")
        name = _zip_name(info)
        mode = info.external_attr >> 16
        kind = _MODE_KINDS.get(stat.S_IFMT(mode), "folder" if name.endswith("/") else "file")
        yield Entry(name, kind, info.file_size, mode, partial(_read_zipped, archive, info))


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
        raise ArchiveError("the zip is packed in an unusual way; pack it with deflate")
    _check_ratio(info.file_size, info.compress_size)
    try:
        with archive.open(info) as file:
            content = file.read(info.file_size)
    except (zipfile.BadZipFile, *_DAMAGE) as error:
        raise ArchiveError(f"the zip is damaged: {error}") from error
    if len(content) != info.file_size:
        raise ArchiveError("the zip is damaged: a file is not as long as it says")
    return content


def _gunzip(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            plain = file.read(min(MAX_STREAM, max(RATIO_FREE_BYTES, len(data) * MAX_RATIO)) + 1)
    except _DAMAGE as error:
        raise ArchiveError(f"the gzip is damaged: {error}") from error
    if len(plain) > MAX_STREAM:
        raise ArchiveError(f"unpacked it is more than {MAX_STREAM // 1024**2} MiB")
    _check_ratio(len(plain), len(data))
    return plain


def _check_ratio(unpacked: int, packed: int) -> None:
    if unpacked > max(RATIO_FREE_BYTES, packed * MAX_RATIO):
        raise ArchiveError(f"it unpacks to more than {MAX_RATIO} times its size, as archive bombs do")


class _StrictHeader(tarfile.TarInfo):
    """A header that raises `ArchiveError` where tarfile would silently end the archive, or loop."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        if not buf.strip(b"\0"):  # the end
            return super().frombuf(buf, encoding, errors)
        try:
            header = super().frombuf(buf, encoding, errors)
        except UnicodeDecodeError as error:
            raise ArchiveError("a name in the archive is not UTF-8") from error
        except (tarfile.HeaderError, ValueError) as error:
            raise ArchiveError(f"the tar is damaged: {error}") from error
        if header.size < 0:  # before Python 3.11.14 tarfile goes back by it for ever (CVE-2025-8194)
            raise ArchiveError("the tar is damaged: an entry has a negative size")
        if header.type in _EXTENSIONS and header.size > _MAX_EXTENSION:
            raise ArchiveError("a header of the tar is too long")
        return header


def _tar_entries(data: bytes) -> Iterator[Entry]:
    """Yield what a tar holds; in limits of time and memory only where the process has them (see cards.py)."""
    try:
        with tarfile.open(
            fileobj=io.BytesIO(data), mode="r:", tarinfo=_StrictHeader, encoding="utf-8", errors="strict"
        ) as archive:
            for info in archive:
                _check_tar_entry(info, archive)
                kind = "a sparse file" if info.issparse() else _TAR_KINDS.get(info.type, "an unknown entry")
                yield Entry(info.name, kind, info.size, info.mode, partial(_slice, data, info))
            rest = data[archive.offset : archive.offset + tarfile.BLOCKSIZE]
    except (tarfile.TarError, RecursionError, *_DAMAGE) as error:
        raise ArchiveError(f"the tar is damaged: {error}") from error
    if rest.strip(b"\0"):
        raise ArchiveError("the tar is damaged: it does not end after its last entry")


def _check_tar_entry(info: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    """Refuse a pax header that changes what a later entry is."""
    odd = {key for key in info.pax_headers if key == "size" or key.startswith("GNU.sparse")}
    if odd or "path" in archive.pax_headers:
        raise ArchiveError(f"the tar sets {min(odd, default='path')!r} by a pax header; pack it plainly")


def _slice(data: bytes, info: tarfile.TarInfo) -> bytes:
    content = data[info.offset_data : info.offset_data + info.size]
    if len(content) != info.size:
        raise ArchiveError("the tar is damaged: an entry says it is longer than the archive")
    return content
