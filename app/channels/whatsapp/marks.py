"""WhatsApp's inline formatting: making its marks count, and keeping plain text from looking like them.

WhatsApp formats `*bold*`, `_italic_` and `~strike~` within one line, when the mark hugs its text and
stands at the edge of a word; `` `code` `` likewise. It knows no escape sign, so a literal mark that
would be taken for formatting gets an invisible WORD JOINER (U+2060) before it: no longer at the edge of
a word. Where WhatsApp would not format (`2*3*4`, `snake_case`, `a * b`) text stays untouched.

While a text is made, intended marks are Unicode noncharacters, which no text contains.
"""

import re
from dataclasses import dataclass

JOINER = "\u2060"
MARKS = "*_~`"

OPEN = {"*": "\ufdd0", "_": "\ufdd1", "~": "\ufdd2"}
CLOSE = {"*": "\ufdd3", "_": "\ufdd4", "~": "\ufdd5"}
_OPENED = {sign: mark for mark, sign in OPEN.items()}
_CLOSED = {sign: mark for mark, sign in CLOSE.items()}

_KEPT = {"*": "\ufdd6", "_": "\ufdd7", "~": "\ufdd8", "`": "\ufdd9"}
_KEEP = str.maketrans(_KEPT)
_REVEAL = str.maketrans({sign: mark for mark, sign in _KEPT.items()})
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef\ud800-\udfff]")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>]+", re.IGNORECASE)
_SIGNS = re.compile("[\ufdd0-\ufdd5]")
_SIGNS_AND_MARKS = re.compile(f"[\ufdd0-\ufdd5{MARKS}]")
_ROUNDS = 8


def without_signs(text: str) -> str:
    """Remove the code points used here from outside text, and lone surrogates, which cannot be sent."""
    return _NONCHARACTERS.sub("", text)


def raw(text: str) -> str:
    """Protect the marks of addresses and code."""
    return text.translate(_KEEP)


def revealed(text: str) -> str:
    """Undo `raw`."""
    return text.translate(_REVEAL)


def literal(text: str) -> str:
    """Return plain text; addresses in it keep their characters."""
    text = _ADDRESS.sub(lambda found: raw(found[0]), text)
    return text.replace("```", f"`{JOINER}`{JOINER}`") if "```" in text else text


def settle(text: str) -> str:
    """Turn signs into WhatsApp's marks, line by line, and disarm literal marks."""
    open_marks: list[str] = []
    lines = []
    for line in text.split("\n"):
        reopened = "".join(OPEN[mark] for mark in open_marks)
        for found in _SIGNS.finditer(line):
            if found[0] in _OPENED:
                open_marks.append(_OPENED[found[0]])
            elif _CLOSED[found[0]] in open_marks:
                open_marks.remove(_CLOSED[found[0]])
        closed = "".join(CLOSE[mark] for mark in reversed(open_marks))
        lines.append(_settle_line(reopened + line + closed))
    return "\n".join(lines).translate(_REVEAL)


@dataclass(slots=True)
class _Span:
    """A pair of signs by their places in a line."""

    start: int
    end: int
    mark: str


def _settle_line(line: str) -> str:
    if not _SIGNS.search(line):
        return _disarmed(line)
    cells = list(line)
    spans = _spans(cells)
    for span in reversed(spans):  # inner ones first: a space they give up may lie at an outer edge
        _hug(cells, span)
    for _ in range(_ROUNDS):
        faulty = [span for span in spans if not _counts(cells, span)]
        if not faulty:
            break
        spans = [span for span in spans if _counts(cells, span)]
        for span in faulty:
            cells[span.start] = cells[span.end] = _written(cells, span)
    else:
        for span in spans:
            cells[span.start] = cells[span.end] = ""
    return _disarmed("".join(cells))


def _spans(cells: list[str]) -> list[_Span]:
    """Return the pairs of a line; remove a sign without a partner, or inside a pair of its kind."""
    spans: list[_Span] = []
    stack: list[tuple[str, int]] = []
    for place, cell in enumerate(cells):
        if cell in _OPENED:
            stack.append((_OPENED[cell], place))
        elif cell in _CLOSED:
            mark = _CLOSED[cell]
            if not stack or stack[-1][0] != mark:
                cells[place] = ""
                continue
            start = stack.pop()[1]
            if any(outer == mark for outer, _ in stack):
                cells[start] = cells[place] = ""
            else:
                spans.append(_Span(start, place, mark))
    for _, place in stack:
        cells[place] = ""
    return sorted(spans, key=lambda span: span.start)


def _hug(cells: list[str], span: _Span) -> None:
    """Move spaces at the inner edges of a span out of it."""
    while span.start + 1 < span.end and cells[span.start + 1].isspace():
        cells[span.start], cells[span.start + 1] = cells[span.start + 1], cells[span.start]
        span.start += 1
    while span.end - 1 > span.start and cells[span.end - 1].isspace():
        cells[span.end], cells[span.end - 1] = cells[span.end - 1], cells[span.end]
        span.end -= 1


def _counts(cells: list[str], span: _Span) -> bool:
    """Return True if WhatsApp would format exactly this span by its marks."""
    inner = "".join(cells[span.start + 1 : span.end])
    if not _SIGNS.sub("", inner) or any(
        edge.isspace() or edge == span.mark for edge in (inner[0], inner[-1])
    ):
        return False
    outer = _neighbour(cells, span.start, -1), _neighbour(cells, span.end, +1)
    if any(character.isalnum() or _shown(character) == span.mark for character in outer):
        return False
    return not re.search(rf"(?<=\S){re.escape(span.mark)}(?![^\W_])", inner)


def _written(cells: list[str], span: _Span) -> str:
    """Return the text for a mark that cannot be shown: mostly none, but `2*3*4` and `2**8` were no marks."""
    before, after = _neighbour(cells, span.start, -1), _neighbour(cells, span.end, +1)
    if span.mark == "_" and (before.isalnum() or after.isalnum()):
        return "*"
    return "**" if span.mark == "*" and (before.isdigit() or after.isdigit()) else ""


def _neighbour(cells: list[str], place: int, step: int) -> str:
    place += step
    while 0 <= place < len(cells) and not cells[place]:
        place += step
    return cells[place] if 0 <= place < len(cells) else ""


def _shown(character: str) -> str:
    return _OPENED.get(character) or _CLOSED.get(character) or character


def _disarmed(line: str) -> str:
    """Return the line with its signs as marks, and a joiner before each literal that would act as one."""
    if not _SIGNS_AND_MARKS.search(line):
        return line
    pieces: list[str] = []
    closes: set[str] = set()
    following = ""
    for place in range(len(line) - 1, -1, -1):
        character = line[place]
        shown = _shown(character)
        before = line[place - 1] if place else ""
        pieces.append(shown)
        opens = character == "`" or _opens(_before_run(line, place), following)
        if character in MARKS and character in closes and opens:
            pieces.append(JOINER)
        if character in {"`", _KEPT["`"]}:  # a backtick pairs with any other, spaces or not
            closes.add("`")
        elif shown in MARKS and character not in _OPENED and not _outside(before) and not following.isalnum():
            closes.add(shown)
        following = shown
    return "".join(reversed(pieces))


def _before_run(line: str, place: int) -> str:
    """Return the character before a run of a mark: in `2**3` no asterisk is at a word's edge."""
    first = place
    while first and line[first - 1] == line[place] and place - first < 4:
        first -= 1
    return line[first - 1] if first else ""


def _outside(character: str) -> bool:
    return not character or character.isspace()


def _opens(before: str, following: str) -> bool:
    return not before.isalnum() and not _outside(following)
