"""Splitting WhatsApp text into messages that each read well alone."""

import re

FENCE = "```"
_RESERVE = 8  # characters that close and reopen a fence
_SMALLEST = 32  # below this limit no fence is reopened: a part would hold little else
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'»”’)\]]*\s")
_SPACE = re.compile(r"\s")
_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)+")


def split_message(text: str, limit: int = 4096) -> list[str]:
    """Split WhatsApp text into parts of at most `limit` characters; return `[]` for blank text.

    Cuts fall between paragraphs, else lines, sentences, words; only then anywhere. A code fence that is open
    at a cut is closed before and reopened after it. Nothing is lost but white space at the cuts. Length is
    counted in characters (code points), as Meta counts. Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"a message holds at least one character; the limit was {limit}")
    parts, rest = [], text.strip("\n").rstrip()
    while len(rest) > limit:
        part, rest = _split(rest, limit)
        if part:
            parts.append(part)
    return [*parts, rest] if rest else parts


def _split(text: str, limit: int) -> tuple[str, str]:
    """Split off the first part; a fence that fits into the next part goes there whole."""
    if limit < _SMALLEST:
        cut, fence = _best_cut(text, limit), None
    else:
        cut = limit - _RESERVE
        fence = _fence_at(text, cut)
        if fence is None:
            cut = _best_cut(text, cut)
            fence = _fence_at(text, cut)
    if fence is not None:
        return _split_in_fence(text, cut, *fence, limit)
    return text[:cut].rstrip(), _next_text(text, cut)


def _next_text(text: str, cut: int) -> str:
    """Return what follows a cut without empty lines; the indentation of a new line stays."""
    if blank := _BLANK_LINES.match(text, cut):
        return text[blank.end() :]
    return text[cut:] if text[cut - 1] == "\n" else text[cut:].lstrip()


def _split_in_fence(text: str, place: int, begins: int, ends: int, limit: int) -> tuple[str, str]:
    """Split before a fence that fits into the next part, else at a line of its code."""
    code, code_ends = begins + len(FENCE), ends - len(FENCE)
    cut = text.rfind("\n", code + 1, min(place, code_ends))
    has_line = cut > 0 and bool(text[code:cut].strip())
    if text[:begins].strip() and (ends - begins <= limit or not has_line):
        return text[:begins].rstrip(), text[begins:]
    cut = cut if has_line else max(min(place, code_ends), code + 1)
    part = f"{text[:cut].rstrip()}\n{FENCE}"
    if not text[cut:code_ends].strip():  # no code is left: a reopened fence would be empty
        return part, _next_text(text, ends)
    blank = _BLANK_LINES.match(text, cut)
    return part, f"{FENCE}\n{text[blank.end() if blank else cut :]}"


def _fence_at(text: str, place: int) -> tuple[int, int] | None:
    """Return where the fence begins and ends that a cut at this place would tear."""
    marks = [found.start() for found in re.finditer(FENCE, text[: place + 2]) if found.start() < place]
    if marks and len(marks) % 2 == 0 and place < marks[-1] + len(FENCE):
        return marks[-2], marks[-1] + len(FENCE)
    ends = text.find(FENCE, marks[-1] + len(FENCE)) if len(marks) % 2 else -1
    return (marks[-1], ends + len(FENCE)) if ends >= 0 else None


def _best_cut(text: str, room: int) -> int:
    """Return the best end of a part of at most `room` characters, outside fences where there is one.

    After a paragraph or a line if that leaves the part reasonably full, else after a sentence or a word.
    """
    half, quarter = room // 2, room // 4
    for separator, earliest in (("\n\n", half), ("\n", half), ("\n\n", quarter), ("\n", quarter)):
        found = text.rfind(separator, earliest, room + 1)
        while found > 0 and (fence := _fence_at(text, found)):
            found = text.rfind(separator, earliest, fence[0] + 1)
        if found > 0:
            return found
    if sentences := [found.end() - 1 for found in _SENTENCE_END.finditer(text, half, room + 1)]:
        return sentences[-1]
    if spaces := [found.start() for found in _SPACE.finditer(text, quarter + 1, room + 1)]:
        return spaces[-1]
    return room
