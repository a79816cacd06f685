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
        cut = _best_cut(text, limit)
        return text[:cut].rstrip(), _next_text(text, cut)
    cut = _best_cut(text, limit - _RESERVE)
    part, rest = text[:cut].rstrip(), _next_text(text, cut)
    if part.count(FENCE) % 2 == 0:
        return part, rest
    begins, ends = part.rfind(FENCE), text.find(FENCE, cut) + len(FENCE)
    if part[:begins].strip() and (ends - begins <= limit or not part[begins + len(FENCE) :].strip()):
        return part[:begins].rstrip(), text[begins:]
    if rest.lstrip().startswith(FENCE):  # no code is left: a reopened fence would be empty
        return f"{part}\n{FENCE}", rest.lstrip().removeprefix(FENCE).lstrip("\n")
    return f"{part}\n{FENCE}", f"{FENCE}\n{rest}"


def _next_text(text: str, cut: int) -> str:
    """Return what follows a cut without empty lines; the indentation of a new line stays."""
    if blank := _BLANK_LINES.match(text, cut):
        return text[blank.end() :]
    return text[cut:] if text[cut - 1] == "\n" else text[cut:].lstrip()


def _best_cut(text: str, room: int) -> int:
    """Return the best end of a part of at most `room` characters.

    After a paragraph or a line if that leaves the part reasonably full, else after a sentence or a word.
    """
    half, quarter = room // 2, room // 4
    for separator, earliest in (("\n\n", half), ("\n", half), ("\n\n", quarter), ("\n", quarter)):
        found = text.rfind(separator, earliest, room + 1)
        if found > 0:
            return found
    if sentences := [found.end() - 1 for found in _SENTENCE_END.finditer(text, half, room + 1)]:
        return sentences[-1]
    if spaces := [found.start() for found in _SPACE.finditer(text, quarter + 1, room + 1)]:
        return spaces[-1]
    return room
