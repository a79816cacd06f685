"""Answers from outside: their text, and bodies that are unpacked no further than a limit."""

import codecs
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from app.http.address import FetchError, too_large
from app.messages import JSON

ACCEPTED = "gzip, deflate"
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_HEAD_BYTES = 1024
_SLOW_CODECS = frozenset(("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"))
"""Costly with hostile bytes, or no text at all."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of any status; `url` is the last one of the redirects, names of headers are in lower case."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """Return the media type such as "text/html", "" if none was given."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body as text, in the charset that its first bytes, its header or (HTML) its head name.

        Without one it is UTF-8, or HTML that is not in UTF-8 in Windows' Western one; bytes that are none
        become �.
        """
        mark, codec = next((one for one in _BYTE_ORDER_MARKS if self.body.startswith(one[0])), (b"", ""))
        return self.body[len(mark) :].decode(codec or self._codec, "replace")

    @property
    def _codec(self) -> str:
        is_html = "html" in self.content_type
        named = _CHARSET.search(self.headers.get("content-type", ""))
        if named is None and is_html:
            named = _CHARSET.search(self.body[:_HEAD_BYTES].decode("ascii", "replace"))
        try:
            codec = codecs.lookup(named[1]).name if named else ""
            "".encode(codec or "utf-8")  # LookupError for "zip": bytes to bytes
        except LookupError:
            codec = ""
        if codec in ("ascii", "iso8859-1"):
            return "cp1252"  # https://encoding.spec.whatwg.org/#names-and-labels
        if codec and codec not in _SLOW_CODECS:
            return codec
        return "cp1252" if is_html and not _is_utf8(self.body) else "utf-8"

    def json(self) -> JSON:
        """Raises ValueError where the body is no JSON."""
        value: JSON = orjson.loads(self.body)
        return value


class Decoder:
    """Unpacks a body piece by piece, to `limit` bytes and no further."""

    def __init__(self, encoding: str, limit: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise FetchError("BAD_ANSWER", "the answer comes in an encoding that was not asked for")
        self._encoding = encoding
        self._inflater: Any = None  # of `zlib.decompressobj`, whose type has no public name
        self._limit = limit
        self._made = 0

    def feed(self, piece: bytes) -> bytes:
        """Unpack a piece. Raise FetchError TOO_LARGE or BAD_ANSWER."""
        if self._encoding in ("", "identity"):
            return piece
        if self._inflater is None:
            self._inflater = zlib.decompressobj(_window(self._encoding, piece))
        try:
            made: bytes = self._inflater.decompress(piece, self._limit - self._made + 1)
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


def _window(encoding: str, start: bytes) -> int:
    """Return zlib's parameter; "deflate" comes with zlib's header, or bare from some servers."""
    if encoding != "deflate":
        return zlib.MAX_WBITS + 16
    return zlib.MAX_WBITS if start[0] & 0x0F == 8 else -zlib.MAX_WBITS


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
