"""Characters that a reader does not see, or that a terminal obeys, written out."""

import json
import re
import unicodedata

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\ufffc"
    "\U0001d159\U000e0100-\U000e01ef]"
)
"""Letters and marks without a shape: fillers, a braille blank, all variation selectors but that of emoji."""


def visible(text: str) -> str:
    """A text on one line, with control, bidirectional and other invisible characters written out.

    They are written as in JSON, so that JSON stays what it is.
    """
    if text.isascii() and text.isprintable():  # most of them, at a hundredth of the cost
        return text
    return "".join(c if _is_seen(c) else json.dumps(c)[1:-1] for c in text)


def visible_lines(text: str) -> str:
    """The same with its lines left as they are."""
    return "\n".join(map(visible, text.split("\n")))


def _is_seen(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE and not _BLANK.match(character)


def escape_text(text: str) -> str:
    """As `visible`, and nothing in it ends its quotation, leads the eye to another line or strikes out what
    is beside it: a value as a card shows it."""
    shown = _MISLEADING.sub(lambda found: _written_out(found[0]), visible(text))
    joins = shown[:1] and unicodedata.category(shown[0]).startswith("M")
    return _written_out(shown[0]) + shown[1:] if joins else shown


def _written_out(character: str) -> str:
    return "\\u0020" if character == " " else json.dumps(character)[1:-1]


_MISLEADING = re.compile(
    "[“”„‟❝❞〝〞＂″]|(?<= ) |[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
    "|[\u0334-\u0338\u0488\u0489\u1abe\u20d0-\u20e2\u20e4-\u20ff\ua670-\ua672]"
)
"""Quotation marks that could seem to end a value, spaces that could push what follows to the next line, and
marks that strike through or enclose other letters."""
