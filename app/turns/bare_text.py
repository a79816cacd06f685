"""Texts as the check of claims reads them: without marks, amounts in words written with digits."""

import re
import unicodedata
from dataclasses import dataclass

from app.text import fold

_SPELLED = {
    1: "uno un una um uma one",
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
    14: "catorce quatorze fourteen",
    15: "quince quinze fifteen",
    16: "dieciseis dezesseis sixteen",
    17: "diecisiete dezessete seventeen",
    18: "dieciocho dezoito eighteen",
    19: "diecinueve dezenove nineteen",
    20: "veinte vinte twenty",
    21: "veintiun veintiuno",
    22: "veintidos",
    23: "veintitres",
    24: "veinticuatro",
    25: "veinticinco",
    26: "veintiseis",
    27: "veintisiete",
    28: "veintiocho",
    29: "veintinueve",
    30: "treinta trinta thirty",
    40: "cuarenta quarenta forty",
    50: "cincuenta cinquenta fifty",
    60: "sesenta sessenta sixty",
    70: "setenta seventy",
    80: "ochenta oitenta eighty",
    90: "noventa ninety",
    100: "cien ciento cem cento hundred",
    200: "doscientos doscientas duzentos duzentas",
    300: "trescientos trescientas trezentos trezentas",
    400: "cuatrocientos cuatrocientas quatrocentos quatrocentas",
    500: "quinientos quinientas quinhentos quinhentas",
    600: "seiscientos seiscientas seiscentos seiscentas",
    700: "setecientos setecientas setecentos setecentas",
    800: "ochocientos ochocientas oitocentos oitocentas",
    900: "novecientos novecientas novecentos novecentas",
    1000: "mil thousand",
    1_000_000: "millon millones milhao milhoes million millions",
}
_VALUES = {word: value for value, words in _SPELLED.items() for word in words.split()}


def _words(first: int, last: int) -> str:
    return "|".join(word for word, value in _VALUES.items() if first <= value <= last)


_ONES, _TENS, _HUNDREDS = _words(1, 9), _words(20, 90), _words(100, 900)
_BELOW_100 = rf"(?:(?:{_TENS})(?:(?:\ y\ |\ e\ |[ -])(?:{_ONES}))?|{_words(10, 29)}|{_ONES})"
_BELOW_1000 = rf"(?:(?:(?:{_ONES})\ hundred|{_HUNDREDS})(?:(?:\ y|\ e|\ and)?\ {_BELOW_100})?|{_BELOW_100})"
_THOUSANDS = (
    rf"(?:(?:{_BELOW_1000}|\d{{1,3}})\ )?(?:{_words(1000, 1000)})(?:(?:\ y|\ e|\ and)?\ {_BELOW_1000})?"
)
_MILLIONS = (
    rf"(?:medio|meio|half\ a|{_THOUSANDS}|{_BELOW_1000}|\d{{1,3}}(?:[.,]\d)?)\ (?:{_words(10**6, 10**6)})"
    rf"(?:(?:\ y|\ e|\ and)?\ (?:medio|meio|{_THOUSANDS}|{_BELOW_1000}))?"
)
_NUMBER = re.compile(  # "at once" is no eleven
    rf"\b(?<!\d[.,])(?!(?<=\bat\ )once)(?:{_MILLIONS}|{_THOUSANDS}|{_BELOW_1000})\b"
)


@dataclass(frozen=True, slots=True)
class BareText:
    """A folded text without marks; `spans` says where each of its characters stands in the original."""

    text: str
    spans: tuple[tuple[int, int], ...]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return where a piece of the text stands in the original."""
        return self.spans[start][0], self.spans[end - 1][1]


def bare_text(text: str) -> BareText:
    """Return a text without what a reader does not see: Markdown's marks, accents, invisible characters."""
    seen = [(spot, character) for spot, character in enumerate(fold(text)) if not _is_mark(character)]
    plain = "".join(" " if character.isspace() and character != "\n" else character for _, character in seen)
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    done = 0
    for found in _NUMBER.finditer(plain):
        value, (start, end) = _value(found[0]), found.span()
        if value == 1:  # an article
            continue
        words += [plain[done:start], str(value)]
        spans += [(spot, spot + 1) for spot, _ in seen[done:start]]
        spans += [(seen[start][0], seen[end - 1][0] + 1)] * len(str(value))
        done = end
    spans += [(spot, spot + 1) for spot, _ in seen[done:]]
    return BareText("".join([*words, plain[done:]]), tuple(spans))


def _is_mark(character: str) -> bool:
    return character in "*_~`\\" or unicodedata.category(character) in ("Mn", "Cf")


def _value(words: str) -> int:
    total = group = 0.0
    for word in re.findall(r"[a-z]+|[\d.,]+", words):
        value = _VALUES.get(word, 0)
        if value == 1_000_000:
            total, group = (total + group) * value, 0
        elif value == 1000:
            total, group = total + (group or 1) * value, 0
        elif word == "hundred":
            group = (group or 1) * value
        elif word in ("medio", "meio", "half"):
            group = 500_000 if total else 0.5
        else:
            group += float(word.replace(",", ".")) if word[0].isdigit() else value
    return round(total + group)
