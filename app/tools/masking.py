"""Texts made fit for a log: no phone, address, token or path in clear."""

import re

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
