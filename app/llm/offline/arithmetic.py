"""Telling arithmetic from other text, and writing spoken arithmetic with signs."""

import re

from app.search.words import fold, spaced

_SIGNS = frozenset("+-*/^%×÷·√²³½")
_NUMBER = re.compile(r"\d[\d.,']*(?:e[+-]?\d+)?|[½²³]", re.IGNORECASE)
_OPERATORS = spaced(
    """
    divide dividir divida dividi multiplica multiplicar multiply multiplique suma sumar soma somar some
    split share rachar racha reparte repartir between among
    add tip propina gorjeta off discount descuento desconto
    por mas menos entre dividido dividida sobre multiplicado times plus minus over divided
    multiplied vezes veces mais elevado elevada squared cubed power cuadrado quadrado cubo percent
    porciento porcento ciento cento x suma sum soma raised factorial mitad metade half doble dobro
    double triple triplo tercio tercera cuarto third quarter twice sqrt sin cos tan log ln exp abs
    pi round floor ceil min max mod raiz root square cuadrada quadrada cubica
    """
)
NUMERALS = spaced(
    """
    cero zero uno one dos dois two tres three cuatro quatro four cinco five seis six siete sete
    seven ocho oito eight nueve nove nine diez dez ten once onze eleven doce doze twelve trece treze
    thirteen catorce quatorze fourteen quince quinze fifteen dieciseis dezesseis sixteen diecisiete
    dezessete seventeen dieciocho dezoito eighteen diecinueve dezenove nineteen veinte vinte twenty
    veintiuno veintidos veintitres veinticuatro veinticinco veintiseis veintisiete veintiocho veintinueve
    treinta trinta thirty cuarenta quarenta forty cincuenta cinquenta fifty sesenta sessenta sixty
    setenta seventy ochenta oitenta eighty noventa ninety cien cem hundred doscientos duzentos
    trescientos trezentos quinientos quinhentos mil thousand millon millones milhao milhoes million
    """
)
_GLUE = spaced(
    """
    de del do da of the el la o a al ao y and e to by los las igual equals equal cuanto es que un
    una um uma uno potencia parte as peso pesos reais real dolar dolares dollar dollars euro euros
    soles usd eur mxn ars brl k on en em sobre con com with ao para pra in into cuenta conta bill check up
    persona personas person people pessoa pessoas amigo amigos amiga amigas friends socio socios socias
    """
)
_N = r"(\d[\d.,]*)"
_PERCENT = r" ?(?:%|por ?ciento|por ?cento|percent|per cent)"
_OFF = "(?:off|(?:de )?(?:descuento|desconto)|discount)"
_TIP = "(?:tip|(?:de )?(?:propina|gorjeta))"
_FROM = "(?: (?:en|em|on|de|sobre))"
_SPOKEN = tuple(
    (re.compile(pattern), sign)
    for pattern, sign in (
        (r"(?:\b(?:r|us|mx|ar))?\$ ?", ""),
        (rf"^(?:divide|dividir|divida|dividi) {_N} (?:por|entre|by|para) {_N}$", r"\1/\2"),
        (rf"^(?:multiplica|multiplicar|multiplique|multiply) {_N} (?:por|by) {_N}$", r"\1*\2"),
        (
            rf"^{_N}{_PERCENT} {_OFF}{_FROM}? {_N}",
            r"\2*(1-\1/100)",
        ),
        (
            rf"^(?:descuento|desconto|discount) (?:del?|of) {_N}{_PERCENT}{_FROM} {_N}",
            r"\2*(1-\1/100)",
        ),
        (
            rf"^{_N}{_PERCENT} {_TIP}{_FROM}? {_N}",
            r"\1/100*\2",
        ),
        (r"(?:la )?(?:raiz cuadrada|raiz quadrada|square root|raiz)(?: de| of)? (\d[\d.,]*)", r"sqrt(\1)"),
        (r"(?:the |a )?square root of (\d[\d.,]*)", r"sqrt(\1)"),
        (r"(\d[\d.,]*) ?(?:%|por ?ciento|por ?cento|percent|per cent) (?:de|of|do|da|del) ", r"\1/100*"),
        (r" ?(?:por ?ciento|por ?cento|percent|per cent)\b", "%"),
        (r" (?:elevado|elevada) (?:a la|al|a|ao) (?:potencia (?:de )?)?", "**"),
        (r" (?:raised )?to the power of ", "**"),
        (r" (?:al cuadrado|ao quadrado|squared)\b", "**2"),
        (r" (?:al cubo|ao cubo|cubed)\b", "**3"),
        (r" (?:dividido|dividida|divided) (?:entre|por|by) ", "/"),
        (r" (?:multiplicado|multiplied) (?:por|by) ", "*"),
        (r" (?:entre|over|sobre) ", "/"),
        (r"(?<=\d) ?(?:×|·) ?(?=\d)", "*"),
        (r"÷", "/"),
        (r" (?:por|times|vezes) | ?x ?(?=\d)", "*"),
        (r" (?:mas|mais|plus) ", "+"),
        (r" (?:menos|minus) ", "-"),
    )
)


def is_arithmetic(text: str) -> bool:
    """Whether all of `text` is a calculation or a number: only numbers, signs and words for them."""
    words, has_number = _taken_apart(text)
    return has_number and all(word in _OPERATORS or word in NUMERALS or word in _GLUE for word in words)


def is_calculation(text: str) -> bool:
    """Whether `text` is arithmetic with something to work out: no bare number, phone, date or time."""
    if not is_arithmetic(text) or _NOT_WORKED_OUT.fullmatch(text.strip()):
        return False
    signed = any(sign in text for sign in _SIGNS) or re.search(r"\d!", text) is not None
    return signed or any(word in _OPERATORS for word in _taken_apart(text)[0])


_NOT_WORKED_OUT = re.compile(r"\+[\d\s().-]+|[\d]+[/.-]\d+[/.-]\d+|\d{1,2}:\d{2}.*")


_CURRENCY = re.compile(r"\b(?:r|us|mx|ar|a|c)?\$")


def _taken_apart(text: str) -> tuple[list[str], bool]:
    """The words of `text` beside its numbers, and whether it has a number in digits or words."""
    folded = fold(text)
    words = re.findall(r"[^\W\d_]+", _NUMBER.sub(" ", _CURRENCY.sub(" ", folded)))
    return words, bool(re.search(r"[\d½]", folded)) or any(word in NUMERALS for word in words)


_QUESTION = re.compile(
    r"^[\s¿¡]*(?:(?:y|e|and)\s+)?"
    r"(?:(?:(?:cu[aá]nto|quanto|how much|what)\s+(?:es|é|e|is|son|da|dá)|what[’']?s)\s+)?"
    r"(?:el\s+(?=\d))?",
    re.IGNORECASE,
)


def without_question(text: str) -> str:
    """ "y cuánto es el 15% de 80" → "15% de 80"."""
    return _QUESTION.sub("", text)


def asked_calculation(text: str) -> str:
    """What a message asks to work out; a factorial's "!" stays, one of excitement goes."""
    bare = text.strip()
    ends = " ¿?=.;," if re.search(r"^[\d.,]+!$|\d!\s*[-+*/^]", bare) else " ¿?=!.;,"
    return without_question(bare.strip(ends).rstrip(ends))


_SUMMED = re.compile(r"(?:la |a |the )?(?:suma|sumar|soma|some|somar|add|sum)(?: de| of)? (?=\d)")
_TERMS = re.compile(r"\s*,\s+(?:(?:y|e|and) )?|\s+(?:y|e|and|con|com|with|to|a|ao)\s+")


def with_signs(text: str) -> str:
    """ "12 por 7" → "12*7", "15% de 80" → "15/100*80"; text that has only signs stays as it was written."""
    bare = text.strip().rstrip("=?. ")
    if not re.search(r"[^\W\d_]|[×÷·]|%\s*(?:de|of)", bare):
        return bare
    folded = fold(bare)
    for pattern, sign in _SPOKEN:
        folded = pattern.sub(sign, folded)
    if summed := _SUMMED.match(folded):
        return "+".join(part for part in _TERMS.split(folded[summed.end() :].strip()) if part)
    return folded.strip()
