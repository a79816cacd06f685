"""What people write in a chat as signs and numbers that can be calculated."""

import re
from dataclasses import dataclass
from fractions import Fraction

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

QUESTION = re.compile(
    r"^(?:\s|,|cuanto (?:es|son|da|daria|seria|sale|hace|vale|suma)\b|cuanto\b|a cuanto (?:equivale|sale)\b"
    r"|quanto (?:e|da|daria|fica|sao|vale|seria|custa)\b|quanto\b|what's\b|whats\b|what is\b"
    r"|how much (?:is|are)\b"
    r"|how much\b|what are\b|cual es\b|qual e\b|calculame\b|calcular?\b|calcule\b|calculate\b|compute\b"
    r"|resuelve(?:me)?\b|resolver?\b|resolva\b|solve\b|dime\b|decime\b|work out\b"
    r"|me (?:diga|diz|calcula|resuelve)\b"
    r"|(?:el |o |the )?(?:resultado|result|total) (?:de|of)\b|la (?:cuenta|operacion)\b|haz\b|hace\b"
    r"|faz\b|faca\b"
    r"|por favor\b|porfa\b|please\b|hola\b|oi\b|oye\b|che\b|hi\b|hey\b)+"
)
CLOSING = re.compile(
    r"\b(?:por favor|porfa(?:vor)?|pls|please|pfv|(?:es |e )?igual(?: a)?|equals|cuanto es|cuanto da)$"
)
MONEY = re.compile(
    r"\b(?:r|us|mx|ar)(?= *\d)|\b(?:pesos?|reais|real|dolares|dolar|euros?|soles|dollars?|bucks|guaranies"
    r"|bolivianos|quetzales|lempiras|colones|usd|mxn|ars|brl|clp|cop|pen|eur)\b"
)
PERCENT = re.compile(r"\b(?:por ?ciento|por ?cento|per ?cent|pct)\b")
WORDS = [
    (r"\bdivid\w* (?:por|entre|para|by|en)\b|\bentre\b|\bsobre\b|\bover\b", "/"),
    (r"\b(?:multiplicad[oa]s? por|multiplied by|multiplica por|por|times|veces|vezes)\b", "*"),
    (r"(?<=[\d)%\s])x(?=[\d(\s-])", "*"),
    (r"\b(?:mas|mais|plus|sumad[oa] a|somado a)\b", "+"),
    (r"\b(?:menos|minus)\b", "-"),
    (r"\b(?:elevad[oa] (?:al cuadrado|ao quadrado)|al cuadrado|ao quadrado|squared)\b", "^2"),
    (r"\b(?:elevad[oa] (?:al cubo|ao cubo)|al cubo|ao cubo|cubed)\b", "^3"),
    (
        r"\b(?:elevad[oa] (?:a la potencia(?: de)?|a la|al|ao|a)|(?:a la|na) potencia(?: de)?"
        r"|(?:raised )?to the power(?: of)?|raised to)\b",
        "^",
    ),
    (r"\b(?:raiz cubica|cubic root|cube root|cbrt)(?: d[eao]| of)?\b", " cbrt "),
    (r"\b(?:raiz cuadrada|raiz quadrada|raiz|square root|sqrt|root)(?: d[eao]| of)?\b", " sqrt "),
    (r"\b(?:(?:la|a) )?(?:mitad|metade|half)(?: d[eao]| of)?\b", " half "),
    (r"\b(?:(?:el|o) )?(?:doble|dobro|double|twice)(?: d[eao]| of)?\b", " double "),
    (r"\b(?:(?:el|o) )?(?:triple|triplo)(?: d[eao]| of)?\b", " triple "),
    (
        r"\b(?:un tercio|a tercera parte|la tercera parte|um terco|a third|one third)(?: d[eao]| of)?\b",
        " third ",
    ),
    (r"\b(?:un cuarto|la cuarta parte|um quarto|a quarter|one quarter)(?: d[eao]| of)?\b", " quarter "),
    (r"\b(?:factorial|fatorial)(?: d[eao]| of)?\b", " factorial "),
    (r"\b(?:modulo|mod)\b", " mod "),
    (r"\b(?:del?|do|da|of)\b(?: (?:la|los|las|the))?", " of "),
    (r"\b(?:el|la|los|las|the|o|os|un|una|um|uma)\b", " "),
    (r"(?<=\d) +(?:personas?|people|persons?|pessoas?|amig[oa]s|friends|soci[oa]s)\b", " "),
]
_OFF = r"(?:off|(?:de |of )?(?:descuento|desconto|discount))"
_TIP = r"(?:tip|(?:de |of )?(?:propina|gorjeta))"
_FROM = r"(?:en|em|on|de|of|sobre|a|na|no|for)(?: (?:la|el|a|o|the|una?|uma?|cuenta de|conta de|bill of))*"
TOLD = [
    (
        r"^(?:split|share|rach(?:a|ar|e)|repart(?:e|ir|a)|divid[aeio]r?)"
        r" (?:(?:up|la|el|a|o|the|una?|uma?) )?"
        r"(?:(?:cuenta|conta|bill|check) (?:de|of) )?([\d.,]+)"
        r" (?:entre|between|among|para|pra|por|by|in|into|en|em) ([\d.,]+)(?= |$)",
        r"\1 / \2",
    ),
    # A verb that tells what is done with two numbers: "divide 90 por 4".
    (r"^(?:divid[aeio]r?|dividime) ([\d.,]+) (?:por|entre|by|para|en|em) ([\d.,]+)$", r"\1 / \2"),
    (
        r"^(?:multiplicar?|multiplique|multiply) ([\d.,]+) (?:por|by|times|con|com|with) ([\d.,]+)$",
        r"\1 * \2",
    ),
    (r"^(?:divid[aeio]r?|dividime) (.+?) (?:por|entre|by|para|en|em) (.+)$", r"(\1) / (\2)"),
    (r"^(?:multiplicar?|multiplique|multiply) (.+?) (?:por|by|times|con|com|with) (.+)$", r"(\1) * (\2)"),
    (rf"(?<![\d.,])([\d.,]+) ?% {_OFF} (?:{_FROM} )?([\d.,]+)", r"\2 - \1%"),
    (rf"(?:descuento|desconto|discount) (?:del?|of) ([\d.,]+) ?% {_FROM} ([\d.,]+)", r"\2 - \1%"),
    (rf"(?<![\d.,])([\d.,]+) ?% {_TIP} (?:{_FROM} )?([\d.,]+)", r"\1% of \2"),
    (rf"(?:propina|gorjeta|tip) (?:del?|of) ([\d.,]+) ?% {_FROM} ([\d.,]+)", r"\1% of \2"),
]
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
    text = without_accents(expression.translate(SIGNS)).translate(SIGNS)
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
