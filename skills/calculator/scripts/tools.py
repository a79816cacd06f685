"""Exact arithmetic on what people write in a chat: words, percent signs, numbers in their country's form."""

import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException, Overflow
from fractions import Fraction
from functools import lru_cache

MAX_LENGTH = 2000
MAX_TOKENS = 400
MAX_DEPTH = 50
MAX_DIGITS = 4000
MAX_BITS = int(MAX_DIGITS * math.log2(10)) + 1
LONGEST_DECIMALS = 20
SIGNIFICANT = 12
GROUPED_DIGITS = 15
PRECISE = Context(prec=50, Emax=2 * MAX_DIGITS, Emin=-2 * MAX_DIGITS)

SAID = {
    "es": {
        "read": "Leí {text} como {plain}.",
        "either": "{text} puede ser {first} o {second}:\n• {one}\n• {two}\n¿Cuál es?",
        "of": "de",
        "half": "la mitad de",
        "double": "el doble de",
        "triple": "el triple de",
        "third": "un tercio de",
        "quarter": "un cuarto de",
        "EMPTY": "Falta la cuenta: escribe por ejemplo 12% de 3450.",
        "TOO_LONG": f"La cuenta es demasiado larga: hasta {MAX_LENGTH} caracteres y {MAX_TOKENS} partes.",
        "TOO_DEEP": f"Hay demasiados paréntesis, uno dentro de otro: como máximo {MAX_DEPTH}.",
        "TOO_BIG": f"El resultado es demasiado grande o demasiado pequeño: más de {MAX_DIGITS} cifras.",
        "DIVISION_BY_ZERO": "No se puede dividir entre cero.",
        "NOT_REAL": "No tiene solución en los números reales: raíz o potencia de un número negativo.",
        "NOT_WHOLE": "El factorial solo existe para números enteros desde 0.",
        "BAD_NUMBER": "No entiendo el número {what}.",
        "UNKNOWN_WORD": "No entiendo «{what}» en una cuenta.",
        "UNFINISHED": "La cuenta está incompleta: falta un número al final.",
        "UNEXPECTED": "No esperaba «{what}» ahí.",
        "UNCLOSED": "Falta cerrar un paréntesis.",
        "ARGUMENTS": "{what} lleva otra cantidad de números.",
        "hint": "Usa números y + - × ÷ ^ % ( ), o palabras como «12% de 3450» o «raíz de 144».",
    },
    "pt": {
        "read": "Li {text} como {plain}.",
        "either": "{text} pode ser {first} ou {second}:\n• {one}\n• {two}\nQual é?",
        "of": "de",
        "half": "a metade de",
        "double": "o dobro de",
        "triple": "o triplo de",
        "third": "um terço de",
        "quarter": "um quarto de",
        "EMPTY": "Falta a conta: escreva por exemplo 12% de 3450.",
        "TOO_LONG": f"A conta é longa demais: no máximo {MAX_LENGTH} caracteres e {MAX_TOKENS} partes.",
        "TOO_DEEP": f"Há parênteses demais, um dentro do outro: no máximo {MAX_DEPTH}.",
        "TOO_BIG": f"O resultado é grande ou pequeno demais: mais de {MAX_DIGITS} dígitos.",
        "DIVISION_BY_ZERO": "Não dá para dividir por zero.",
        "NOT_REAL": "Não tem solução nos números reais: raiz ou potência de um número negativo.",
        "NOT_WHOLE": "O fatorial só existe para números inteiros a partir de 0.",
        "BAD_NUMBER": "Não entendi o número {what}.",
        "UNKNOWN_WORD": "Não entendi “{what}” numa conta.",
        "UNFINISHED": "A conta está incompleta: falta um número no final.",
        "UNEXPECTED": "Não esperava “{what}” aí.",
        "UNCLOSED": "Falta fechar um parêntese.",
        "ARGUMENTS": "{what} leva outra quantidade de números.",
        "hint": "Use números e + - × ÷ ^ % ( ), ou palavras como “12% de 3450” ou “raiz de 144”.",
    },
    "en": {
        "read": "I read {text} as {plain}.",
        "either": "{text} may be {first} or {second}:\n• {one}\n• {two}\nWhich one is it?",
        "of": "of",
        "half": "half of",
        "double": "double",
        "triple": "triple",
        "third": "a third of",
        "quarter": "a quarter of",
        "EMPTY": "There is nothing to calculate: write for example 12% of 3450.",
        "TOO_LONG": f"That is too long: at most {MAX_LENGTH} characters and {MAX_TOKENS} parts.",
        "TOO_DEEP": f"Too many parentheses inside each other: at most {MAX_DEPTH}.",
        "TOO_BIG": f"The result is too large or too small: more than {MAX_DIGITS} digits.",
        "DIVISION_BY_ZERO": "Division by zero is not possible.",
        "NOT_REAL": "There is no real solution: a root or power of a negative number.",
        "NOT_WHOLE": "A factorial exists only for whole numbers from 0.",
        "BAD_NUMBER": "I do not understand the number {what}.",
        "UNKNOWN_WORD": 'I do not understand "{what}" in a calculation.',
        "UNFINISHED": "The calculation is not complete: a number is missing at the end.",
        "UNEXPECTED": 'I did not expect "{what}" there.',
        "UNCLOSED": "A parenthesis is not closed.",
        "ARGUMENTS": "{what} takes another count of numbers.",
        "hint": 'Use numbers and + - × ÷ ^ % ( ), or words such as "12% of 3450" or "square root of 144".',
    },
}

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
]
_OFF = r"(?:off|(?:de |of )?(?:descuento|desconto|discount))"
_TIP = r"(?:tip|(?:de |of )?(?:propina|gorjeta))"
_FROM = r"(?:en|em|on|de|of|sobre|a|na|no|for)(?: (?:la|el|a|o|the|una?|uma?|cuenta de|conta de|bill of))*"
TOLD = [
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
COUNTED = {
    0: "cero zero",
    1: "uno one",
    2: "dos dois duas two",
    3: "tres three",
    4: "cuatro quatro four",
    5: "cinco five",
    6: "seis six",
    7: "siete sete seven",
    8: "ocho oito eight",
    9: "nueve nove nine",
    10: "diez dez ten",
    11: "once onze eleven",
    12: "doce doze twelve",
    13: "trece treze thirteen",
    14: "catorce quatorze catorze fourteen",
    15: "quince quinze fifteen",
    16: "dieciseis dezesseis sixteen",
    17: "diecisiete dezessete seventeen",
    18: "dieciocho dezoito eighteen",
    19: "diecinueve dezenove nineteen",
    20: "veinte vinte twenty",
    30: "treinta trinta thirty",
    40: "cuarenta quarenta forty",
    50: "cincuenta cinquenta fifty",
    60: "sesenta sessenta sixty",
    70: "setenta seventy",
    80: "ochenta oitenta eighty",
    90: "noventa ninety",
    100: "cien cem ciento cento hundred",
}
THOUSANDS = {1000: "mil k thousand", 1000000: "millon millones milhao milhoes million millions"}

NUMBER = re.compile(
    r"(?:\d{1,3}(?:[ \u00a0\u202f']\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)*|[.,]\d+)(?:e[+-]?\d+(?![\w.]))?"
)
TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER.pattern})|(?P<op>\*\*|//|[-+*/%^!();,])|(?P<name>[a-z_]\w*)|(?P<bad>\S))"
)

BINDING = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2, "mod": 2, "of": 4, "^": 5}
UNARY = 3
FUNCTIONS = {
    "sqrt": (1, 1),
    "cbrt": (1, 1),
    "abs": (1, 1),
    "round": (1, 2),
    "min": (1, 100),
    "max": (1, 100),
    "factorial": (1, 1),
    "half": (1, 1),
    "double": (1, 1),
    "triple": (1, 1),
    "third": (1, 1),
    "quarter": (1, 1),
}
SHARES = {
    "half": Fraction(1, 2),
    "double": Fraction(2),
    "triple": Fraction(3),
    "third": Fraction(1, 3),
    "quarter": Fraction(1, 4),
}
CONSTANTS = {
    "pi": Fraction("3.14159265358979323846264338327950288419716939937511"),
    "e": Fraction("2.71828182845904523536028747135266249775724709369996"),
}
SHOWN = {"*": "×", "/": "÷", "sqrt": "√", "cbrt": "∛", "pi": "π"}


def calculate(expression: str, context=None) -> dict:
    """Calculates an arithmetic expression exactly: + - × ÷, powers, roots, percentages, in digits or words.

    Args:
        expression: The calculation as the person wrote it, such as "12% de 3.450", "(2 + 3) × 4" or
            "raíz de 144", with numbers in their own country's form.

    Example: cuánto es 15% de 2300
    Example: quanto é 12 vezes 7
    """
    person = getattr(context, "person", None)
    language = getattr(person, "language", "") if getattr(person, "language", "") in SAID else "en"
    form = _form((getattr(person, "country", "") or "").upper(), language)
    try:
        return _answer(expression, form, language)
    except _Unreadable as error:
        said = SAID[language]
        message = said[error.code].format(what=error.what[:40])
        return {"ok": False, "error": {"code": error.code, "message": message, "hint": said["hint"]}}


@dataclass(frozen=True)
class _Form:
    """How numbers are written: `known` is False where the person's country is not known."""

    decimal: str
    group: str
    known: bool


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    value: Fraction = Fraction(0)
    unsure: bool = False


@dataclass(frozen=True)
class _Value:
    number: Fraction
    exact: bool = True
    percent: bool = False


class _Unreadable(Exception):
    def __init__(self, code: str, what: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.what = what


def _answer(expression, form, language):
    text = _plain(expression)
    tokens = _tokens(text, form.decimal)
    unsure = list(dict.fromkeys(token.text for token in tokens if token.unsure))
    first = _result(tokens, form, language)
    if form.known or not unsure:
        notes = _readings(tokens, form, language) if form.known else []
        told = {"summary": f"{first['summary']}\n{' '.join(notes)}", "read_as": notes} if notes else {}
        return {**first, **told}
    second = _result(_tokens(text, "," if form.decimal == "." else "."), form, language)
    word = unsure[0]
    readings = [
        _exact(_number(word, decimal)[0]) for decimal in (form.decimal, "," if form.decimal == "." else ".")
    ]
    summary = SAID[language]["either"].format(
        text=word, first=readings[0], second=readings[1], one=first["summary"], two=second["summary"]
    )
    return {"summary": summary, "ambiguous": True, "readings": [first, second]}


def _readings(tokens, form, language):
    """A sentence for each number that means something else than it would by the country's marks."""
    notes = {}
    for token in tokens:
        if token.kind != "number" or not re.search("[.,]", token.text):
            continue
        plain = _localised(_exact(token.value), form)
        if _bare(token.text, form) != _bare(plain, form):
            notes[token.text] = SAID[language]["read"].format(text=token.text, plain=plain)
    return list(notes.values())


def _bare(text, form):
    """A number without what its value does not depend on: grouping, and zeros at the end."""
    text = re.sub(r"[ \u00a0\u202f']", "", text.replace(form.group, "") if form.group else text)
    whole, mark, rest = text.partition(form.decimal)
    rest = rest.rstrip("0")
    return f"{whole.lstrip('0')}{mark if rest else ''}{rest}"


def _result(tokens, form, language):
    value = _Parser(tokens).value()
    shown, exact = _shown(value)
    written = _localised(shown, form)
    expression = _rendered(tokens, form, language)
    equals = "=" if exact else "≈"
    return {
        "summary": f"{expression} {equals} {written}",
        "result": shown,
        "formatted": written,
        "exact": exact,
        **({} if exact or not value.exact else {"fraction": _fraction(value.number)}),
    }


@lru_cache(maxsize=300)
def _form(country, language):
    """The decimal and grouping marks of a country; a bare form where it is not known."""
    from babel import Locale
    from babel.core import get_global

    subtags = get_global("likely_subtags")
    likely = subtags.get(f"und_{country}", "") if country else ""
    if country and subtags["und"].endswith(f"_{country}"):  # the one country that has no entry of its own
        likely = subtags["und"]
    if not likely:
        return _Form("," if language == "pt" else ".", "", False)
    symbols = Locale.parse(f"{likely.split('_')[0]}_{country}").number_symbols
    marks = symbols.get("latn") or symbols
    group = marks.get("group", "")
    return _Form(marks.get("decimal", "."), "." if not group else " " if group.isspace() else group, True)


def _plain(expression):
    """Lower case without accents, question words or currency, with operator words as signs."""
    if len(expression) > MAX_LENGTH:
        raise _Unreadable("TOO_LONG")
    text = unicodedata.normalize("NFKD", expression.translate(SIGNS).lower())
    text = "".join(char for char in text if not unicodedata.combining(char)).translate(SIGNS)
    text = QUESTION.sub("", " ".join(text.split()))
    text = MONEY.sub(" ", _without_closing(text))
    text = _counted(PERCENT.sub("%", text))
    for pattern, signs in TOLD:
        text = re.sub(pattern, signs, text)
    text = SUMMED.sub(lambda found: TERMS.sub(" + ", found[1]), text)
    for pattern, sign in WORDS:
        text = re.sub(pattern, f" {sign} ", text)
    text = " ".join(text.split())
    if not text:
        raise _Unreadable("EMPTY")
    return _with_semicolons(text)


def _without_closing(text):
    """The text without what people put behind a calculation: "= ?", "por favor"."""
    while True:
        shorter = CLOSING.sub("", text.rstrip(" ?=.,;"))
        if shorter == text:
            return text
        text = shorter


@lru_cache(maxsize=1)
def _counting():
    return {word: number for number, words in COUNTED.items() for word in words.split()}


def _counted(text):
    """Number words as digits: "treinta y cinco" → 35, "3 mil" → 3 × 1000."""
    words = _counting()
    tens = "|".join(word for word, number in words.items() if 20 <= number < 100)
    units = "|".join(word for word, number in words.items() if 0 < number < 10)
    text = re.sub(
        rf"\b({tens})(?: y | e |-| )({units})\b", lambda found: str(words[found[1]] + words[found[2]]), text
    )
    text = re.sub(rf"\b(?:{'|'.join(words)})\b", lambda found: str(words[found[0]]), text)
    for factor, names in THOUSANDS.items():
        choice = names.replace(" ", "|")
        text = re.sub(rf"({NUMBER.pattern})\s*(?:{choice})\b", rf"(\1*{factor})", text)
        text = re.sub(rf"\b(?:{choice.replace('|k', '')})\b", str(factor), text)
    return text


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


def _tokens(text, decimal):
    tokens = []
    for found in TOKEN.finditer(text):
        if found["number"]:
            value, unsure = _number(found["number"], decimal)
            tokens.append(_Token("number", found["number"].partition("e")[0], value, unsure))
        elif found["op"]:
            tokens.append(_Token("op", {"**": "^"}.get(found["op"], found["op"])))
        elif found["name"]:
            tokens.append(_named(found["name"]))
        elif found["bad"]:
            raise _Unreadable("UNKNOWN_WORD", found["bad"])
        if len(tokens) > MAX_TOKENS:
            raise _Unreadable("TOO_LONG")
    return _with_modulo(tokens)


def _named(name):
    if name in FUNCTIONS or name in CONSTANTS:
        return _Token("name", name)
    if name in BINDING:
        return _Token("op", name)
    raise _Unreadable("UNKNOWN_WORD", name)


def _with_modulo(tokens):
    """A % that an operand follows is a remainder; any other is a percentage."""
    return [
        _Token("op", "mod") if token.text == "%" and following is not None and _starts(following) else token
        for token, following in zip(tokens, [*tokens[1:], None], strict=True)
    ]


def _starts(token):
    return token.kind in {"number", "name"} or token.text == "("


def _number(text, decimal):
    """The value of a number as written, and whether it depends on the country (1.234, 1,234)."""
    mantissa, _, exponent = text.partition("e")
    mantissa = re.sub(r"[ \u00a0\u202f']", "", mantissa)
    marks = [char for char in mantissa if char in ".,"]
    unsure = False
    if len(set(marks)) == 2:
        point = marks[-1]
        if marks.count(point) > 1 or not _grouped(mantissa.split(point)[0]):
            raise _Unreadable("BAD_NUMBER", text)
        mantissa = mantissa.replace("," if point == "." else ".", "").replace(point, ".")
    elif len(marks) > 1:
        if not _grouped(mantissa):
            raise _Unreadable("BAD_NUMBER", text)
        mantissa = mantissa.replace(marks[0], "")
    elif marks:
        unsure = mantissa == text and re.fullmatch(r"[1-9]\d{0,2}[.,]\d{3}", mantissa) is not None
        as_group = unsure and marks[0] != decimal
        mantissa = mantissa.replace(marks[0], "" if as_group else ".")
    if len(mantissa) > MAX_DIGITS or abs(int(exponent or 0)) > MAX_DIGITS:
        raise _Unreadable("TOO_BIG")
    return Fraction(
        f"{'0' if mantissa.startswith('.') else ''}{mantissa}{f'e{exponent}' if exponent else ''}"
    ), unsure


def _grouped(text):
    """Whether the marks part thousands (1.234.567, and 1,00,000 as in India)."""
    return re.fullmatch(r"\d{1,3}(?:[.,]\d{2,3})*[.,]\d{3}", text) is not None


class _Parser:
    """Precedence climbing that computes as it reads; only what is named here can be computed at all."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def value(self):
        value = self.expression(0)
        if self.at < len(self.tokens):
            raise _Unreadable("UNEXPECTED", self.tokens[self.at].text)
        return value

    def peek(self):
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def expression(self, least):
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Unreadable("TOO_DEEP")
        left = self.operand()
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            implied = token.kind == "name" or token.text == "("
            sign = "*" if implied else token.text
            binding = BINDING.get(sign, -1)
            if binding < max(least, 1) or token.kind == "number":
                break
            self.at += 0 if implied else 1
            right = self.expression(binding if sign == "^" else binding + 1)
            left = _bounded(_combined(sign, left, right))
        self.depth -= 1
        return left

    def operand(self):
        if self.at == len(self.tokens):
            raise _Unreadable("UNFINISHED")
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "number":
            value = _Value(token.value)
        elif token.text in {"-", "+"}:
            inner = self.expression(UNARY)
            return _Value(-inner.number, inner.exact, inner.percent) if token.text == "-" else inner
        elif token.text == "(":
            value = self.expression(0)
            self.close()
        elif token.text in CONSTANTS:
            value = _Value(CONSTANTS[token.text], exact=False)
        elif token.kind == "name":
            value = self.called(token.text)
        else:
            raise _Unreadable("UNEXPECTED", token.text)
        return self.followed(value)

    def followed(self, value):
        """The signs that stand behind an operand: 16%, 5!"""
        while self.peek() in {"%", "!"}:
            sign = self.peek()
            self.at += 1
            if sign == "!":
                value = _factorial(value)
            else:
                value = _Value(value.number / 100, value.exact, percent=True)
        return value

    def called(self, name):
        if self.peek() != "(":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise _Unreadable("TOO_DEEP")
            arguments = [self.operand()]
            self.depth -= 1
        else:
            self.at += 1
            arguments = [self.expression(0)]
            while self.peek() == ";":
                self.at += 1
                arguments.append(self.expression(0))
            self.close()
        fewest, most = FUNCTIONS[name]
        if not fewest <= len(arguments) <= most:
            raise _Unreadable("ARGUMENTS", name)
        return _bounded(_applied(name, arguments))

    def close(self):
        if self.at == len(self.tokens):
            raise _Unreadable("UNCLOSED")
        if self.peek() != ")":
            raise _Unreadable("UNEXPECTED", self.peek())
        self.at += 1


def _combined(sign, left, right):
    exact = left.exact and right.exact
    a, b = left.number, right.number
    if sign in {"+", "-"}:
        if right.percent and not left.percent:
            b = a * b  # 3450 + 16% means 16 % of 3450
        return _Value(a + b if sign == "+" else a - b, exact, left.percent and right.percent)
    if sign in {"*", "of"}:
        return _Value(a * b, exact)
    if sign == "^":
        return _power(left, right)
    if not b:
        raise _Unreadable("DIVISION_BY_ZERO")
    if sign == "/":
        return _Value(a / b, exact)
    return _Value(Fraction(a // b) if sign == "//" else a - b * (a // b), exact)


def _power(base, exponent):
    a, n = base.number, exponent.number
    if n.denominator != 1:
        return _root(base, exponent)
    n = n.numerator
    exact = base.exact and exponent.exact
    if not a:
        if n < 0:
            raise _Unreadable("DIVISION_BY_ZERO")
        return _Value(Fraction(0 if n else 1), exact)
    if abs(a) == 1:
        return _Value(a if n % 2 else Fraction(1), exact)
    _check_size(a, n)
    bits = max(a.numerator.bit_length(), a.denominator.bit_length()) * abs(n)
    if exact and bits <= 2 * MAX_BITS:
        return _Value(a**n)
    return _Value(_decimal_power(abs(a), Fraction(n)) * (-1 if a < 0 and n % 2 else 1), exact=False)


def _root(base, exponent):
    """A power with a broken exponent: exact where a root is whole, else to 50 digits."""
    a, n = base.number, exponent.number
    if a < 0:
        raise _Unreadable("NOT_REAL")
    if not a:
        if n < 0:
            raise _Unreadable("DIVISION_BY_ZERO")
        return _Value(Fraction(0))
    if base.exact and exponent.exact and n.denominator <= 64:
        top, bottom = (_whole_root(part, n.denominator) for part in (a.numerator, a.denominator))
        if top is not None and bottom is not None:
            return _power(_Value(Fraction(top, bottom)), _Value(Fraction(n.numerator)))
    if abs(n) > 10**9:
        raise _Unreadable("TOO_BIG")
    _check_size(a, n)
    return _Value(_decimal_power(a, n), exact=False)


def _whole_root(number, degree):
    """The integer whose power is exactly this number, by Newton's method; None where there is none."""
    guess = 1 << -(-number.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + number // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess if guess**degree == number else None
        guess = better


def _check_size(base, exponent):
    """Refuses a power before it is computed: by the logarithm of the result."""
    if abs(exponent) > 10**12:
        raise _Unreadable("TOO_BIG")
    magnitude = math.log10(abs(base.numerator)) - math.log10(base.denominator)
    if abs(magnitude * float(exponent)) > MAX_DIGITS:
        raise _Unreadable("TOO_BIG")


def _decimal_power(base, exponent):
    try:
        return Fraction(PRECISE.copy().power(_decimal(base), _decimal(exponent)))
    except (Overflow, DecimalException) as error:
        raise _Unreadable("TOO_BIG") from error


def _decimal(number):
    return PRECISE.copy().divide(Decimal(number.numerator), Decimal(number.denominator))


def _factorial(value):
    n = value.number
    if n.denominator != 1 or n < 0:
        raise _Unreadable("NOT_WHOLE")
    if n > MAX_DIGITS or math.lgamma(int(n) + 1) / math.log(10) > MAX_DIGITS:
        raise _Unreadable("TOO_BIG")
    return _Value(Fraction(math.factorial(int(n))), value.exact)


def _applied(name, arguments):
    first = arguments[0]
    exact = all(argument.exact for argument in arguments)
    numbers = [argument.number for argument in arguments]
    if name in SHARES:
        return _Value(first.number * SHARES[name], exact)
    if name == "factorial":
        return _factorial(first)
    if name == "abs":
        return _Value(abs(first.number), exact)
    if name in {"min", "max"}:
        return _Value(min(numbers) if name == "min" else max(numbers), exact)
    if name == "round":
        return _Value(_rounded(first.number, numbers[1] if len(numbers) > 1 else Fraction(0)))
    if name == "sqrt":
        return _root(first, _Value(Fraction(1, 2)))
    size = _root(_Value(abs(first.number), exact), _Value(Fraction(1, 3)))
    return _Value(-size.number if first.number < 0 else size.number, size.exact)


def _rounded(number, places):
    """To that many decimals, halves away from zero, as people are taught."""
    if places.denominator != 1 or abs(places) > 100:
        raise _Unreadable("ARGUMENTS", "round")
    scale = Fraction(10) ** int(places)
    whole = math.floor(abs(number) * scale + Fraction(1, 2))
    return (whole if number >= 0 else -whole) / scale


def _bounded(value):
    """The value, cut back to 50 digits where it was rounded; raises for more than MAX_DIGITS digits."""
    number = value.number
    if not value.exact and number:
        try:
            number = Fraction(_decimal(number))
        except DecimalException as error:
            raise _Unreadable("TOO_BIG") from error
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 2 * MAX_BITS:
        raise _Unreadable("TOO_BIG")
    if abs(number.numerator) // number.denominator >= 10**MAX_DIGITS:
        raise _Unreadable("TOO_BIG")
    return _Value(number, value.exact, value.percent)


def _shown(value):
    """The number in digits with a point, and whether these are all its digits."""
    number = value.number
    if value.exact and number.denominator == 1:
        return str(number.numerator), True
    if value.exact and _decimals(number.denominator) <= LONGEST_DECIMALS:
        return _exact(number), True
    return _approximate(number), False


def _decimals(denominator):
    """Decimals that a fraction of this denominator needs; more than any limit where it never ends."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else LONGEST_DECIMALS + 1


def _exact(number):
    """All digits of a fraction whose decimals end."""
    places = _decimals(number.denominator)
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    whole, rest = digits[: len(digits) - places], digits[len(digits) - places :]
    return f"{'-' if number < 0 else ''}{whole}{f'.{rest}' if rest else ''}"


def _approximate(number):
    rounded = Context(prec=SIGNIFICANT).divide(Decimal(number.numerator), Decimal(number.denominator))
    if -7 <= rounded.adjusted() <= GROUPED_DIGITS:
        text = f"{rounded:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    digits, _, exponent = f"{rounded:e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _fraction(number):
    return f"{number.numerator}/{number.denominator}" if number.denominator < 10**6 else ""


def _localised(text, form):
    """Digits with the country's marks; long integers stay ungrouped, to be copied."""
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, rest = mantissa.lstrip("-").partition(".")
    if form.group and 4 <= len(whole) <= GROUPED_DIGITS:
        whole = f"{int(whole):,}".replace(",", form.group)
    written = f"{sign}{whole}{f'{form.decimal}{rest}' if rest else ''}"
    return f"{written} × 10^{exponent}" if exponent else written


def _rendered(tokens, form, language):
    """The expression as it was understood, in signs and the country's numbers."""
    parts = []
    after_operand = False
    for token in tokens:
        glue = " " if parts else ""
        text = SHOWN.get(token.text, SAID[language].get(token.text, token.text))
        if token.kind == "number":
            text, after = _localised(_exact(token.value), form), True
        elif token.kind == "name":
            after = token.text in CONSTANTS
        elif token.text in {"%", "!", ")", ";"}:
            glue, after = "", token.text != ";"
        elif token.text == "^":
            glue, after = "", False
        else:
            after = False
        if parts and (parts[-1].endswith(("(", "^", "√", "∛")) or parts[-1].strip() in {"u-", "u+"}):
            glue = ""
        if token.text == "(" and parts and parts[-1].strip() in FUNCTIONS:
            glue = ""
        if token.text in {"-", "+"} and not after_operand:
            text = f"u{text}"
        parts.append(f"{glue}{text}")
        after_operand = after
    whole = "".join(parts).replace("u-", "-").replace("u+", "+")
    return whole if len(whole) <= 300 else f"{whole[:299]}…"
