"""Splitting WhatsApp text into messages that each read well alone."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.channels.whatsapp.marks import MARKS

FENCE = "```"
_OPEN_FENCE, _CLOSE_FENCE = FENCE + "\n", "\n" + FENCE
_RESERVE = 8  # characters that close a part: a fence, or up to four inline marks
_SMALLEST = 32  # below this limit no mark is reopened: a part would hold little else
_LONGEST_CLUSTER = 64
# One to a reader: a flag, or a character with its accents, its skin tone and what is joined to it.
_CLUSTER = re.compile(
    "\r\n|[\U0001f1e6-\U0001f1ff]{2}"
    "|.(?:[\u0300-\u036f\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]|\u200d.?)*",
    re.DOTALL,
)
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'»”’)\]]*\s")
_SPACE = re.compile(r"\s*")
_SPAN = re.compile(r"(?<![^\W_])([*_~`])(?!\s)(?:(?!\1).)+(?<!\s)\1(?![^\W_])")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")


def split_message(text: str, limit: int = 4096) -> list[str]:
    """Split WhatsApp text into parts of at most `limit` characters; return `[]` for blank text.

    Cuts fall between paragraphs, else lines, sentences, words; only then anywhere, and even then not
    within an emoji if that can be avoided. A code fence or an inline mark that is open at a cut is
    closed before and reopened after it. Nothing is lost but white space at the cuts. Length is counted
    in characters (code points), as Meta counts. Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"a message holds at least one character; the limit was {limit}")
    text = text.strip("\n").rstrip()
    if not text:
        return []
    if len(text) <= limit:
        return [text]
    parts, start, prefix = [], 0, ""
    splitter = _Splitter(text, limit)
    while start < len(text):
        if len(text) - start + len(prefix) <= limit:
            parts.append(prefix + text[start:])
            break
        cut = splitter.cut(start, limit - len(prefix) - splitter.reserve)
        body = text[start:cut].rstrip()
        if body:
            parts.append(prefix + body + splitter.closing(cut))
        start, prefix = splitter.resume(cut)
    return parts


@dataclass(slots=True)
class _Splitter:
    """Places where a text may be cut, and the marks that are open there."""

    text: str
    limit: int
    reserve: int = 0
    _fences: list[tuple[int, int]] = field(default_factory=list)
    _line_end: int = -1
    _spans: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.limit >= _SMALLEST:
            self.reserve = _RESERVE
            self._fences = _fences(self.text)

    def cut(self, start: int, room: int) -> int:
        """Return the best end of a part that begins at `start` and holds at most `room` characters."""
        end = start + max(room, 1)
        fence = self._fence_at(end)
        cut = self._cut_at_fence(start, end, fence) if fence else 0
        cut = cut or self._cut_between_lines(start, end) or self._cut_in_line(start, end)
        cut = self._clear_of_marks(cut, start)
        return cut if cut > start else end

    def closing(self, cut: int) -> str:
        if self._fence_at(cut):
            return _CLOSE_FENCE
        return "".join(mark for _, _, mark in reversed(self._open_at(cut)))

    def resume(self, cut: int) -> tuple[int, str]:
        """Return where the next part begins (after empty lines; indentation stays) and what it reopens."""
        fence = self._fence_at(cut)
        if fence and self._after_space(cut) >= fence[1] - len(FENCE):
            return self.resume(fence[1])  # no code is left: a reopened fence would be empty
        opening = _OPEN_FENCE if fence else "".join(mark for _, _, mark in self._open_at(cut))
        blank = _BLANK_LINES.match(self.text, cut)
        if blank:
            return blank.end(), opening
        if fence or self.text[cut - 1] == "\n":
            return cut, opening
        return self._after_space(cut), opening

    def _after_space(self, place: int) -> int:
        found = _SPACE.match(self.text, place)
        return found.end() if found else place

    def _fence_at(self, place: int) -> tuple[int, int] | None:
        """Return the fence whose content a cut at this place would tear."""
        found = bisect_right(self._fences, (place, -1)) - 1
        if found < 0:
            return None
        start, end = self._fences[found]
        return (start, end) if start < place < end else None

    def _cut_at_fence(self, start: int, end: int, fence: tuple[int, int]) -> int:
        """Cut before a fence that fits into the next part whole, else at a line of its code."""
        begins, ends = fence
        if begins > start and self.text[start:begins].strip() and ends - begins <= self.limit:
            return begins
        first, last = begins + len(FENCE), min(end, ends - len(FENCE))
        line = self.text.rfind("\n", max(first + 1, start + 1), last)
        if line > 0 and self.text[max(first, start) : line].strip():
            return line
        if begins > start and self.text[start:begins].strip():
            return begins
        return self._clear_of_cluster(last, max(first, start)) if last > max(first, start) else 0

    def _cut_between_lines(self, start: int, end: int) -> int:
        """Cut after a paragraph or a line, if that leaves the part reasonably full."""
        half = start + (end - start) // 2
        quarter = start + (end - start) // 4
        for separator, earliest in (("\n\n", half), ("\n", half), ("\n\n", quarter), ("\n", quarter)):
            found = self._last_outside_fences(separator, earliest, end + 1)
            if found > start:
                return found
        return 0

    def _last_outside_fences(self, separator: str, earliest: int, latest: int) -> int:
        found = self.text.rfind(separator, earliest, latest)
        while found >= 0 and (fence := self._fence_at(found)):
            found = self.text.rfind(separator, earliest, fence[0] + 1)
        return found

    def _cut_in_line(self, start: int, end: int) -> int:
        half = start + (end - start) // 2
        sentence = 0
        for found in _SENTENCE_END.finditer(self.text, half, end + 1):
            sentence = found.end() - 1
        if sentence:
            return sentence
        for place in range(end, start + (end - start) // 4, -1):
            if place < len(self.text) and self.text[place].isspace():
                return place
        return self._clear_of_cluster(end, start)

    def _clear_of_cluster(self, cut: int, start: int) -> int:
        """Go back to a near place where no emoji and no accented letter is torn."""
        clear = start
        for found in _CLUSTER.finditer(self.text, start, cut + _LONGEST_CLUSTER):
            if found.end() > cut:
                break
            clear = found.end()
        return clear if clear > start else cut

    def _clear_of_marks(self, cut: int, start: int) -> int:
        """Move a cut out of the backticks of a fence, and so that no reopened mark would hold nothing."""
        fence = self._fence_at(cut)
        if fence:
            begins, ends = fence
            if cut <= begins + len(FENCE):
                return begins
            return min(cut, ends - len(FENCE) - 1) if cut > ends - len(FENCE) - 1 else cut
        for begins, ends, mark in reversed(self._open_at(cut)):
            if not self.text[begins + 1 : cut].strip(MARKS + " "):
                cut = begins
            elif not self.text[cut : ends - 1].strip(MARKS + " ") and mark:
                cut = ends
        return cut if cut > start else 0

    def _open_at(self, cut: int) -> list[tuple[int, int, str]]:
        """Return the inline spans that a cut would tear, outermost first."""
        if not self.reserve or cut >= len(self.text) or self.text[cut] == "\n":
            return []
        if cut > self._line_end:
            begins = self.text.rfind("\n", 0, cut) + 1
            found = self.text.find("\n", cut)
            self._line_end = found if found >= 0 else len(self.text)
            self._spans = list(_inline_spans(self.text, begins, self._line_end))
        return [span for span in self._spans if span[0] < cut < span[1]]


def _fences(text: str) -> list[tuple[int, int]]:
    """Return the places of code between three backticks; a last one without a partner is none."""
    places = [found.start() for found in re.finditer(FENCE, text)]
    pairs = zip(places[::2], places[1::2], strict=False)
    return [(begins, ends + len(FENCE)) for begins, ends in pairs]


def _inline_spans(text: str, begins: int, ends: int) -> Iterator[tuple[int, int, str]]:
    """Yield the formatted stretches of one line as (start, end, mark), each before those in it."""
    for found in _SPAN.finditer(text, begins, ends):
        yield found.start(), found.end(), found[1]
        if found[1] != "`":
            yield from _inline_spans(text, found.start() + 1, found.end() - 1)
