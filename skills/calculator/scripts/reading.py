"""Reads what people write in a chat as signs and numbers that can be calculated."""

import re
from dataclasses import dataclass
from fractions import Fraction

from app.tools.authoring import read_words

from .arithmetic import BINDING, CONSTANTS, FUNCTIONS
from .numbers import NUMBER, Unreadable, counted, read_number, without_accents

MAX_LENGTH = 2000
MAX_TOKENS = 400

SIGNS = str.maketrans(
    {
        **dict.fromkeys("×✕✖·∙⋅∗", "*"),
        **dict.fromkeys("÷∕⁄:", "/"),
        **dict.fromkeys("−–—‒﹣", "-"),
        **dict.fromkeys("[{", "("),
        **dict.fromkeys("]}", ")"),
        **dict.fromkeys('¿¡"“”«»_`', " "),
        **dict.fromkeys("$€£¥₡₲₱", " "),
        "²": "^2",
        "³": "^3",
        "½": "(1/2)",
        "¼": "(1/4)",
        "¾": "(3/4)",
        "√": " sqrt ",
        "∛": " cbrt ",
        "π": " pi ",
        "’": "'",
    }
)

_WORDS = read_words(__file__)
QUESTION = re.compile(rf"^(?:\s|,|{'|'.join(_WORDS['question'])})+")
WORDS = _WORDS["signs"]
TOLD = [(pattern.format(**_WORDS["parts"]), signs) for pattern, signs in _WORDS["told"]]
CLOSING = re.compile(
    r"\b(?:por favor|porfa(?:vor)?|pls|please|pfv|(?:es |e )?igual(?: a)?|equals|cuanto es|cuanto da)$"
)
MONEY = re.compile(
    r"\b(?:r|us|mx|ar)(?= *\d)|\b(?:pesos?|reais|real|dolares|dolar|euros?|soles|dollars?|bucks|guaranies"
    r"|bolivianos|quetzales|lempiras|colones|usd|mxn|ars|brl|clp|cop|pen|eur)\b"
)
PERCENT = re.compile(r"\b(?:por ?ciento|por ?cento|per ?cent|pct)\b")
SUMMED = re.compile(r"^(?:(?:la|a|the) )?(?:suma(?:r|me)?|som[ae]r?|sum|add)(?: de| of)? (?=[\d(])(.+)$")
TERMS = re.compile(r"\s*[,;]\s+(?:(?:y|e|and) )?|\s+(?:y|e|and|con|com|with|to|a|ao)\s+")

TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER.pattern})|(?P<op>\*\*|//|[-+*/%^!();,])|(?P<name>[a-z_]\w*)|(?P<bad>\S))"
)


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    value: Fraction = Fraction(0)
    unsure: bool = False


def plain(expression):
    """Return lower case without accents, question words or currency, with operator words as signs."""
    if len(expression) > MAX_LENGTH:
        raise Unreadable("TOO_LONG")
    mixed = re.sub(r"(\d+) ?([½¼¾])", r"(\1+\2)", expression)
    text = without_accents(mixed.translate(SIGNS)).translate(SIGNS)
    text = QUESTION.sub("", " ".join(text.split()))
    text = MONEY.sub(" ", _without_closing(text))
    text = counted(PERCENT.sub("%", " ".join(text.split())))
    for pattern, signs in TOLD:
        text = re.sub(pattern, signs, text)
    text = SUMMED.sub(lambda found: TERMS.sub(" + ", found[1]), text)
    for pattern, sign in WORDS:
        text = re.sub(pattern, f" {sign} ", text)
    text = " ".join(text.split())
    if not text:
        raise Unreadable("EMPTY")
    return _with_semicolons(text)


def _without_closing(text):
    """Return the text without what people put behind a calculation: "= ?", "por favor"."""
    while True:
        shorter = CLOSING.sub("", text.rstrip(" ?=.,;"))
        if shorter == text:
            return text
        text = shorter


def _with_semicolons(text):
    """Commas that part the arguments of a function as semicolons, so that other commas belong to numbers.

    Semicolons win; else ", " where both forms occur; else every comma.
    """
    for found in re.finditer(r"\b(?:min|max|round)\s*\(", text):
        start = found.end()
        end, depth, commas = start, 1, []
        while end < len(text) and depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            if text[end] == "," and depth == 1:
                commas.append(end)
            end += 1
        inside = text[start:end]
        if ";" in inside:
            continue
        spaced = [at for at in commas if text[at + 1 : at + 2] == " "]
        for at in spaced or commas:
            text = f"{text[:at]};{text[at + 1 :]}"
    return text


def tokens_of(text, decimal):
    tokens = []
    for found in TOKEN.finditer(text):
        if found["number"]:
            value, unsure = read_number(found["number"], decimal)
            tokens.append(Token("number", found["number"].partition("e")[0], value, unsure))
        elif found["op"]:
            tokens.append(Token("op", {"**": "^"}.get(found["op"], found["op"])))
        elif found["name"]:
            tokens.append(_named(found["name"]))
        elif found["bad"]:
            raise Unreadable("UNKNOWN_WORD", found["bad"])
        if len(tokens) > MAX_TOKENS:
            raise Unreadable("TOO_LONG")
    return _with_modulo(tokens)


def _named(name):
    if name in FUNCTIONS or name in CONSTANTS:
        return Token("name", name)
    if name in BINDING:
        return Token("op", name)
    raise Unreadable("UNKNOWN_WORD", name)


def _with_modulo(tokens):
    """Read a % before an operand as remainder, any other as percentage."""
    return [
        Token("op", "mod") if token.text == "%" and following is not None and _starts(following) else token
        for token, following in zip(tokens, [*tokens[1:], None], strict=True)
    ]


def _starts(token):
    return token.kind in {"number", "name"} or token.text == "("
