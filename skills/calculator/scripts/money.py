"""Money at a rate that the person gives: nobody asks for one here."""

import re

from .arithmetic import Parser, rounded
from .numbers import (
    NUMBER,
    Unreadable,
    approximate,
    clear_number,
    decimals,
    digits_of,
    localised,
    readable,
    told_decimal,
    without_accents,
)
from .reading import plain, tokens_of

_LONGEST = 100
# Currencies that a rate is the price of, where the other one is not among them.
_PRICED = re.compile(r"\b(?:dolar(?:es)?|dollars?|usd|euros?|eur|libras?|pounds?|gbp)\b|us\$|u\$s|€|£")
_CURRENCY = re.compile(
    r"\b(?:pesos?|reais|real|dolar(?:es)?|dollars?|euros?|soles|guaranies|bolivianos|quetzales|lempiras|colones"
    r"|yenes|yens?|francos|usd|mxn|ars|brl|clp|cop|pen|uyu|eur|gbp)\b|[$€£]"
)
_MORE = re.compile(r"[\d½¼¾]|\b(?:half|quarter|medi[ao]|mei[ao]|cuarto)\b")  # "2 1/2 yards"

# What is shared, or added to a bill, is money too.
_BILL = re.compile(r"\b(?:split|divvy|rach\w*|repart\w+|tip|propina|gorjeta|bill|cuenta|conta)\b")


def tells_money(text):
    """Tell whether a calculation is about money."""
    return is_money(text) or _BILL.search(without_accents(text)) is not None


def is_money(text):
    """Tell whether words name a currency."""
    return _CURRENCY.search(without_accents(text)) is not None


def exchanged(quantity, rate, to_currency, form, language):
    """Convert at a rate, the price of one unit of the dearer currency. Raises Unreadable."""
    mark = told_decimal(f"{quantity} {rate}")
    language, decimal = ("en", mark) if mark else (language, form.decimal)
    amount, currency = _amount(quantity, decimal, language)
    for number in re.findall(NUMBER.pattern, rate):
        clear_number(number, decimal, language)
    price = Parser(tokens_of(plain(rate), decimal)).value()
    if price.number <= 0:
        raise Unreadable("BAD_RATE", rate[:40])
    divides = bool(_PRICED.search(without_accents(to_currency))) and not _PRICED.search(
        without_accents(quantity)
    )
    value = amount / price.number if divides else amount * price.number
    shown, exact = in_cents(value)
    exact = exact and price.exact
    left = " ".join(filter(None, (localised(readable(amount)[0], form), currency)))
    right = " ".join(filter(None, (localised(shown, form), to_currency.strip())))
    rate = f"{'÷' if divides else '×'} {localised(readable(price.number)[0], form)}"
    return {"summary": f"{left} {rate} {'=' if exact else '≈'} {right}", "result": shown, "exact": exact}


def in_cents(number):
    """Return an amount of money in digits, and whether these are all: at most four, else two decimals."""
    if decimals(number.denominator) <= 4:
        return digits_of(number), True
    if abs(number) < 1:
        return approximate(number, 3), False
    return digits_of(rounded(number, 2)), False


def _amount(quantity, decimal, language):
    found = re.search(NUMBER.pattern, quantity)
    if found is None or len(quantity) > _LONGEST:
        raise Unreadable("NO_QUANTITY", quantity[:40].strip())
    around = f"{quantity[: found.start()]} {quantity[found.end() :]}"
    if _MORE.search(without_accents(around)):
        raise Unreadable("NO_QUANTITY", quantity[:40].strip())
    return clear_number(found[0], decimal, language), " ".join(around.split()).strip(" ?.,")
