"""Answers from outside: their text, and bodies that are unpacked no further than a limit."""

import codecs
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import orjson

from app.http.address import FetchError, too_large
from app.messages import JSON

_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_HEAD_BYTES = 1024
# Codecs of text; others are costly with hostile bytes, or turn bytes into bytes.
_TEXT_CODEC = re.compile(r"utf-(?:8|16|32).*|iso8859-.*|cp\d+|koi8.*|gb.*|big5.*|euc_.*|shift_jis.*")


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
        body, codec = self.body[len(mark) :], codec or self._named_codec
        if not codec and "html" in self.content_type:
            with suppress(UnicodeDecodeError):
                return body.decode()
            codec = "cp1252"
        return body.decode(codec or "utf-8", "replace")

    @property
    def _named_codec(self) -> str:
        named = _CHARSET.search(self.headers.get("content-type", ""))
        if named is None and "html" in self.content_type:
            named = _CHARSET.search(self.body[:_HEAD_BYTES].decode("ascii", "replace"))
        codec = ""
        with suppress(LookupError):
            codec = codecs.lookup(named[1]).name if named else ""
        if codec in ("ascii", "iso8859-1"):
            return "cp1252"  # https://encoding.spec.whatwg.org/#names-and-labels
        return codec if _TEXT_CODEC.fullmatch(codec) else ""

    def json(self) -> JSON:
        """Raises ValueError where the body is no JSON."""
        value: JSON = orjson.loads(self.body)
        return value


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Return a body without its content encoding, at most `limit` bytes.

    Raise FetchError TOO_LARGE or BAD_ANSWER.
    """
    encoding = encoding.strip().lower()
    if not body or encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise FetchError("BAD_ANSWER", "the answer comes in an encoding that was not asked for")
    inflater = zlib.decompressobj(zlib.MAX_WBITS + 16)
    try:
        made = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise FetchError("BAD_ANSWER", "the answer cannot be unpacked") from error
    if len(made) > limit:
        raise too_large(limit)
    if not inflater.eof or inflater.unused_data:
        raise FetchError("BAD_ANSWER", "the answer broke off, or goes on after its end")
    return made
