"""WhatsApp's inline formatting: making its marks count, and keeping plain text from looking like them.

WhatsApp formats `*bold*`, `_italic_` and `~strike~` within one line, when the mark hugs its text and
stands at the edge of a word; `` `code` `` likewise. It knows no escape sign, so a literal mark that
would be taken for formatting gets an invisible WORD JOINER (U+2060) before it: no longer at the edge of
a word. Where WhatsApp would not format (`2*3*4`, `snake_case`, `a * b`) text stays untouched.

While a text is made, intended marks are Unicode noncharacters, which no text contains.
"""

import re

JOINER = "\u2060"
BROKEN_FENCE = f"`{JOINER}`{JOINER}`"  # three backticks that open no code

_OPEN = {"*": "\ufdd0", "_": "\ufdd1", "~": "\ufdd2"}
_CLOSE = {"*": "\ufdd3", "_": "\ufdd4", "~": "\ufdd5"}
_KEPT = {"*": "\ufdd6", "_": "\ufdd7", "~": "\ufdd8", "`": "\ufdd9"}
_KEEP = str.maketrans(_KEPT)
_REVEAL = str.maketrans({sign: mark for mark, sign in _KEPT.items()})
_SHOW = str.maketrans({sign: mark for signs in (_OPEN, _CLOSE) for mark, sign in signs.items()})
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef\ud800-\udfff]")
_ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>]+", re.IGNORECASE)
_LETTER = r"[^\W_]"
_OPENING = {mark: re.compile(rf"(?<!{_LETTER})(?<!\{mark})\{mark}+(?=\S)") for mark in _OPEN}
_CLOSING = {mark: re.compile(rf"(?<=\S)[{_CLOSE[mark]}{mark}](?!{_LETTER})") for mark in _OPEN}
_OPENING["`"], _CLOSING["`"] = re.compile("`"), re.compile(f"[`{_KEPT['`']}]")  # any pair, spaces or not


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
    return _ADDRESS.sub(lambda found: raw(found[0]), text).replace("```", BROKEN_FENCE)


def marked(mark: str, inner: str) -> str:
    """Return a text to be formatted by a mark, each line of it for itself."""
    bare = inner.replace(_OPEN[mark], "").replace(_CLOSE[mark], "")
    return "\n".join(_marked_line(mark, line) for line in bare.split("\n"))


def _marked_line(mark: str, line: str) -> str:
    """Return a line between marks that hug its words; one that holds the mark as text stays as it is."""
    words = line.strip()
    if not words or mark in words:
        return line
    return line.replace(words, _OPEN[mark] + words + _CLOSE[mark], 1)


def settle(text: str) -> str:
    """Turn signs into WhatsApp's marks, and disarm literal marks."""
    return "\n".join(map(_disarmed, text.split("\n"))).translate(_SHOW).translate(_REVEAL)


def _disarmed(line: str) -> str:
    """Put a joiner before each literal mark that would open a formatting which a later one closes."""
    for mark in _OPENING:
        closing = 0
        for found in _CLOSING[mark].finditer(line):
            closing = found.start()
        head = _OPENING[mark].sub(lambda run: JOINER + JOINER.join(run[0]), line[:closing])
        line = head + line[closing:]
    return line
