"""Text made safe to show (invisible and misleading characters written out), and folded to compare it."""

import json
import re
import unicodedata
from functools import lru_cache

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK = re.compile(  # fillers, a braille blank, all variation selectors but that of emoji
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0\ufffc"
    "\U0001d159\U000e0100-\U000e01ef]"
)


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_NOT_PLAIN = re.compile(r"[^ -~]")


class Private:
    """A text that may hold people's words: the log shows its length alone."""

    def __init__(self, text: object) -> None:
        self.text = str(text)

    def __str__(self) -> str:
        return f"({len(self.text)} characters, kept apart)"

    __repr__ = __str__


def visible(text: str) -> str:
    """Return a text on one line, with control, bidirectional and other invisible characters written out.

    They are written as in JSON, so that JSON stays valid.
    """
    return _NOT_PLAIN.sub(lambda found: _shown(found[0]), text)


def visible_lines(text: str) -> str:
    """Return a text as `visible` does, but keep its lines."""
    return "\n".join(map(visible, text.split("\n")))


@lru_cache(maxsize=4096)
def _shown(character: str) -> str:
    is_seen = unicodedata.category(character) not in _INVISIBLE and not _BLANK.match(character)
    return character if is_seen else json.dumps(character)[1:-1]


def escape_text(text: str) -> str:
    """Return a value as a card shows it.

    As in `visible`; and no character can seem to end the quotation, push text to another line or strike
    out other letters.
    """
    shown = _MISLEADING.sub(lambda found: _written_out(found[0]), visible(text))
    joins = shown[:1] and unicodedata.category(shown[0]).startswith("M")
    return _written_out(shown[0]) + shown[1:] if joins else shown


def _written_out(character: str) -> str:
    return "\\u0020" if character == " " else json.dumps(character)[1:-1]


# quotation marks, spaces that could push text to the next line, marks that strike through or enclose letters
_MISLEADING = re.compile(
    "[“”„‟❝❞〝〞＂″]|(?<= ) |[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
    "|[\u0334-\u0338\u0488\u0489\u1abe\u20d0-\u20e2\u20e4-\u20ff\ua670-\ua672]"
)


def shortened(text: str, longest: int) -> str:
    """Return the beginning of a text with … where it is longer than so many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def on_one_line(text: str, longest: int) -> str:
    """Return a text on one line, of at most so many characters."""
    return shortened(" ".join(text.split()), longest)


def fold(text: str) -> str:
    """Return `text` in lower case without accents, character for character, so that positions stay."""
    if text.isascii():
        return text.lower()
    return _NOT_ASCII.sub(lambda found: _fold_character(found[0]), text).lower()


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    base = unicodedata.normalize("NFKD", character)[0].lower()
    return base if len(base) == 1 and base != " " else character
