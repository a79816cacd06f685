"""Arithmetic told from other text, in digits and in words of three languages."""

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
_CURRENCY = re.compile(r"\b(?:r|us|mx|ar|a|c)?\$")
_PHONE_DATE_OR_TIME = re.compile(r"\+[\d\s().-]+|[\d]+[/.-]\d+[/.-]\d+|\d{1,2}:\d{2}.*")
_QUESTION = re.compile(
    r"^[\s¿¡]*(?:(?:y|e|and)\s+)?"
    r"(?:(?:(?:cu[aá]nto|quanto|how much|what)\s+(?:es|é|e|is|son|da|dá)|what[’']?s)\s+)?"
    r"(?:el\s+(?=\d))?",
    re.IGNORECASE,
)


def is_arithmetic(text: str) -> bool:
    """Tell whether all of `text` is a number or a calculation, in digits, signs and words."""
    found, has_number = _words_beside_numbers(text)
    return has_number and all(word in _OPERATORS or word in NUMERALS or word in _GLUE for word in found)


def is_calculation(text: str) -> bool:
    """Tell whether `text` is arithmetic with something to work out: no bare number, phone, date or time."""
    if not is_arithmetic(text) or _PHONE_DATE_OR_TIME.fullmatch(text.strip()):
        return False
    signed = any(sign in text for sign in _SIGNS) or re.search(r"\d!", text) is not None
    return signed or any(word in _OPERATORS for word in _words_beside_numbers(text)[0])


def asked_calculation(text: str) -> str:
    """Return what a message asks to work out; a factorial's "!" stays, one of excitement goes."""
    bare = text.strip()
    ends = " ¿?=.;," if re.search(r"^[\d.,]+!$|\d!\s*[-+*/^]", bare) else " ¿?=!.;,"
    return _QUESTION.sub("", bare.strip(ends).rstrip(ends))


def _words_beside_numbers(text: str) -> tuple[list[str], bool]:
    """Return the words beside the numbers, and whether there is a number in digits or words."""
    folded = fold(text)
    found = re.findall(r"[^\W\d_]+", _NUMBER.sub(" ", _CURRENCY.sub(" ", folded)))
    return found, bool(re.search(r"[\d½]", folded)) or any(word in NUMERALS for word in found)
