"""Archives that tests make: honest ones, and headers written by hand where no packer would write them."""

import gzip
import io
import tarfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from app.installs.cards import make_card
from app.installs.pipeline import Approval
from app.installs.quarantine import Quarantined
from app.installs.skills import write_skill
from app.skills.installed import Installed

SKILL = b"---\nname: demo\ndescription: Does things.\n---\n# Demo\n"


TOOLS = b'def tide(station: str) -> str:\n    """Says the next tide."""\n    return station\n'


def install_tree(data_dir: Path, tree: Quarantined, *, trusted: bool = False) -> Installed:
    """Install a skill as if its card had been approved."""
    return write_skill(data_dir, tree, make_card(tree), Approval("", "person_1", trusted))


def zipped(files: Mapping[str, bytes], *, mode: int = 0o100644, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.filename = info.orig_filename = name
            info.external_attr = mode << 16
            info.compress_type = method
            archive.writestr(info, content)
    return packed.getvalue()


def tarred(files: Mapping[str, bytes], *, form: int = tarfile.PAX_FORMAT, gzipped: bool = True) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(packed.getvalue()) if gzipped else packed.getvalue()


def header(name: bytes, kind: bytes = b"0", size: bytes = b"0", mode: bytes = b"644") -> bytes:
    """One ustar header with the right checksum, whatever its fields say."""
    fields = name.ljust(100, b"\0") + mode.rjust(7, b"0") + b"\0" + b"0000000\0" * 2
    fields += size.rjust(11, b"0") + b"\0" + b"00000000000\0" + b" " * 8 + kind
    fields = (fields.ljust(257, b"\0") + b"ustar\x0000").ljust(512, b"\0")
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


def tar_of(*blocks: bytes) -> bytes:
    """Headers and bodies, each filled up to whole blocks, with the two blocks of zeros at the end."""
    return b"".join(block + b"\0" * (-len(block) % 512) for block in blocks) + b"\0" * 1024


def pax(*records: tuple[str, str], kind: bytes = b"x") -> bytes:
    body = b""
    for key, value in records:
        rest = f" {key}={value}\n".encode()
        length = len(rest) + 1
        while len(str(length)) + len(rest) != length:
            length = len(str(length)) + len(rest)
        body += str(length).encode() + rest
    block = header(b"pax", kind, b"%o" % len(body)) + body
    return block + b"\0" * (-len(block) % 512)


def zip_by_hand(name: bytes, content: bytes, *, says: int, method: int = 8, flags: int = 0) -> bytes:
    """A zip of one file that says it is `says` bytes long."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeeze.compress(content) + squeeze.flush() if method == 8 else content
    checksum = zlib.crc32(content)

    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, "little")

    common = number(20, 2) + number(flags, 2) + number(method, 2) + b"\0" * 4
    common += number(checksum, 4) + number(len(packed), 4) + number(says, 4) + number(len(name), 2)
    local = b"PK\x03\x04" + common + b"\0\0" + name + packed
    central = b"PK\x01\x02" + number(20, 2) + common + b"\0" * 16 + name
    end = (
        b"PK\x05\x06"
        + b"\0" * 4
        + number(1, 2) * 2
        + number(len(central), 4)
        + number(len(local), 4)
        + b"\0\0"
    )
    return local + central + end
