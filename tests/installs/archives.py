"""Zip archives that tests make: honest ones, and one written by hand where no packer would write it."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from app.installs.cards import make_card
from app.installs.pipeline import Approval, Quarantined
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
