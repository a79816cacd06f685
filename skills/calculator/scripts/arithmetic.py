"""Arithmetic on exact fractions, bounded before anything large is computed."""

import math
from dataclasses import dataclass
from decimal import DecimalException, Overflow
from fractions import Fraction

from .numbers import (
    LONGEST_DECIMALS,
    MAX_BITS,
    MAX_DIGITS,
    PRECISE,
    Unreadable,
    approximate,
    decimals,
    digits_of,
    precise,
)

MAX_DEPTH = 50

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


@dataclass(frozen=True)
class Value:
    number: Fraction
    exact: bool = True
    percent: bool = False


class Parser:
    """Precedence climbing that computes as it reads; only what is named here can be computed at all."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def value(self):
        value = self.expression(0)
        if self.at < len(self.tokens):
            raise Unreadable("UNEXPECTED", self.tokens[self.at].text)
        return value

    def peek(self):
        return self.tokens[self.at].text if self.at < len(self.tokens) else ""

    def expression(self, least):
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable("TOO_DEEP")
        left = self.operand()
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            implied = token.kind == "name" or token.text == "("
            sign = "*" if implied else token.text
            binding = BINDING.get(sign, -1)
            if binding < max(least, 1) or token.kind == "number":
                break
            self.at += 0 if implied else 1
            whole = sign == "/" and self.is_share()
            right = self.operand() if whole else self.expression(binding if sign == "^" else binding + 1)
            left = _bounded(_combined(sign, left, right))
        self.depth -= 1
        return left

    def is_share(self):
        """Tell whether two numbers around a stroke are a share of something: 1/4 of 200."""
        around = self.tokens[self.at - 2 : self.at + 2]
        if len(around) < 4 or around[3].text != "of":
            return False
        return around[0].kind == around[2].kind == "number"

    def operand(self):
        if self.at == len(self.tokens):
            raise Unreadable("UNFINISHED")
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "number":
            value = Value(token.value)
        elif token.text in {"-", "+"}:
            inner = self.expression(UNARY)
            return Value(-inner.number, inner.exact, inner.percent) if token.text == "-" else inner
        elif token.text == "(":
            value = self.expression(0)
            self.close()
        elif token.text in CONSTANTS:
            value = Value(CONSTANTS[token.text], exact=False)
        elif token.kind == "name":
            value = self.called(token.text)
        else:
            raise Unreadable("UNEXPECTED", token.text)
        return self.followed(value)

    def followed(self, value):
        """Return the signs that stand behind an operand: 16%, 5!"""
        while self.peek() in {"%", "!"}:
            sign = self.peek()
            self.at += 1
            percent = Value(value.number / 100, value.exact, percent=True)
            value = _factorial(value) if sign == "!" else percent
        return value

    def called(self, name):
        if self.peek() != "(":
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise Unreadable("TOO_DEEP")
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
            raise Unreadable("ARGUMENTS", name)
        return _bounded(_applied(name, arguments))

    def close(self):
        if self.at == len(self.tokens):
            raise Unreadable("UNCLOSED")
        if self.peek() != ")":
            raise Unreadable("UNEXPECTED", self.peek())
        self.at += 1


def _combined(sign, left, right):
    exact = left.exact and right.exact
    a, b = left.number, right.number
    if sign in {"+", "-"}:
        if right.percent and not left.percent:
            b = a * b  # 3450 + 16% means 16 % of 3450
        return Value(a + b if sign == "+" else a - b, exact, left.percent and right.percent)
    if sign in {"*", "of"}:
        return Value(a * b, exact)
    if sign == "^":
        return _power(left, right)
    if not b:
        raise Unreadable("DIVISION_BY_ZERO")
    if sign == "/":
        return Value(a / b, exact)
    return Value(Fraction(a // b) if sign == "//" else a - b * (a // b), exact)


def _power(base, exponent):
    a, n = base.number, exponent.number
    if n.denominator != 1:
        return _root(base, exponent)
    n = n.numerator
    exact = base.exact and exponent.exact
    if not a:
        if n < 0:
            raise Unreadable("DIVISION_BY_ZERO")
        return Value(Fraction(0 if n else 1), exact)
    if abs(a) == 1:
        return Value(a if n % 2 else Fraction(1), exact)
    _check_size(a, n)
    bits = max(a.numerator.bit_length(), a.denominator.bit_length()) * abs(n)
    if exact and bits <= 2 * MAX_BITS:
        return Value(a**n)
    return Value(_decimal_power(abs(a), Fraction(n)) * (-1 if a < 0 and n % 2 else 1), exact=False)


def _root(base, exponent):
    """Raise to a broken exponent: exact where a root is whole, else to 50 digits."""
    a, n = base.number, exponent.number
    if a < 0:
        raise Unreadable("NOT_REAL")
    if not a:
        if n < 0:
            raise Unreadable("DIVISION_BY_ZERO")
        return Value(Fraction(0))
    if base.exact and exponent.exact and n.denominator <= 64:
        top, bottom = (_whole_root(part, n.denominator) for part in (a.numerator, a.denominator))
        if top is not None and bottom is not None:
            return _power(Value(Fraction(top, bottom)), Value(Fraction(n.numerator)))
    if abs(n) > 10**9:
        raise Unreadable("TOO_BIG")
    _check_size(a, n)
    return Value(_decimal_power(a, n), exact=False)


def _whole_root(number, degree):
    """Return the integer whose power is exactly this number, by Newton's method; None where there is none."""
    guess = 1 << -(-number.bit_length() // degree)
    while True:
        better = ((degree - 1) * guess + number // guess ** (degree - 1)) // degree
        if better >= guess:
            return guess if guess**degree == number else None
        guess = better


def _check_size(base, exponent):
    """Refuse a power before it is computed, by the logarithm of the result."""
    if abs(exponent) > 10**12:
        raise Unreadable("TOO_BIG")
    magnitude = math.log10(abs(base.numerator)) - math.log10(base.denominator)
    if abs(magnitude * float(exponent)) > MAX_DIGITS:
        raise Unreadable("TOO_BIG")


def _decimal_power(base, exponent):
    try:
        return Fraction(PRECISE.copy().power(precise(base), precise(exponent)))
    except (Overflow, DecimalException) as error:
        raise Unreadable("TOO_BIG") from error


def _factorial(value):
    n = value.number
    if n.denominator != 1 or n < 0:
        raise Unreadable("NOT_WHOLE")
    if n > MAX_DIGITS or math.lgamma(int(n) + 1) / math.log(10) > MAX_DIGITS:
        raise Unreadable("TOO_BIG")
    return Value(Fraction(math.factorial(int(n))), value.exact)


def _applied(name, arguments):
    first = arguments[0]
    exact = all(argument.exact for argument in arguments)
    numbers = [argument.number for argument in arguments]
    if name in SHARES:
        return Value(first.number * SHARES[name], exact)
    if name == "factorial":
        return _factorial(first)
    if name == "abs":
        return Value(abs(first.number), exact)
    if name in {"min", "max"}:
        return Value(min(numbers) if name == "min" else max(numbers), exact)
    if name == "round":
        return Value(rounded(first.number, numbers[1] if len(numbers) > 1 else Fraction(0)))
    if name == "sqrt":
        return _root(first, Value(Fraction(1, 2)))
    size = _root(Value(abs(first.number), exact), Value(Fraction(1, 3)))
    return Value(-size.number if first.number < 0 else size.number, size.exact)


def rounded(number, places):
    """Round to that many decimals, halves away from zero, as people are taught."""
    if places.denominator != 1 or abs(places) > 100:
        raise Unreadable("ARGUMENTS", "round")
    scale = Fraction(10) ** int(places)
    whole = math.floor(abs(number) * scale + Fraction(1, 2))
    return (whole if number >= 0 else -whole) / scale


def _bounded(value):
    """Cut a rounded value back to 50 digits; raise for more than MAX_DIGITS digits."""
    number = value.number
    if not value.exact and number:
        try:
            number = Fraction(precise(number))
        except DecimalException as error:
            raise Unreadable("TOO_BIG") from error
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 2 * MAX_BITS:
        raise Unreadable("TOO_BIG")
    if abs(number.numerator) // number.denominator >= 10**MAX_DIGITS:
        raise Unreadable("TOO_BIG")
    return Value(number, value.exact, value.percent)


def outcome(value):
    """Return the number in digits with a point, and whether these are all its digits."""
    number = value.number
    if value.exact and number.denominator == 1:
        return str(number.numerator), True
    if value.exact and decimals(number.denominator) <= LONGEST_DECIMALS:
        return digits_of(number), True
    return approximate(number), False
