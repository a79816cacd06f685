"""Bodies that come compressed, unpacked no further than the limit."""

import zlib
from typing import Protocol

from app.http.errors import FetchError, too_large

ACCEPTED = "gzip, deflate"


class Decoder:
    """Unpacks a body piece by piece, to `limit` bytes and no further."""

    def __init__(self, encoding: str, limit: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise FetchError("BAD_ANSWER", "the answer comes in an encoding that was not asked for")
        self._encoding = encoding
        self._inflater: _Inflater | None = None
        self._limit = limit
        self._made = 0

    def feed(self, piece: bytes) -> bytes:
        """What a piece unpacks to. Raises FetchError TOO_LARGE or BAD_ANSWER."""
        if self._encoding in ("", "identity"):
            return piece
        if self._inflater is None:
            self._inflater = zlib.decompressobj(_window(self._encoding, piece))
        try:
            made = self._inflater.decompress(piece, self._limit - self._made + 1)
        except zlib.error as error:
            raise FetchError("BAD_ANSWER", "the answer cannot be unpacked") from error
        self._made += len(made)
        if self._made > self._limit:
            raise too_large(self._limit)
        if self._inflater.unused_data:
            raise FetchError("BAD_ANSWER", "the answer goes on after its end")
        return made

    def end(self) -> None:
        """Raises FetchError BAD_ANSWER where the last piece was not the end."""
        if self._inflater is not None and not self._inflater.eof:
            raise FetchError("BAD_ANSWER", "the answer broke off")


class _Inflater(Protocol):
    """What `zlib.decompressobj` gives; its class has no public name."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _window(encoding: str, start: bytes) -> int:
    """zlib's parameter; "deflate" comes with zlib's header, or bare from some servers."""
    if encoding != "deflate":
        return zlib.MAX_WBITS + 16
    return zlib.MAX_WBITS if start[0] & 0x0F == 8 else -zlib.MAX_WBITS
