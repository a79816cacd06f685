"""A canned voice note: three seconds of silence as Ogg Opus, made here so that no binary file is shipped."""

import struct

_SERIAL = 0x5EC4D0
_SILENCE = b"\xf8\xff\xfe"  # one 20 ms frame of silence, mono (RFC 6716: CELT, full band)
_FRAME = 960  # samples of 48 kHz in 20 ms
_FRAMES = 150


def canned_clip() -> bytes:
    """The file, to be sent as `audio/ogg; codecs=opus` (layout: RFC 3533 and RFC 7845)."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 312, 48_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", 6) + b"recado" + struct.pack("<I", 0)
    return (
        _page(0, [head], granule=0, flags=2)
        + _page(1, [tags], granule=0, flags=0)
        + _page(2, [_SILENCE] * _FRAMES, granule=_FRAME * _FRAMES, flags=4)
    )


def _page(number: int, packets: list[bytes], *, granule: int, flags: int) -> bytes:
    """One Ogg page of packets shorter than 255 bytes."""
    sizes = bytes(len(packet) for packet in packets)
    head = struct.pack("<4sBBqIII", b"OggS", 0, flags, granule, _SERIAL, number, 0)
    page = head + bytes([len(packets)]) + sizes + b"".join(packets)
    return page[:22] + struct.pack("<I", _checksum(page)) + page[26:]


def _checksum(page: bytes) -> int:
    """Ogg's CRC-32: polynomial 0x04c11db7, not reflected, start 0."""
    crc = 0
    for byte in page:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ (0x04C11DB7 if crc & 0x80000000 else 0)
        crc &= 0xFFFFFFFF
    return crc
