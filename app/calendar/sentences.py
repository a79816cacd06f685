"""Tell the time in a sentence from what it is about: "tomorrow at 9 to call Ana"."""

import re
import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import yaml

from app.calendar.grammar import KINDS, LONGEST_READ, MONTHS, PARTS, WEEKDAYS, Piece, any_of, fill_in, pieces
from app.calendar.words import cut_end
from app.text import fold

_DAYS = KINDS["one_day"] | {"iso", "weekend", "workdays", "weekends", "every_weekday", "yearly"}
_DAY_NAMES = [name for name in (*WEEKDAYS, "tomorrow", "manana", "amanha") if len(name) >= 6]
# words of their own
_LIKE_DAYS = {"manzana", "manzanas", "campanha", "campanhas", "sabao", "frida", "mates", "manha"}
_ALIKE = 0.84  # so much of two words is the same

_WRITTEN = yaml.safe_load(Path(__file__).with_name("sentences.yaml").read_text("utf-8"))
_LISTS = {name: f"(?:{'|'.join(listed.split())})" for name, listed in _WRITTEN["words"].items()}
_PARTS = {
    **_WRITTEN["parts"],
    **_LISTS,
    "part": f"(?:{any_of(PARTS)})",
    "month": f"(?:{any_of(MONTHS)})",
    "weekday": f"(?:{any_of(WEEKDAYS)})",
}
_PATTERNS = {
    name: re.compile(fill_in(pattern, _PARTS), re.VERBOSE | re.IGNORECASE)
    for name, pattern in _WRITTEN["patterns"].items()
}


def split_time(text: str, language: str, *, is_due: bool = False) -> tuple[str, str] | None:
    """Split a sentence into its words of time and what they are about.

    `is_due`: the time may be that by which it is to be done. None unless the time stands at its ends and
    nothing in the rest can change it: a reminder for half of what was said is worse than none.
    """
    text, end_of_all = cut_end(unicodedata.normalize("NFC", text), language)
    blocks = _blocks(text[:LONGEST_READ], language)
    if not blocks or any(piece.kind == "habit" for block in blocks for piece in block):
        return None
    start, end = blocks[0][0].start, blocks[0][-1].end
    before = text[:start] if _PATTERNS["opens"].sub("", text[:start], count=1) else ""
    after = _PATTERNS["closes"].sub("", text[blocks[-1][-1].end :])
    if len(blocks) == 1:
        if before.strip() and after.strip():
            return None
        rest, words = _PATTERNS["courtesies"].sub("", before) or after, text[start:end]
        is_first = not before.strip()
    elif len(blocks) == 2 and not before.strip() and not after.strip() and _are_day_and_hour(blocks, text):
        rest = text[end : blocks[1][0].start]
        words = f"{text[start:end]} {text[blocks[1][0].start : blocks[1][-1].end]}"
        is_first = True
    else:
        return None
    folded, is_around = fold(rest), len(blocks) == 2 or not is_first
    changes_it = (
        is_first and _PATTERNS["goes_on"].match(folded),
        is_first and language == "en" and rest.strip() and not _PATTERNS["to"].match(folded),
        _PATTERNS["part_of_month"].match(folded),
        not is_first and _PATTERNS["begins_with_time"].match(folded),
        not (is_first or is_due) and _PATTERNS["due_after"].search(folded),
        not (is_first or is_due) and _PATTERNS["due"].match(fold(words)),
        is_around and _PATTERNS["leads"].search(folded),
        is_around and _PATTERNS["of_a_thing"].search(folded),
        not is_first and _PATTERNS["again"].search(folded),
        holds_time(rest, language, names_day=names_day(words, language)),
    )
    return None if any(changes_it) else (f"{words} {end_of_all}".strip(), rest.strip(" ,.;:"))


def holds_time(text: str, language: str, *, names_day: bool) -> bool:
    """Return True if a text says anything of when, or on what condition.

    `names_day`: a day is named beside it, so that "birthday" is no time in it.
    """
    if len(text) > LONGEST_READ:
        ends = (text[:LONGEST_READ], text[-LONGEST_READ:])
        return any(holds_time(one, language, names_day=names_day) for one in ends)
    folded = fold(text)
    long_words = set(re.findall(r"[a-z]{5,}", folded)) - _LIKE_DAYS
    if any(get_close_matches(word, _DAY_NAMES, 1, _ALIKE) for word in long_words):
        return True  # "wensday"
    if pieces(text, language) or _PATTERNS["changes"].search(folded) or _PATTERNS["led_in"].match(folded):
        return True
    return not names_day and _PATTERNS["named_day"].search(folded) is not None


def names_day(text: str, language: str) -> bool:
    return any(piece.kind in _DAYS for piece in pieces(text, language))


def is_connective(text: str) -> bool:
    """Return True if a text is nothing but small words, such as stand between two parts of one time."""
    return _PATTERNS["gap"].fullmatch(f"{fold(text)} ") is not None


def _blocks(text: str, language: str) -> list[list[Piece]]:
    """Return the pieces of time, those together that nothing but small words keeps apart."""
    blocks: list[list[Piece]] = []
    for piece in pieces(text, language):
        between = fold(text[blocks[-1][-1].end : piece.start]) if blocks else "-"
        if blocks and _PATTERNS["gap"].fullmatch(between):
            blocks[-1].append(piece)
        else:
            blocks.append([piece])
    return blocks


def _are_day_and_hour(blocks: Sequence[Sequence[Piece]], text: str) -> bool:
    """Return True for a day at one end and an hour at the other: "tomorrow … at 9"."""
    between, last = text[blocks[0][-1].end : blocks[1][0].start], text[blocks[1][0].start :]
    if _PATTERNS["for"].match(fold(last)) or _PATTERNS["ends_in_for"].search(fold(between)):
        return False
    are_hours = [{piece.kind in KINDS["hour"] | {"every_part"} for piece in block} for block in blocks]
    return are_hours in ([{True}, {False}], [{False}, {True}])
