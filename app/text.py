"""Text made safe to show or log (the invisible and the misleading written out), and folded to compare it."""

import json
import re
import unicodedata

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


def _fold_character(character: str) -> str:
    base = unicodedata.normalize("NFKD", character)[0].lower()
    return base if len(base) == 1 and base != " " else character


# Each of these takes time in proportion to the text, whatever the text is: it is a worker's, or a model's.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)++")
_KEYED = re.compile(
    r"((?:api[_-]?key|access[_-]?token|token|secret|password|passwd|authorization)[\"']?\s*[=:]\s*[\"']?"
    r"(?:bearer\s+|basic\s+)?)([^\s\"',;&]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{8,}", re.IGNORECASE)
_PREFIXED = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abprs]|hf|EAA|AKIA|AIza)[-_]?[\w-]{12,}+"
)
_DOTTED = re.compile(r"[\w.-]{13,}+")
_LONG = re.compile(r"\b[\w-]{32,}+")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_CREDENTIALS = re.compile(r"(://)[^\s/@:]+:[^\s/@]+@")
_PHONE = re.compile(r"(?<![\w.])(?!\d{4}-\d\d-\d\d(?!\d))\+?\d(?:[\s().-]{0,2}\d){7,14}(?![\w])")
_PATH = re.compile(r"(?<![\w:/.~-])(?:~|[A-Za-z]:)?[/\\](?:[\w.@+-]+[/\\])+([\w.@+-]*)")


def mask_text(text: str) -> str:
    """Return a text without e-mail addresses, phone numbers, tokens and passwords."""
    text = _CREDENTIALS.sub(r"\1…@", text)
    text = _KEYED.sub(r"\1…", text)
    text = _BEARER.sub(r"\1 …", text)
    text = _PREFIXED.sub("…", text)
    text = _DOTTED.sub(_without_web_token, text)
    text = _LONG.sub(_unless_word, text)
    text = _EMAIL.sub("…@…", text)
    return _PHONE.sub(lambda match: "…" + match[0][-2:], text)


def holds_secret(text: str) -> bool:
    """Return True if a text seems to hold a token, a key or a password written with its name."""
    tokens = (_KEYED, _BEARER, _PREFIXED, _CREDENTIALS)
    return any(pattern.search(text) for pattern in tokens) or any(
        _unless_word(run) == "…" for run in _LONG.finditer(text)
    )


def _without_web_token(dotted: re.Match[str]) -> str:
    """Return the text before a JSON Web Token, whose three parts have dots between them."""
    text = dotted[0]
    start = text.find("eyJ")
    return text if start < 0 or text.count(".", start) < 2 else text[:start] + "…"


def _unless_word(run: re.Match[str]) -> str:
    """Mask a long run that holds letters and digits: it is a token."""
    return "…" if _DIGIT.search(run[0]) and _LETTER.search(run[0]) else run[0]


def without_paths(text: str) -> str:
    """Return a text with only the last part of each file path."""
    return _PATH.sub(lambda match: match[1] or "…", text)
